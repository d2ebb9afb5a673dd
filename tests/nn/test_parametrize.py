"""Balls inside the forward pass: numbers, schedules, numbers of groups, radii that are trained."""

import copy

import pytest
import torch
from torch import nn
from torch.nn.utils.parametrize import remove_parametrizations
from torch.utils.checkpoint import checkpoint

import normball
from normball.balls import BALLS
from normball.balls.sparsity import SPARSIFYING
from normball.nn import LinearSchedule, NGroups, parametrize

X = torch.randn(16, 12, generator=torch.Generator().manual_seed(0))


def layer(ball):
    torch.manual_seed(0)
    plain = nn.Linear(12, 8)
    with torch.no_grad():
        plain.weight *= 10.0  # outside all the balls
    return parametrize(plain, "weight", ball)


def norm(made, ball="l1inf"):
    return float(BALLS[ball](1.0).norm(made.weight.detach()))


def train(made, steps, optimizer=None):
    optimizer = optimizer or torch.optim.SGD(made.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        made(X).square().mean().backward()
        optimizer.step()


@pytest.mark.parametrize("name", sorted(BALLS))
def test_every_ball(name):
    made = layer((name, 0.4))
    before = made.weight.detach().clone()
    train(made, 3)
    assert BALLS[name](0.4).contains(made.weight.detach(), rtol=1e-5)
    assert not torch.equal(before, made.weight)
    assert made.weight.grad_fn is not None


@pytest.mark.parametrize(
    ("name", "ball", "error", "match"),
    [
        ("weigth", normball.L1InfBall(0.4), ValueError, r"name: expected one of 'weight', 'bias', got 'weigth'"),
        ("weight", 0.4, TypeError, r"ball: expected a ball for weight, got 0\.4"),
        ("weight", "l1inf", TypeError, r"ball: .*as \('l1inf', 0\.3\)"),
        ("weight", normball.L1InfBall, TypeError, r"ball: .*the class L1InfBall"),
        ("bias", normball.L1InfBall(0.4, axis=1), ValueError, r"ball: bias: axis: "),
        ("weight", normball.L1InfBall(nn.Parameter(torch.ones(3))), ValueError, r"ball: weight: radius: "),
    ],
)
def test_wrong_arguments(name, ball, error, match):
    plain = nn.Linear(12, 8)
    with pytest.raises(error, match=match):
        parametrize(plain, name, ball)
    assert type(plain) is nn.Linear
    assert not plain._forward_pre_hooks


@pytest.mark.parametrize("name", sorted(BALLS))
def test_a_schedule_moves_with_each_forward_pass_in_training(name):
    made = layer(BALLS[name](LinearSchedule(0.8, 0.2, steps=3)))
    radii = []
    for _ in range(6):
        made(X)
        radii += [norm(made, name), norm(made, name)]  # to look at it moves nothing
        with torch.no_grad():
            made.weight.sum()
    wanted = [r for r in (0.8, 0.6, 0.4, 0.2, 0.2, 0.2) for _ in range(2)]
    assert radii == pytest.approx(wanted, rel=1e-5)
    train(made, 2)
    assert BALLS[name](0.2).contains(made.weight.detach(), rtol=1e-5)


def test_a_schedule_stands_still_in_evaluation():
    made = layer(normball.L1InfBall(LinearSchedule(0.8, 0.2, steps=3)))
    made(X)
    made(X)
    made.eval()
    for _ in range(3):
        made(X)
        assert norm(made) == pytest.approx(0.6, rel=1e-6)
    made.train()
    made(X)
    assert norm(made) == pytest.approx(0.4, rel=1e-6)


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_checkpoint_computes_with_the_same_radius_again(reentrant):
    grads = []
    for used in (True, False):
        made = layer(normball.L1InfBall(LinearSchedule(0.8, 0.2, steps=3)))
        for _ in range(2):
            made.zero_grad()
            x = X.clone().requires_grad_()
            y = checkpoint(made, x, use_reentrant=reentrant) if used else made(x)
            y.square().sum().backward()
        grads.append(made.parametrizations.weight.original.grad)
        assert norm(made) == pytest.approx(0.6, rel=1e-6)
    assert torch.equal(*grads)


def test_a_schedule_is_saved_restored_and_copied():
    ball = normball.L1InfBall(NGroups(LinearSchedule(10, 2, steps=8)))
    made = layer(ball)
    train(made, 3)
    state = copy.deepcopy(made.state_dict())
    again = layer(ball)
    again.load_state_dict(state)
    copied = copy.deepcopy(made)
    counts = []
    for each in (made, again, copied):
        train(each, 1)
        counts.append(int(each.weight.any(0).sum()))
        assert torch.equal(each.weight, made.weight)
    assert counts == [7, 7, 7]
    train(copied, 1)
    assert int(copied.weight.any(0).sum()) == 6
    assert int(made.weight.any(0).sum()) == 7
    with pytest.raises(RuntimeError, match="_extra_state"):
        layer(ball).load_state_dict(layer(normball.L1InfBall(1.0)).state_dict())


@pytest.mark.parametrize("name", SPARSIFYING)
def test_a_number_of_groups(name):
    made = layer((name, NGroups(5)))
    train(made, 3)
    found = made.weight.count_nonzero() if name == "l1" else made.weight.any(0).sum()
    assert int(found) == 5
    share = layer((name, NGroups(0.5)))
    found = share.weight.count_nonzero() if name == "l1" else share.weight.any(0).sum()
    assert int(found) == (48 if name == "l1" else 6)


@pytest.mark.parametrize("name", sorted(BALLS))
def test_a_radius_that_is_a_parameter_is_trained_and_saved(name):
    radius = nn.Parameter(torch.tensor(0.5))
    model = nn.Sequential(layer(BALLS[name](radius)), nn.ReLU())
    names = [each for each, _ in model.named_parameters()]
    assert "0.parametrizations.weight.0.radius" in names
    assert sum(parameter is radius for parameter in model.parameters()) == 1
    train(model, 4, torch.optim.SGD(model.parameters(), lr=0.02))
    moved = float(radius.detach())
    assert moved != 0.5
    assert BALLS[name](moved).contains(model[0].weight.detach(), rtol=1e-5)
    assert not BALLS[name](moved * 0.99).contains(model[0].weight.detach(), rtol=1e-5)

    again = nn.Sequential(layer(BALLS[name](nn.Parameter(torch.tensor(2.0)))), nn.ReLU())
    again.load_state_dict(model.state_dict())
    assert torch.equal(again[0].weight, model[0].weight)
    copied = copy.deepcopy(model)
    train(copied, 1)
    assert float(radius.detach()) == moved
    assert float(copied[0].parametrizations.weight[0].radius.detach()) != moved


def test_a_radius_follows_the_module_to_another_dtype():
    made = layer(normball.L1InfBall(nn.Parameter(torch.tensor(0.5)))).double()
    assert made.parametrizations.weight[0].radius.dtype == torch.float64
    assert norm(made) == pytest.approx(0.5, rel=1e-12)


@pytest.mark.parametrize("radius", [0.3, nn.Parameter(torch.tensor(0.3))], ids=["number", "parameter"])
def test_compiled_in_one_graph(radius):
    made = layer(normball.L1InfBall(radius))
    compiled = torch.compile(made, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(X), made(X))


def test_compiled_with_a_schedule():
    made, plain = (layer(normball.L1InfBall(LinearSchedule(0.8, 0.2, steps=3))) for _ in range(2))
    compiled = torch.compile(made, backend="aot_eager")
    for _ in range(5):
        torch.testing.assert_close(compiled(X), plain(X))
    assert norm(made) == pytest.approx(0.2, rel=1e-6)


def test_undone():
    made = layer(normball.L1InfBall(LinearSchedule(0.8, 0.2, steps=3)))
    made(X)
    weight = made.weight.detach().clone()
    remove_parametrizations(made, "weight")
    assert type(made) is nn.Linear
    assert torch.equal(made.weight, weight)
    train(made, 1)


def test_the_ball_is_shown():
    assert "L1InfBall(radius=0.3, axis=0)" in repr(layer(normball.L1InfBall(0.3)))
