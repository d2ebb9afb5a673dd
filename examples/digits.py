"""Sparse training on scikit-learn's digits: ``python examples/digits.py [--compile] [--choose]``.

A perceptron that keeps at most 30 % of its hidden neurons, and a small convnet that keeps at most 30 % of
its channels. Each is trained dense for comparison, trained under the constraint, compacted, and measured on the test
part.
``--choose`` picks the learning rates anew, for dense and sparse each, on the validation part; the test part is never
looked at for a choice.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn

import normball
from normball.nn import Compacted, CubicSchedule, DoubleDescent, NGroups, compact, constrain

SHARE = 0.3
BATCH = 128
RATES = (2e-3, 4e-3, 8e-3)


@dataclass(frozen=True)
class Rates:
    """The greatest learning rates of the dense and of the sparse network."""

    dense: float
    sparse: float


CHOSEN = {"perceptron": Rates(8e-3, 4e-3), "convnet": Rates(4e-3, 8e-3)}  # by --choose


@dataclass(frozen=True)
class Outcome:
    """Accuracies on the part that was held out, and the small network."""

    dense: float
    sparse: float
    small: float
    result: Compacted


def data(images: bool, *, choosing: bool = False) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the training and the test part, scaled by what the training part tells.

    For a choice the test part is set aside, and a quarter of the training part takes its place.
    """
    X, y = load_digits(return_X_y=True)
    for _ in range(2 if choosing else 1):
        parts = train_test_split(X, y, test_size=0.25, random_state=0, stratify=y)
        X, y = parts[0], parts[2]
    train, test = (torch.tensor(part, dtype=torch.float32) for part in parts[:2])
    mean, scale = train.mean(), train.std()
    train, test = (train - mean) / scale, (test - mean) / scale
    if images:
        train, test = train.view(-1, 1, 8, 8), test.view(-1, 1, 8, 8)
    return train, test, *(torch.tensor(part) for part in parts[2:])


def perceptron() -> nn.Module:
    """Return a network of 64 inputs and two hidden layers."""
    return nn.Sequential(
        nn.Linear(64, 512), nn.BatchNorm1d(512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)
    )


def convnet() -> nn.Module:
    """Return a network of three convolutions."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(),
        nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(256, 10),
    )  # fmt: skip


def fit(
    model: nn.Module, X: Tensor, y: Tensor, epochs: int, top: float, *, optimizer: torch.optim.Optimizer, compiled: bool
) -> None:
    """Train, at rates up to `top`."""
    run = torch.compile(model) if compiled else model
    rate = torch.optim.lr_scheduler.OneCycleLR(optimizer, top, total_steps=epochs * (len(X) // BATCH))
    model.train()
    for _ in range(epochs):
        for rows in torch.randperm(len(X)).split(BATCH)[: len(X) // BATCH]:
            optimizer.zero_grad()
            nn.functional.cross_entropy(run(X[rows]), y[rows], label_smoothing=0.1).backward()
            optimizer.step()
            rate.step()


MAKE = {"perceptron": perceptron, "convnet": convnet}
# The groups of a weight's second axis are the inputs of its layer: neurons or channels.
AXES: dict[str, dict[str, int | tuple[int, ...]]] = {
    "perceptron": {"3.weight": 0, "5.weight": 0},
    "convnet": {"4.weight": (0, 2, 3), "7.weight": (0, 2, 3)},
}


@torch.no_grad()
def accuracy(predict: Callable[[Tensor], Tensor], X: Tensor, y: Tensor) -> float:
    """Return the share of right answers, in per cent."""
    return 100 * float((predict(X).argmax(1) == y).float().mean())


def dense(kind: str, parts: tuple[Tensor, ...], epochs: int, top: float, compiled: bool = False) -> float:
    """Train without a constraint; return the accuracy on what was held out."""
    X, X_test, y, y_test = parts
    torch.manual_seed(0)
    model = MAKE[kind]()
    fit(model, X, y, epochs, top, optimizer=torch.optim.AdamW(model.parameters()), compiled=compiled)
    return accuracy(model.eval(), X_test, y_test)


def sparse(
    kind: str, parts: tuple[Tensor, ...], epochs: int, top: float, compiled: bool = False
) -> tuple[float, float, Compacted]:
    """Train under a constraint that tightens, freeze the zeros, train on, compact; return both accuracies too."""
    X, X_test, y, y_test = parts
    torch.manual_seed(0)
    model = MAKE[kind]()
    sizes = {name: dict(model.named_parameters())[name].shape[1] for name in AXES[kind]}
    last = {name: normball.L1InfBall(NGroups(int(SHARE * sizes[name])), axis) for name, axis in AXES[kind].items()}
    steps = epochs * (len(X) // BATCH) // 2
    fading = {
        name: normball.L1InfBall(NGroups(CubicSchedule(sizes[name], int(SHARE * sizes[name]), steps)), axis)
        for name, axis in AXES[kind].items()
    }
    optimizer = torch.optim.AdamW(model.parameters())
    descent = DoubleDescent(model, last)
    constraint = constrain(model, optimizer, fading)
    fit(model, X, y, epochs, top, optimizer=optimizer, compiled=compiled)
    constraint.remove()
    descent.project(rewind=False)
    fit(model, X, y, epochs, top, optimizer=torch.optim.AdamW(model.parameters()), compiled=compiled)
    result = compact(model.eval(), X_test)
    return accuracy(model, X_test, y_test), accuracy(result, X_test, y_test), result


def choose(kind: str, epochs: int) -> Rates:
    """Pick the learning rates on the validation part; of equals, the lowest."""
    parts = data(kind == "convnet", choosing=True)
    scores = {
        "dense": {top: dense(kind, parts, epochs, top) for top in RATES},
        "sparse": {top: sparse(kind, parts, epochs, top)[1] for top in RATES},
    }
    print(f"{kind}, validation: {scores}")
    return Rates(**{name: max(RATES, key=lambda top, told=told: (told[top], -top)) for name, told in scores.items()})


def experiment(kind: str, *, epochs: int = 25, compiled: bool = False, rates: Rates | None = None) -> Outcome:
    """Train a network dense and sparse, compact it, and judge all on the test part."""
    rates = rates or CHOSEN[kind]
    parts = data(kind == "convnet")
    whole = dense(kind, parts, epochs, rates.dense, compiled)
    return Outcome(whole, *sparse(kind, parts, epochs, rates.sparse, compiled))


def main() -> None:
    """Run both."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--compile", action="store_true", help="with torch.compile")
    parser.add_argument("--choose", action="store_true", help="pick the learning rates on the validation part")
    parser.add_argument("--epochs", type=int, default=25)
    options = parser.parse_args()
    torch.set_num_threads(1)  # these networks are too small for more
    for kind in ("perceptron", "convnet"):
        rates = choose(kind, options.epochs) if options.choose else CHOSEN[kind]
        outcome = experiment(kind, epochs=options.epochs, compiled=options.compile, rates=rates)
        print(rates)
        print(f"{kind}: dense {outcome.dense:.1f} %, sparse {outcome.sparse:.1f} %, compacted {outcome.small:.1f} %")
        print(outcome.result)


if __name__ == "__main__":
    main()
