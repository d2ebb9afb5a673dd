"""Constraints that follow an optimizer."""

import copy
import math

import pytest
import torch
from torch import nn

import normball
from normball.balls import BALLS
from normball.nn import DoubleDescent, LinearSchedule, NGroups, constrain


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
    with pytest.raises(ValueError, match=r"0\.weight: Y: expected finite"):
        constraint.project()
    groups = constrain(model, steps, {"0.weight": normball.L1InfBall(NGroups(2))})
    with pytest.raises(ValueError, match=r"0\.weight: Y: expected finite"):
        groups.project()


def test_saved_and_restored():
    model = network()
    steps = torch.optim.Adam(model.parameters(), lr=0.01)
    constraint = constrain(model, steps, {"0.weight": normball.L1InfBall(LinearSchedule(2.0, 0.1, steps=8))})
    train(model, steps, 4)
    state, weights = copy.deepcopy(constraint.state_dict()), copy.deepcopy(model.state_dict())
    adam = copy.deepcopy(steps.state_dict())
    train(model, steps, 4, seed=2)

    again = network(5)
    again.load_state_dict(weights)
    other = torch.optim.Adam(again.parameters(), lr=0.01)
    other.load_state_dict(adam)
    second = constrain(again, other, {"0.weight": normball.L1InfBall(LinearSchedule(2.0, 0.1, steps=8))})
    second.load_state_dict(state)
    train(again, other, 4, seed=2)
    assert second.steps == 8
    torch.testing.assert_close(again[0].weight, model[0].weight)


@pytest.mark.parametrize(
    ("state", "match"),
    [
        ({"steps": 0, "starts": {"other": {}}}, r"state: .*\['0\.weight'\], got also \['other'\]"),
        ({"state": {}, "param_groups": []}, r"state: expected a state_dict\(\) of Constraint.*'param_groups'"),
        ({"steps": 3}, r"state: .*'starts'.* got the keys \['steps'\]"),
        (None, "state: .*got NoneType"),
        ({"steps": 0, "starts": {"0.weight": {"mu": torch.ones(12)}}}, r"state: .*Constraint for 0\.weight.*'theta'"),
        (
            {"steps": 0, "starts": {"0.weight": {"theta": 0.0, "mu": torch.ones(7)}}},
            r"state: expected caps of shape \(12,\) for 0\.weight, got \(7,\)",
        ),
        ({"steps": 0, "starts": {"2.weight": {"theta": 0.0, "mu": torch.ones(8)}}}, r"got also \['2\.weight'\]"),
    ],
)
def test_a_foreign_state_is_refused(state, match):
    model = network()
    balls = {"0.weight": normball.L1InfBall(0.5), "2.weight": normball.L12Ball(0.5)}
    constraint = constrain(model, torch.optim.SGD(model.parameters(), lr=0.1), balls)
    constraint.project()
    before = constraint.state_dict()
    with pytest.raises(ValueError, match=match):
        constraint.load_state_dict(state)
    assert constraint.state_dict() == before
    descent = DoubleDescent(model, balls)
    with pytest.raises(ValueError, match=r"state: expected a state_dict\(\) of DoubleDescent"):
        descent.load_state_dict(before)


def test_a_constraint_shows_itself_and_ends_with_its_block():
    model = network()
    steps = torch.optim.SGD(model.parameters(), lr=0.1)
    with constrain(model, steps, {"0.weight": normball.L1InfBall(0.5)}, every=2) as constraint:
        train(model, steps, 3)
        assert normball.L1InfBall(0.5).contains(model[0].weight.detach())
        assert repr(constraint) == (
            "Constraint(steps=3, every=2, warmup_steps=0)\n  0.weight: L1InfBall(radius=0.5, axis=0)"
        )
    train(model, steps, 3)
    assert constraint.steps == 3
    assert not normball.L1InfBall(0.5).contains(model[0].weight.detach())
    with pytest.raises(KeyError), constrain(model, steps, {"0.weight": normball.L1InfBall(0.5)}) as constraint:
        raise KeyError
    train(model, steps, 1)
    assert constraint.steps == 0


WRONG = [
    (0.3, TypeError, r"expected a ball for 0\.weight, got 0\.3; a ball is normball\.L1InfBall\(0\.3\)"),
    (None, TypeError, r"expected a ball for 0\.weight, got None"),
    ("l7", TypeError, r"expected a ball for 0\.weight, got 'l7'.* names l1, "),
    (("l7", 0.3), TypeError, r"expected a ball for 0\.weight, got \('l7', 0\.3\)"),
    ("l1inf", TypeError, r"0\.weight, got 'l1inf'; a name needs a radius, as \('l1inf', 0\.3\)"),
    (normball.L1InfBall, TypeError, r"0\.weight, got the class L1InfBall; make one, as L1InfBall\(0\.3\)"),
    (("l1inf", -1.0), ValueError, r"0\.weight: radius: expected a number >= 0, got -1\.0"),
    (("l2", NGroups(3)), TypeError, r"0\.weight: radius: .*L2Ball, whose projection makes no groups zero"),
    (normball.L1InfBall(1.0, axis=2), ValueError, r"0\.weight: axis: .* 2 dimensions, got 2"),
    (normball.L1InfBall(1.0, axis=(0, 2, 3)), ValueError, r"0\.weight: axis: "),
    (normball.L1InfBall([1.0, 2.0]), ValueError, r"0\.weight: radius: .*got \(2,\)"),
    (normball.L2Ball(1.0, axis=-3), ValueError, r"0\.weight: axis: "),
    (normball.L1InfBall(nn.Parameter(torch.tensor(1.0))), TypeError, r"0\.weight, got an nn\.Parameter.*parametrize"),
]


@pytest.mark.parametrize(("ball", "error", "match"), WRONG)
def test_balls_are_checked_when_they_are_made(ball, error, match):
    model = network()
    steps = torch.optim.SGD(model.parameters(), lr=0.1)
    for pattern in ("0.weight", r"0\..*ght"):
        with pytest.raises(error, match=f"^balls: .*{match}"):
            constrain(model, steps, {pattern: ball})
        with pytest.raises(error, match=f"^balls: .*{match}"):
            DoubleDescent(model, {pattern: ball})
    assert not steps._optimizer_step_post_hooks
    with pytest.raises(TypeError, match="balls: expected a mapping from patterns to balls, got L1InfBall"):
        constrain(model, steps, normball.L1InfBall(1.0))
    lazy = nn.Sequential(nn.LazyLinear(3))
    with pytest.raises(ValueError, match=r"balls: expected 0\.weight to have a shape"):
        DoubleDescent(lazy, {"0.weight": normball.L1InfBall(1.0)})


def test_a_name_and_a_radius_make_a_ball():
    model = network()
    steps = torch.optim.SGD(model.parameters(), lr=0.1)
    constraint = constrain(model, steps, {"0.weight": ("bilevel_l11", NGroups(3)), "2.weight": ["l1", 0.2]})
    train(model, steps, 2)
    assert constraint.balls["0.weight"] == normball.BilevelBall(NGroups(3), inner="l1")
    assert constraint.balls["2.weight"] == normball.L1Ball(0.2)
    assert int(model[0].weight.any(0).sum()) == 3
    assert normball.L1Ball(0.2).contains(model[2].weight.detach())


def test_a_radius_for_each_vector():
    model = network()
    steps = torch.optim.SGD(model.parameters(), lr=0.1)
    radii = torch.linspace(0.01, 0.05, 8)
    constrain(model, steps, {"0.weight": normball.L2Ball(radii, axis=1)})
    for _ in range(2):
        train(model, steps, 1)
        lengths = model[0].weight.detach().norm(dim=1)
        assert (lengths <= radii * (1 + 1e-6)).all()
        assert (lengths >= 0.9 * radii).any()


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


@pytest.mark.parametrize("radius", [0.3, NGroups(LinearSchedule(9, 5, steps=2))], ids=["number", "groups"])
def test_with_a_compiled_step(radius):
    model, plain = network(), network()
    steps, usual = (OPTIMIZERS["adamw"](each.parameters()) for each in (model, plain))
    constraint = constrain(model, steps, {"0.weight": normball.L1InfBall(radius)})
    constrain(plain, usual, {"0.weight": normball.L1InfBall(radius)})
    step = torch.compile(steps.step, backend="aot_eager")
    for seed in range(3):
        x = torch.randn(16, 12, generator=torch.Generator().manual_seed(seed))
        for each, opt, act in ((model, steps, step), (plain, usual, usual.step)):
            opt.zero_grad()
            each(x).square().mean().backward()
            act()
    assert constraint.steps == 3
    torch.testing.assert_close(model[0].weight, plain[0].weight)
    if radius == 0.3:
        assert normball.L1InfBall(0.3).contains(model[0].weight.detach())
    else:
        assert int(model[0].weight.any(0).sum()) == 5


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


@pytest.mark.parametrize("name", sorted(BALLS))
def test_every_ball_of_the_family(name):
    ball = BALLS[name](LinearSchedule(0.5, 0.2, steps=2))
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
