"""Radii that are not numbers: schedules, and the number of groups to keep."""

import copy
import itertools
import math

import numpy as np
import pytest
import torch

import normball
from normball.backends import torch_family
from normball.balls import BALLS
from normball.balls.sparsity import SPARSIFYING
from normball.nn import CosineSchedule, CubicSchedule, LinearSchedule, NGroups
from normball.nn.radii import at_step

SCHEDULES = [LinearSchedule, CosineSchedule, CubicSchedule]


def left(ball, Y, step=0):
    """How many groups are left; for l1, how many entries."""
    X = at_step(ball, step, Y).project(Y)
    axis = ball.axis if isinstance(ball.axis, tuple) else (ball.axis,)
    return int(X.count_nonzero()) if ball.axis is None else int((X != 0).sum(axis).count_nonzero())


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_schedules_end_where_they_should(schedule):
    numbers = [schedule(5.0, 1.0, steps=10)(step) for step in range(15)]
    assert numbers[0] == 5.0
    assert numbers[10:] == [1.0] * 5
    assert all(a >= b for a, b in itertools.pairwise(numbers))
    assert schedule(5.0, 1.3, steps=10)(math.inf) == 1.3


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_schedules_that_cannot_be(schedule):
    for arguments, name in [
        ((-1.0, 2.0, 10), "start"), ((1.0, math.nan, 10), "end"), ((math.inf, 1.0, 10), "start"),
        (("1", 1.0, 10), "start"), ((1.0, True, 10), "end"), ((2.0, 1.0, -1), "steps"), ((2.0, 1.0, 2.5), "steps"),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=f"^{name}: expected"):
            schedule(*arguments)


@pytest.mark.parametrize("name", SPARSIFYING)
@pytest.mark.parametrize(("shape", "axis"), [((20, 30), 0), ((20, 30), 1), ((6, 9, 3, 3), (0, 2, 3))])
def test_a_number_of_groups(name, shape, axis):
    torch.manual_seed(0)
    Y = torch.randn(shape)
    axes = (axis,) if isinstance(axis, int) else axis
    total = math.prod(n for a, n in enumerate(shape) if a not in axes)
    if name == "l1":
        axis, total = None, Y.numel()
    for n in (1, 5, total - 1, total, total + 3):
        assert left(BALLS[name](NGroups(n), axis), Y) == min(n, total)
    for share in (1e-9, 0.3, np.float32(0.5), 1.0):
        assert left(BALLS[name](NGroups(share), axis), Y) == max(round(float(share) * total), 1)
    Y.flatten()[:] = 0.0
    assert left(BALLS[name](NGroups(3), axis), Y) == 0


@pytest.mark.parametrize("name", SPARSIFYING)
def test_ties_and_zero_groups(name):
    Y = torch.tensor([[3.0, 2.0, 2.0, 2.0, 1.0, 0.0]])
    axis = None if name == "l1" else 0
    found = [left(BALLS[name](NGroups(n), axis), Y) for n in range(1, 8)]
    assert found == [1, 4, 4, 4, 5, 5, 5]


def test_entries_of_each_vector():
    Y = torch.randn(8, 12, generator=torch.Generator().manual_seed(0))
    for n, left_of_each in ((3, 3), (0.5, 6)):
        X = at_step(normball.L1Ball(NGroups(n), axis=1), 0, Y).project(Y)
        assert X.count_nonzero(1).tolist() == [left_of_each] * 8


def test_schedules_of_numbers_and_of_shares():
    Y = torch.randn(4, 40, generator=torch.Generator().manual_seed(0))
    for n, counts in [
        (LinearSchedule(20, 4, steps=4), [20, 16, 12, 8, 4, 4]),
        (LinearSchedule(1.0, 0.1, steps=3), [40, 28, 16, 4, 4, 4]),
        (LinearSchedule(1, 1, steps=3), [40] * 6),  # both ends are shares
        (LinearSchedule(2, 1, steps=1), [2, 1, 1, 1, 1, 1]),
        (LinearSchedule(np.int64(7), np.float64(6.5), steps=1), [7, 6, 6, 6, 6, 6]),
    ]:
        assert [left(normball.L12Ball(NGroups(n)), Y, step) for step in range(6)] == counts


@pytest.mark.parametrize(
    "n",
    [
        0, -3, 0.0, -0.3, 2.5, 3.0, 1.5, math.nan, math.inf, LinearSchedule(10, 0, 5), LinearSchedule(10, 0.3, 5),
        LinearSchedule(0.3, 3, 5), LinearSchedule(0.0, 1.0, 5), np.float64(7.0), np.int64(0),
    ],
)  # fmt: skip
def test_numbers_of_groups_out_of_range(n):
    with pytest.raises(ValueError, match=r"^n: expected an int >= 1, a share of the groups in \(0, 1\], or a schedule"):
        NGroups(n)


@pytest.mark.parametrize("n", [True, np.True_, "3", None, [3], 2j, LinearSchedule])
def test_numbers_of_groups_of_a_wrong_type(n):
    with pytest.raises(TypeError, match=r"^n: expected an int >= 1"):
        NGroups(n)


@pytest.mark.parametrize("name", sorted(BALLS))
def test_balls_that_make_no_groups_zero_refuse_a_number_of_groups(name):
    if name in SPARSIFYING:
        assert BALLS[name](NGroups(3)).radius == NGroups(3)
        return
    kind = type(BALLS[name](1.0)).__name__
    with pytest.raises(TypeError, match=rf"^radius: .*{kind}, whose projection makes no groups zero, got NGroups"):
        BALLS[name](NGroups(3))


@pytest.mark.parametrize("name", SPARSIFYING)
def test_the_values_of_a_device_are_not_looked_at(name):
    Y = torch.empty(30, 20, device="meta")  # of which there are none: whoever asks for one gets an error
    for n in (1, 5, 0.5, 50, LinearSchedule(1.0, 0.2, steps=4)):
        for dtype in (torch.float32, torch.bfloat16):
            radius = at_step(BALLS[name](NGroups(n)), 2, Y.to(dtype)).radius
            assert radius.is_meta
            assert radius.dtype == torch.float64
            assert radius.shape == ()


@pytest.mark.parametrize("name", SPARSIFYING)
def test_what_devices_compute_is_what_the_core_does(name, monkeypatch):
    torch.manual_seed(1)
    for Y in (torch.randn(30, 20), torch.randn(7, 11, 3).double(), torch.zeros(4, 5), torch.randn(9, 14).bfloat16()):
        axis = None if name == "l1" else (0, 2) if Y.ndim == 3 else 0
        for n in (1, 5, 0.5, 50):
            ball = BALLS[name](NGroups(n), axis)
            with monkeypatch.context() as patched:
                patched.setattr(torch_family, "_by_core", lambda Y, C: False)
                found = at_step(ball, 0, Y).radius
            wanted = at_step(ball, 0, Y.double()).radius
            torch.testing.assert_close(found, wanted, rtol=1e-13, atol=0)


def test_rules_are_values():
    ball = normball.L1InfBall(NGroups(CosineSchedule(0.9, 0.1, 7)))
    assert ball == copy.deepcopy(ball)
    assert hash(ball.radius) == hash(NGroups(CosineSchedule(0.9, 0.1, 7)))
