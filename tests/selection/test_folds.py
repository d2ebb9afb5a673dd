"""Folds: every class in every training part, groups never split."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from normball.selection import folds

NAMES = ["a", "b", "c"]


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10_000), st.integers(2, 5), st.integers(2, 3), st.booleans())
def test_groups_are_never_split(seed, count, classes, mixed):
    rng = np.random.default_rng(seed)
    groups = np.sort(rng.integers(0, 25, size=90))
    y = rng.integers(0, classes, size=90) if mixed else rng.integers(0, classes, size=25)[groups]
    try:
        splits = folds.outer(y, groups, count, seed, NAMES[:classes])
    except ValueError:  # said below
        assume(False)
    tested = np.sort(np.concatenate([test for _, test in splits]))
    np.testing.assert_array_equal(tested, np.arange(90))
    for train, test in splits:
        assert not set(groups[train]) & set(groups[test])
        assert len(np.unique(y[train])) == len(np.unique(y))
        for inside, held_out in folds.inner(y[train], groups[train], 5, seed):
            assert not set(groups[train][inside]) & set(groups[train][held_out])
    shuffled = folds.shuffled(y, groups, seed)
    if not mixed:
        assert all(len(set(shuffled[groups == g])) == 1 for g in np.unique(groups))
    else:
        np.testing.assert_array_equal(np.bincount(shuffled), np.bincount(y))


def test_stratified():
    y = np.repeat([0, 1, 2], [40, 15, 5])
    for train, test in folds.outer(y, None, 5, 0, NAMES):
        assert np.bincount(y[test]).tolist() == [8, 3, 1]
        assert not set(train) & set(test)


def test_what_cannot_be_folded():
    y = np.repeat([0, 1], [10, 3])
    with pytest.raises(ValueError, match="at most the 3 samples of class 'b', got 5"):
        folds.outer(y, None, 5, 0, NAMES[:2])
    with pytest.raises(ValueError, match="class 'b' is in 1 of the 3 groups"):
        folds.outer(y, np.repeat([0, 1, 2], [5, 5, 3]), 2, 0, NAMES[:2])
    with pytest.raises(ValueError, match="4 or more in all"):
        folds.outer(np.arange(9) % 2, np.arange(9) // 3, 4, 0, NAMES[:2])
