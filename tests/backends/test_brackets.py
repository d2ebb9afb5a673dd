"""Caps from few looks, in one process: against the core, and by the optimality conditions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import normball
from normball.backends import cpu
from normball.backends.distributed.brackets import Table, settle
from tests.contract.data import DISTRIBUTIONS


class Looks:
    """The groups are the columns; counts how often they were looked at."""

    def __init__(self, Y):
        self.A = np.abs(Y.T).astype(np.float64)
        self.count = 0

    def __call__(self, rows, t):
        self.count += 1
        over = np.maximum(self.A[rows][:, :, None] - t[:, None, :], 0.0)
        return over.sum(1), (over > 0).sum(1).astype(np.float64)

    @property
    def table(self):
        sums, peaks = self.A.sum(1), self.A.max(1)
        zero = np.zeros_like(sums)
        return Table(
            np.stack([zero, peaks], 1), np.stack([sums, zero], 1), np.stack([zero + self.A.shape[1], zero + 1], 1)
        )


def close(a, b, Y):
    members = Y.shape[0]
    return np.abs(a - b).max() <= (8 + np.sqrt(members)) * 2.0**-52 * np.abs(Y).max()


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_caps_and_theta_of_a_radius(distribution):
    rng = np.random.default_rng(0)
    for shape in ((200, 40), (7, 7), (3, 50), (50, 1), (1, 9)):
        Y = DISTRIBUTIONS[distribution](rng, shape)
        norm = float(np.abs(Y).max(0).sum())
        for part in (1e-9, 1e-3, 0.1, 0.6, 0.999):
            if norm == 0.0:
                continue
            looks = Looks(Y)
            theta, mu, _ = settle(looks, looks.table, problem=np.zeros(shape[1], int), radius=np.array([part * norm]))
            _, info = normball.project_l1inf(Y, part * norm, return_info=True)
            assert close(mu, info.mu, Y), (distribution, shape, part)
            assert abs(theta[0] - info.theta) <= 1e-13 * np.abs(Y).sum(0).max()
            assert looks.count <= 8


def test_normal_data_take_three_or_four_looks():
    Y = np.random.default_rng(1).normal(size=(500, 60))
    norm = float(np.abs(Y).max(0).sum())
    for part in (1e-3, 0.05, 0.3, 0.7):
        looks = Looks(Y)
        settle(looks, looks.table, problem=np.zeros(60, int), radius=np.array([part * norm]))
        assert looks.count <= 4, (part, looks.count)


numbers = st.one_of(st.floats(-1e3, 1e3), st.integers(-3, 3).map(float), st.just(0.0))


matrices = hnp.arrays(np.float64, st.tuples(st.integers(1, 12), st.integers(1, 6)), elements=numbers)


@given(Y=matrices, part=st.floats(0.0, 1.1))
def test_any_small_matrix(Y, part):
    Y = np.where(np.abs(Y) < 1e-100, 0.0, Y)
    norm = float(np.abs(Y).max(0).sum())
    radius = part * norm
    if not 1e-90 < radius < norm:
        return
    looks = Looks(Y)
    _, mu, _ = settle(looks, looks.table, problem=np.zeros(Y.shape[1], int), radius=np.array([radius]))
    assert close(mu, normball.project_l1inf(Y, radius, return_info=True)[1].mu, Y)


@given(Y=matrices, theta=st.floats(1e-6, 2e3))
def test_caps_of_a_given_theta(Y, theta):
    Y = np.where(np.abs(Y) < 1e-100, 0.0, Y)
    looks = Looks(Y)
    _, mu, k = settle(looks, looks.table, theta=np.full(Y.shape[1], theta))
    assert close(mu, cpu.caps(Y, theta, 0, None, None), Y)
    above = (np.abs(Y) > mu * (1 + 1e-12)).sum(0)
    assert ((k >= above) | (mu == 0)).all()


def test_a_cap_at_a_place_that_was_looked_at():
    looks = Looks(np.array([[245.0, 0.0], *[[0.0, 0.0]] * 11]))
    _, mu, k = settle(looks, looks.table, theta=np.full(2, 244.0))
    assert mu == pytest.approx([1.0, 0.0], rel=0, abs=245 * 2.0**-50)
    assert k.tolist() == [1.0, 0.0]


def test_problems_side_by_side():
    rng = np.random.default_rng(2)
    Y, Z = rng.normal(size=(30, 8)), 1e3 * rng.lognormal(size=(30, 8))
    looks = Looks(np.concatenate([Y, Z], 1))
    problem = np.repeat([0, 1], 8)
    radius = np.array([1.0, 2e3])
    theta, mu, _ = settle(looks, looks.table, problem=problem, radius=radius)
    for number, part in enumerate((Y, Z)):
        _, info = normball.project_l1inf(part, radius[number], return_info=True)
        assert close(mu[problem == number], info.mu, part)
        assert abs(theta[number] - info.theta) < 1e-13 * np.abs(part).sum(0).max()


def test_a_part_of_a_tensor_without_the_core(monkeypatch):
    """What runs on other devices, here."""
    torch = pytest.importorskip("torch")
    from normball.backends.distributed import shard

    torch.manual_seed(0)
    for dtype in (torch.float64, torch.float32):
        A = torch.randn(2, 9, 31, dtype=dtype)
        A[0, 3] = 0.0
        theta = torch.tensor([3.0, 0.5], dtype=torch.float64)
        found = []
        for by_core in (True, False):
            monkeypatch.setattr(shard, "_by_core", lambda A, by_core=by_core: by_core)
            found.append((*shard.sums_and_peaks(A), shard.lengths(A), shard.caps_at(A, theta)))
        for start in (0.0, 0.3, 100.0):  # from below, from among them, and from above
            caps = shard.caps_at(A, theta, torch.full((2, 9), start, dtype=torch.float64))
            assert torch.allclose(caps, found[0][-1], rtol=1e-13, atol=1e-14)
        for core, plain in zip(*found, strict=True):
            assert torch.allclose(core, plain, rtol=1e-13, atol=1e-14)
        caps = found[0][-1]
        looked = shard.excess(A.flatten(0, 1).abs(), caps.reshape(-1, 1))[:, 0].reshape(2, 9, 2)
        alive = caps > 0
        assert torch.allclose(looked[..., 0][alive], theta[:, None].expand(2, 9)[alive], rtol=1e-12)
        assert torch.equal(looked[..., 1][alive], shard.counts_above(A, caps)[alive])
