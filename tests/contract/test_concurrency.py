"""Many Python threads, one input, one answer."""

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from .data import matrix
from .judge import assert_optimal, same_bits
from .registry import CASES


@pytest.mark.parametrize("case", CASES, ids=str)
def test_hammer(case):
    shape = (300, 400) if case.fast else (60, 90)
    Y = matrix("normal", shape)
    T = np.ascontiguousarray(Y.T)
    norm = case.exact_norm(Y, 0)
    kinds = itertools.product(((Y, 0), (T, 1)), (1e-3, 0.1, 0.5, 2.0), (None, 1, 2))
    jobs = [(values, axis, part * norm, threads) for (values, axis), part, threads in kinds]
    expected = [case.project(values, radius, axis=axis, threads=1) for values, axis, radius, _ in jobs]
    for (values, axis, radius, _), X in zip(jobs, expected, strict=True):
        assert_optimal(case, values, X, radius, axis)

    crowd = 12
    together = threading.Barrier(crowd)

    def work(seed):
        together.wait()
        mistakes = []
        for i in np.random.default_rng(seed).permutation(len(jobs)):
            values, axis, radius, threads = jobs[i]
            out = np.full_like(values, np.nan)
            case.project(values, radius, axis=axis, threads=threads, out=out)
            if not same_bits(out, expected[i]):
                mistakes.append(jobs[i][1:])
        return mistakes

    with ThreadPoolExecutor(crowd) as pool:
        assert [mistakes for mistakes in pool.map(work, range(crowd)) if mistakes] == []


@pytest.mark.parametrize("case", CASES, ids=str)
def test_different_problems_at_once_do_not_mix(case):
    rng = np.random.default_rng(1)
    problems = [rng.normal(size=tuple(rng.integers(1, 120, size=2))) for _ in range(48)]
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda Y: case.project(Y, 0.2 * case.exact_norm(Y, 0)), problems))
    for Y, X in zip(problems, results, strict=True):
        assert_optimal(case, Y, X, 0.2 * case.exact_norm(Y, 0))
