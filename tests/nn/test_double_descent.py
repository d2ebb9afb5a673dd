"""Zeros that stay zero under any optimizer, with and without a rewind."""

import copy

import pytest
import torch
from torch import nn

import normball
from normball.nn import (
    CosineSchedule,
    CubicSchedule,
    DoubleDescent,
    LinearSchedule,
    NGroups,
    parametrize,
    sparsity_report,
)

OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.2),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.01, momentum=0.5),
    "lbfgs": lambda p: torch.optim.LBFGS(p, max_iter=4),
}


def network(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(12, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))


def train(model, optimizer, steps=4):
    x, y = torch.randn(32, 12, generator=torch.Generator().manual_seed(3)), torch.arange(32) % 3

    def closure():
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        return loss

    for _ in range(steps):
        optimizer.step(closure)


@pytest.mark.parametrize("rewind", [True, False])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_zeros_are_frozen_exactly(optimizer, rewind):
    model = network()
    initial = copy.deepcopy(model.state_dict())
    descent = DoubleDescent(model, {"0.weight": normball.L1InfBall(NGroups(4))})
    steps = OPTIMIZERS[optimizer](model.parameters())
    train(model, steps)
    trained = model[0].weight.detach().clone()
    mask = descent.project(rewind=rewind)["0.weight"]
    assert int(mask.any(0).sum()) == 4
    if rewind:
        assert torch.equal(model[0].weight.detach(), initial["0.weight"] * mask)
        assert torch.equal(model[3].weight.detach(), initial["3.weight"])
        assert torch.equal(model[1].running_mean, initial["1.running_mean"])
        steps = OPTIMIZERS[optimizer](model.parameters())
    else:
        assert not torch.equal(model[0].weight.detach(), initial["0.weight"] * mask)
        assert (model[0].weight.detach().abs() <= trained.abs()).all()
    start = model[0].weight.detach().clone()
    train(model, steps)
    assert (model[0].weight.detach()[~mask] == 0).all()
    assert not torch.equal(model[0].weight.detach(), start)
    assert sparsity_report(model).layers[0].zero_inputs == 8
    descent.release()
    if optimizer == "lbfgs":
        return  # which has reached the minimum, where nothing moves
    train(model, torch.optim.SGD(model.parameters(), lr=0.1))
    assert (model[0].weight.detach()[~mask] != 0).any()


@pytest.mark.parametrize("schedule", [LinearSchedule, CosineSchedule, CubicSchedule])
def test_a_schedule_stands_at_its_end(schedule):
    model = network()
    balls = {"0.weight": normball.L1InfBall(schedule(9.0, 0.1, steps=50)), "3.weight": normball.L12Ball(
        NGroups(schedule(1.0, 0.25, steps=50)))}  # fmt: skip
    masks = DoubleDescent(model, balls).project(rewind=False)
    assert float(normball.norm_l1inf(model[0].weight.detach())) == pytest.approx(0.1, rel=1e-5)
    assert int(masks["3.weight"].any(0).sum()) == 2


def test_a_diverged_parameter_is_named():
    model = network()
    with torch.no_grad():
        model[0].weight[0, 0] = torch.nan
    for radius in (1.0, NGroups(3)):
        with pytest.raises(ValueError, match=r"0\.weight: Y: expected finite"):
            DoubleDescent(model, {"0.weight": normball.L1InfBall(radius)}).project()


def test_saved_and_restored():
    model = network()
    descent = DoubleDescent(model, {"0.weight": normball.L1InfBall(0.5)})
    train(model, torch.optim.Adam(model.parameters(), lr=0.01))
    before = copy.deepcopy(descent.state_dict())
    assert before["masks"] == {}
    mask = descent.project()["0.weight"]
    state, weights = copy.deepcopy(descent.state_dict()), copy.deepcopy(model.state_dict())

    again = network(7)
    second = DoubleDescent(again, {"0.weight": normball.L1InfBall(0.5)})
    again.load_state_dict(weights)
    second.load_state_dict(state)
    train(again, torch.optim.AdamW(again.parameters(), weight_decay=0.1))
    assert (again[0].weight.detach()[~mask] == 0).all()
    assert torch.equal(second.state_dict()["initial"]["0.weight"], before["initial"]["0.weight"])
    with pytest.raises(ValueError, match="state"):
        second.load_state_dict({"initial": {}, "masks": {"1.weight": mask}})


def test_the_report_prints():
    model = network()
    with torch.no_grad():
        model[0].weight[:, :6] = 0
        model[3].weight[1] = 0
    report = sparsity_report(model)
    assert [layer.zero_inputs for layer in report.layers] == [6, 0]
    assert [layer.zero_outputs for layer in report.layers] == [0, 1]
    assert report.layers[0].saved == 0.5
    assert "6 of 12" in str(report)


def test_the_report_counts_what_layers_see():
    model = network()
    parametrize(model[0], "weight", normball.L1InfBall(NGroups(5)))
    report = sparsity_report(model)
    assert [(layer.name, layer.zero_inputs) for layer in report.layers] == [("0.weight", 7), ("3.weight", 0)]
    assert hasattr(model[0], "parametrizations")
    assert int(model[0].weight.any(0).sum()) == 5
