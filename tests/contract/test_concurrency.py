"""Many Python threads, one input, one answer."""

import _thread
import itertools
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import normball

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


def test_other_threads_run_during_a_call():
    Y = matrix("normal", (600, 600))
    took = []

    def project():
        started = time.perf_counter()
        normball.project_l1inf(Y, 0.3 * normball.norm_l1inf(Y), method="inverse_total_order", threads=1)
        took.append(time.perf_counter() - started)

    worker = threading.Thread(target=project)
    worker.start()
    longest, last = 0.0, time.perf_counter()
    while worker.is_alive():
        now = time.perf_counter()
        longest, last = max(longest, now - last), now
    # Under a lock nothing would have run here for nearly all of the call.
    assert longest < 0.8 * took[0]


def test_an_interrupt_leaves_whole_results():
    Y = matrix("normal", (300, 400), "float32")
    radius = 0.1 * normball.norm_l1inf(Y)
    expected, out = normball.project_l1inf(Y, radius), np.empty_like(Y)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # where interrupts are ignored, too
    for delay in np.random.default_rng(0).uniform(0.001, 0.02, size=20):
        clock = threading.Timer(delay, _thread.interrupt_main)
        try:
            clock.start()
            while True:
                out.fill(7.0)
                normball.project_l1inf(Y, radius, out=out)
        except KeyboardInterrupt:
            pass
        clock.join()
        assert same_bits(out, expected) or (out == 7.0).all()
    signal.signal(signal.SIGINT, before)
    assert same_bits(normball.project_l1inf(Y, radius), expected)
