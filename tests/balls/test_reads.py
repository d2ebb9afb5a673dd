"""How often the default method reads a matrix: all that its guesses decide, and nothing else shows where they fail."""

import numpy as np
import pytest

import normball

MOST = 6.0  # 5.5 were seen
VALUES = {
    "uniform": lambda rng, shape: rng.random(shape),
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "log-normal": lambda rng, shape: rng.lognormal(sigma=2.0, size=shape),
    "Cauchy": lambda rng, shape: rng.standard_cauchy(shape),
    "scaled": lambda rng, shape: rng.standard_normal(shape) * np.geomspace(1.0, 1e-6, shape[1]),
    "ties": lambda rng, shape: rng.integers(-3, 4, size=shape),
}


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(100, 2000), (700, 500), (4000, 200)], ids=str)
@pytest.mark.parametrize("values", VALUES)
def test_a_matrix_is_read_a_few_times(values, shape, order):
    rng = np.random.default_rng(5)
    Y = np.asarray(VALUES[values](rng, shape), dtype=np.float32, order=order)
    norm = normball.norm_l1inf(Y)
    sums = np.abs(Y.astype(np.float64)).sum(axis=0)
    radii = [part * norm for part in (0.01, 0.1, 0.3, 0.5, 0.9)]
    for share in (0.5, 0.9):  # of groups that become zero: their caps at that theta sum to this radius
        radii.append(normball.norm_l1inf(normball.prox_l1inf(Y, np.quantile(sums, share))))
    for radius in radii:
        _, info = normball.project_l1inf(Y, radius, return_info=True)
        assert info.reads <= MOST, f"{info} at radius {radius}, of a norm of {norm}"


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("part", [0.1, 0.5, 0.9])
def test_past_the_caches_a_matrix_is_read_once_for_each_purpose(part, order):
    """For sums and peaks, for windows about the caps, and for the write."""
    Y = np.asarray(VALUES["normal"](np.random.default_rng(5), (2100, 2100)), dtype=np.float32, order=order)
    _, info = normball.project_l1inf(Y, part * normball.norm_l1inf(Y), return_info=True)
    assert info.reads < 3.1, info


@pytest.mark.parametrize("axis", [0, 1])
def test_a_group_unlike_the_others_costs_no_read(axis):
    """All groups are looked at with the first read; nothing of one of them is above the place."""
    Y = np.random.default_rng(0).uniform(-1.0, 1.0, (600, 1000))
    Y[5] = np.copysign(0.3, Y[5]) * np.random.default_rng(1).uniform(0.9, 1.4, 1000)
    _, info = normball.project_l1inf(Y if axis == 1 else Y.T.copy(), 0.45 * 600, axis=axis, return_info=True)
    assert info.reads < 3.5, info
