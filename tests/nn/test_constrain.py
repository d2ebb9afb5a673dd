"""Constraints that follow an optimizer, and radii that are not numbers."""

import copy
import itertools
import math

import pytest
import torch
from torch import nn

import normball
from normball.balls import BALLS
from normball.nn import Cosine, Cubic, Linear, NGroups, constrain, parametrize
from normball.nn.radii import at_step


def network(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 3))


def train(model, optimizer, steps=5, seed=1):
    generator = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        x = torch.randn(16, 12, generator=generator)
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()


OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.1),
}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_every_step_ends_in_the_ball(optimizer):
    model = network()
    steps = OPTIMIZERS[optimizer](model.parameters())
    balls = {"0.weight": normball.L1InfBall(0.5), r"2\..*ight": normball.L1InfBall(0.2, axis=1)}
    constraint = constrain(model, steps, balls)
    for _ in range(4):
        train(model, steps, 1)
        assert normball.L1InfBall(0.5).contains(model[0].weight.detach())
        assert normball.L1InfBall(0.2, axis=1).contains(model[2].weight.detach())
    assert set(constraint.infos) == {"0.weight", "2.weight"}
    constraint.remove()
    train(model, steps, 3)
    assert not normball.L1InfBall(0.5).contains(model[0].weight.detach())


def test_a_class_of_modules_and_every_other_step():
    model = network()
    steps = torch.optim.SGD(model.parameters(), lr=0.1)
    constraint = constrain(model, steps, {(nn.Linear, "weight"): normball.L1InfBall(0.1)}, every=2, warmup_steps=1)
    inside = []
    for _ in range(6):
        train(model, steps, 1)
        inside.append(normball.L1InfBall(0.1).contains(model[0].weight.detach()))
    assert inside == [False, True, False, True, False, True]
    assert constraint.steps == 6


def test_patterns_that_match_nothing_or_twice():
    model = network()
    steps = torch.optim.SGD(model.parameters(), lr=0.1)
    ball = normball.L1InfBall(1.0)
    with pytest.raises(ValueError, match=r"near names: .*0\.weight"):
        constrain(model, steps, {"O.weight": ball})
    with pytest.raises(ValueError, match="one pattern for a parameter"):
        constrain(model, steps, {"0.weight": ball, r"0\..*": ball})
    with pytest.raises(ValueError, match="regular expression"):
        constrain(model, steps, {"(": ball})
    with pytest.raises(TypeError, match="balls"):
        constrain(model, steps, {3: ball})
    with pytest.raises(ValueError, match="every"):
        constrain(model, steps, {"0.weight": ball}, every=0)


def test_a_diverged_parameter_is_named():
    model = network()
    steps = torch.optim.SGD(model.parameters(), lr=0.1)
    constraint = constrain(model, steps, {"0.weight": normball.L1InfBall(1.0)})
    with torch.no_grad():
        model[0].weight[0, 0] = math.nan
    with pytest.raises(ValueError, match=r"0\.weight"):
        constraint.project()


def test_saved_and_restored():
    model = network()
    steps = torch.optim.Adam(model.parameters(), lr=0.01)
    constraint = constrain(model, steps, {"0.weight": normball.L1InfBall(Linear(2.0, 0.1, steps=8))})
    train(model, steps, 4)
    state, weights = copy.deepcopy(constraint.state_dict()), copy.deepcopy(model.state_dict())
    adam = copy.deepcopy(steps.state_dict())
    train(model, steps, 4, seed=2)

    again = network(5)
    again.load_state_dict(weights)
    other = torch.optim.Adam(again.parameters(), lr=0.01)
    other.load_state_dict(adam)
    second = constrain(again, other, {"0.weight": normball.L1InfBall(Linear(2.0, 0.1, steps=8))})
    second.load_state_dict(state)
    train(again, other, 4, seed=2)
    assert second.steps == 8
    torch.testing.assert_close(again[0].weight, model[0].weight)
    with pytest.raises(ValueError, match="state"):
        second.load_state_dict({"steps": 0, "starts": {"other": {}}})


def test_mixed_precision_and_schedulers():
    model = network()
    steps = torch.optim.SGD(model.parameters(), lr=0.1)
    rate = torch.optim.lr_scheduler.StepLR(steps, 1)
    constrain(model, steps, {"0.weight": normball.L1InfBall(0.3)})
    scaler = torch.amp.GradScaler("cpu")
    for _ in range(3):
        steps.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = model(torch.randn(8, 12)).square().mean()
        scaler.scale(loss).backward()
        scaler.step(steps)
        scaler.update()
        rate.step()
    assert normball.L1InfBall(0.3).contains(model[0].weight.detach())


def test_with_a_compiled_model():
    model = network()
    compiled = torch.compile(model, backend="aot_eager")
    steps = torch.optim.SGD(model.parameters(), lr=0.1)
    constrain(model, steps, {"0.weight": normball.L1InfBall(0.3)})
    train(compiled, steps, 2)
    assert normball.L1InfBall(0.3).contains(model[0].weight.detach())


def test_with_a_compiled_step():
    model, plain = network(), network()
    steps, usual = (OPTIMIZERS["adamw"](each.parameters()) for each in (model, plain))
    constraint = constrain(model, steps, {"0.weight": normball.L1InfBall(0.3)})
    constrain(plain, usual, {"0.weight": normball.L1InfBall(0.3)})
    step = torch.compile(steps.step, backend="aot_eager")
    for seed in range(3):
        x = torch.randn(16, 12, generator=torch.Generator().manual_seed(seed))
        for each, opt, act in ((model, steps, step), (plain, usual, usual.step)):
            opt.zero_grad()
            each(x).square().mean().backward()
            act()
    assert constraint.steps == 3
    assert normball.L1InfBall(0.3).contains(model[0].weight.detach())
    torch.testing.assert_close(model[0].weight, plain[0].weight)


def test_a_step_that_the_scaler_leaves_out_is_none():
    model = network()
    steps = torch.optim.SGD(model.parameters(), lr=0.1)
    constraint = constrain(model, steps, {"0.weight": normball.L1InfBall(0.3)})
    scaler = torch.amp.GradScaler("cpu")
    before = model[0].weight.detach().clone()
    for bad in (True, False):
        steps.zero_grad()
        loss = model(torch.randn(8, 12)).square().mean()
        scaler.scale(loss * (math.inf if bad else 1.0)).backward()
        scaler.step(steps)
        scaler.update()
        assert constraint.steps == (0 if bad else 1)
        assert torch.equal(before, model[0].weight.detach()) == bad


@pytest.mark.parametrize("schedule", [Linear, Cosine, Cubic])
def test_schedules_end_where_they_should(schedule):
    numbers = [schedule(5.0, 1.0, steps=10)(step) for step in range(15)]
    assert numbers[0] == 5.0
    assert numbers[10:] == [1.0] * 5
    assert all(a >= b for a, b in itertools.pairwise(numbers))


def test_a_number_of_groups():
    torch.manual_seed(0)
    for shape, axis in (((20, 30), 0), ((20, 30), 1), ((6, 9, 3, 3), (0, 2, 3))):
        Y = torch.randn(shape)
        axes = (axis,) if isinstance(axis, int) else axis
        total = math.prod(n for a, n in enumerate(shape) if a not in axes)
        for n in (0, 1, 5, total - 1, total, total + 3):
            X = at_step(normball.L1InfBall(NGroups(n), axis), 0, Y).project(Y)
            assert int((X != 0).sum(axes).count_nonzero()) == min(n, total)
    assert at_step(normball.L1InfBall(NGroups(Linear(10, 2, steps=4))), 2, Y).radius > 0


def test_parametrized():
    model = network()
    parametrize(model[0], "weight", normball.L1InfBall(0.4))
    steps = torch.optim.SGD(model.parameters(), lr=0.1)
    before = model[0].weight.detach().clone()
    train(model, steps, 3)
    assert normball.L1InfBall(0.4).contains(model[0].weight.detach())
    assert not torch.equal(before, model[0].weight)
    with pytest.raises(ValueError, match="name"):
        parametrize(model[2], "weigth", normball.L1InfBall(0.4))


@pytest.mark.parametrize("name", sorted(BALLS))
def test_every_ball_of_the_family(name):
    ball = BALLS[name](Linear(0.5, 0.2, steps=2))
    model = network()
    steps = torch.optim.Adam(model.parameters(), lr=0.01)
    constraint = constrain(model, steps, {"0.weight": ball})
    train(model, steps, 4)
    assert BALLS[name](0.2).contains(model[0].weight.detach(), rtol=1e-5)
    state = copy.deepcopy(constraint.state_dict())
    constraint.load_state_dict(state)
    train(model, steps, 1)
    assert constraint.steps == 5


@pytest.mark.parametrize("kind", [normball.L1InfBall, normball.L2Ball])
def test_a_radius_that_requires_a_gradient_gets_none(kind):
    model = network()
    steps = torch.optim.SGD(model.parameters(), lr=0.1)
    radius = torch.tensor(0.3, requires_grad=True)
    constrain(model, steps, {"0.weight": kind(radius)})
    train(model, steps, 2)
    assert kind(0.3).contains(model[0].weight.detach())
    assert radius.grad is None
    assert model[0].weight.requires_grad


@pytest.mark.parametrize("kind", [normball.L1InfBall, normball.L2Ball])
def test_autograd_notices_a_projection_between_forward_and_backward(kind):
    model = network()
    steps = torch.optim.SGD(model.parameters(), lr=0.1)
    constraint = constrain(model, steps, {"2.weight": kind(0.1)})
    loss = model(torch.ones(4, 12)).sum()
    constraint.project()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
