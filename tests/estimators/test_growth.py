"""The ranking that knows what it has."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from normball.estimators import SupervisedAutoencoder
from normball.estimators._growth import STRENGTH, Growth
from normball.estimators._selection import GRID

from .test_autoencoder import data


def slopes(A, y, weight, classes, known):
    """The l1 norm of the gradient of each column, by autograd, around a linear model of the known ones."""
    W, b = np.zeros((A.shape[1], classes)), np.log(np.bincount(y, weight, classes) / weight.sum())
    if len(known):
        model = LogisticRegression(C=STRENGTH, tol=1e-9, max_iter=10000).fit(A[:, known], y, weight)
        if classes == 2:
            W[known, 1], b = model.coef_[0], np.array([0.0, model.intercept_[0]])
        else:
            W[known], b = model.coef_.T, model.intercept_
    parameter = torch.tensor(W, requires_grad=True)
    Z = torch.tensor(A) @ parameter + torch.tensor(b)
    loss = torch.nn.functional.cross_entropy(Z, torch.tensor(y), reduction="none")
    (torch.tensor(weight) * loss).sum().backward()
    return parameter.grad.abs().sum(1).numpy()


@settings(max_examples=15, deadline=None)
@given(st.integers(2, 4), st.integers(12, 30), st.integers(0, 2**32 - 1))
def test_each_step_takes_the_steepest(classes, features, seed):
    rng = np.random.default_rng(seed)
    y = np.arange(60) % classes
    A = rng.normal(size=(60, features))
    A[:, : features // 2] += np.eye(classes)[y] @ rng.normal(size=(classes, features // 2))
    A = (A - A.mean(0)) / A.std(0)
    weight = rng.uniform(0.2, 3.0, 60)
    order = Growth(A, y, weight, classes).first(12)
    assert len(set(order.tolist())) == 12
    done = 0
    for k in [k for k in GRID if k <= 12]:
        slope = slopes(A, y, weight, classes, order[:done])
        rest = np.setdiff1d(np.arange(features), order[:k])
        if len(rest):
            assert slope[order[done:k]].min() > 0.97 * slope[rest].max()  # the fit inside is not to the last digit
        done = k


def test_the_order_does_not_depend_on_what_was_asked_before():
    X, y = data()
    whole = Growth(X, y, np.ones(len(y)), 2)
    parts = Growth(X, y, np.ones(len(y)), 2)
    for k in (1, 4, 3, 12, 40):
        np.testing.assert_array_equal(parts.first(k), whole.first(40)[:k])
    assert sorted(whole.first(40).tolist()) == list(range(40))


def blocks(samples=120, copies=20):
    """Four classes, and three blocks of features: all in a block say the same thing, and no block says it all."""
    rng = np.random.default_rng(0)
    y = np.arange(samples) % 4
    hidden = 3.0 * np.eye(4)[y][:, 1:] * [1.0, 0.6, 0.5] + 0.5 * rng.normal(size=(samples, 3))
    X = np.repeat(hidden, copies, axis=1) + 0.3 * rng.normal(size=(samples, 3 * copies))
    return np.hstack([X, rng.normal(size=(samples, 3 * copies))]), y


def test_what_repeats_others_comes_late():
    X, y = blocks()
    grown = SupervisedAutoencoder(4, ranking="grown", head="linear", random_state=0).fit(X, y)
    plain = SupervisedAutoencoder(4, head="linear", random_state=0).fit(X, y)
    assert set(grown.get_support(indices=True) // 20) == {0, 1, 2}
    assert len(set(plain.get_support(indices=True) // 20)) == 1
    assert grown.score(X, y) > plain.score(X, y) + 0.2
    assert grown.radius_ is grown.theta_ is None
    assert plain.radius_ > 0.0 < plain.theta_


def test_the_choice_is_made_along_the_order_that_was_asked_for(tmp_path):
    X, y = blocks()
    plain = SupervisedAutoencoder(head="linear", cv=2, random_state=0).fit(X, y)
    grown = SupervisedAutoencoder(head="linear", ranking="grown", cv=2, random_state=0).fit(X, y)
    layer = SupervisedAutoencoder(head="linear", ranking="layer", cv=2, random_state=0).fit(X, y)
    np.testing.assert_array_equal(plain.support_, layer.support_)
    assert layer.theta_ is not None is not plain.theta_
    at_four = {sae: sae.feature_path_["accuracy"][sae.feature_path_["n_features"] == 4] for sae in (grown, layer)}
    assert at_four[grown] > at_four[layer] + 0.1
    again = SupervisedAutoencoder(int(grown.support_.sum()), head="linear", ranking="grown", random_state=0).fit(X, y)
    np.testing.assert_array_equal(again.support_, grown.support_)
    grown.save(tmp_path / "file")
    read = SupervisedAutoencoder.load(tmp_path / "file")
    assert (read.ranking, read.radius_) == ("grown", None)
    np.testing.assert_array_equal(read.predict_proba(X), grown.predict_proba(X))


def test_refusals():
    X, y = data()
    with pytest.raises(ValueError, match="ranking"):
        SupervisedAutoencoder(ranking="shrunk").fit(X, y)
    for options in ({"descent": "double"}, {"norm": None}, {"radius": 1.0}):
        with pytest.raises(ValueError, match="ranking: expected descent='refit', a norm and no radius"):
            SupervisedAutoencoder(ranking="grown", **options).fit(X, y)
    with pytest.raises(ValueError, match="ranking: expected 'layer' with partial_fit"):
        SupervisedAutoencoder(5, ranking="grown").partial_fit(X, y, classes=[0, 1])
