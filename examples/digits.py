"""Sparse training on scikit-learn's digits: ``python examples/digits.py [--compile]``.

A perceptron that keeps at most 30 % of its hidden neurons, and a small convnet that keeps at most 30 % of
its channels. Each is trained dense for comparison, trained under the constraint, compacted, and measured.
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
from normball.nn import Compacted, Cubic, DoubleDescent, NGroups, compact, constrain

SHARE = 0.3
BATCH = 128


@dataclass(frozen=True)
class Outcome:
    """Accuracies on the test part, and the small network."""

    dense: float
    sparse: float
    small: float
    result: Compacted


def data(images: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the training and the test part, scaled by what the training part tells."""
    digits = load_digits()
    parts = train_test_split(digits.data, digits.target, test_size=0.25, random_state=0, stratify=digits.target)
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
    model: nn.Module, X: Tensor, y: Tensor, epochs: int, *, optimizer: torch.optim.Optimizer, compiled: bool
) -> None:
    """Train."""
    run = torch.compile(model) if compiled else model
    rate = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=epochs * (len(X) // BATCH))
    model.train()
    for _ in range(epochs):
        for rows in torch.randperm(len(X)).split(BATCH)[: len(X) // BATCH]:
            optimizer.zero_grad()
            nn.functional.cross_entropy(run(X[rows]), y[rows], label_smoothing=0.1).backward()
            optimizer.step()
            rate.step()


@torch.no_grad()
def accuracy(predict: Callable[[Tensor], Tensor], X: Tensor, y: Tensor) -> float:
    """Return the share of right answers, in per cent."""
    return 100 * float((predict(X).argmax(1) == y).float().mean())


def experiment(kind: str, *, epochs: int = 25, compiled: bool = False) -> Outcome:
    """Train a network dense and sparse, and compact it."""
    images = kind == "convnet"
    X, X_test, y, y_test = data(images)
    make = convnet if images else perceptron
    # The groups of a weight's second axis are the inputs of its layer: pixels, neurons or channels.
    axes = {"4.weight": (0, 2, 3), "7.weight": (0, 2, 3)} if images else {"3.weight": 0, "5.weight": 0}
    torch.manual_seed(0)
    dense = make()
    fit(dense, X, y, epochs, optimizer=torch.optim.AdamW(dense.parameters()), compiled=compiled)

    torch.manual_seed(0)
    model = make()
    sizes = {name: dict(model.named_parameters())[name].shape[1] for name in axes}
    last = {name: normball.L1InfBall(NGroups(int(SHARE * sizes[name])), axis) for name, axis in axes.items()}
    steps = epochs * (len(X) // BATCH) // 2
    fading = {
        name: normball.L1InfBall(NGroups(Cubic(sizes[name], int(SHARE * sizes[name]), steps)), axis)
        for name, axis in axes.items()
    }
    optimizer = torch.optim.AdamW(model.parameters())
    descent = DoubleDescent(model, last)
    constraint = constrain(model, optimizer, fading)
    fit(model, X, y, epochs, optimizer=optimizer, compiled=compiled)
    constraint.remove()
    descent.project(rewind=False)
    fit(model, X, y, epochs, optimizer=torch.optim.AdamW(model.parameters()), compiled=compiled)
    result = compact(model.eval(), X_test)
    return Outcome(
        accuracy(dense.eval(), X_test, y_test), accuracy(model, X_test, y_test),
        accuracy(result, X_test, y_test), result,
    )  # fmt: skip


def main() -> None:
    """Run both."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--compile", action="store_true", help="with torch.compile")
    parser.add_argument("--epochs", type=int, default=25)
    options = parser.parse_args()
    torch.set_num_threads(1)  # these networks are too small for more
    for kind in ("perceptron", "convnet"):
        outcome = experiment(kind, epochs=options.epochs, compiled=options.compile)
        print(f"{kind}: dense {outcome.dense:.1f} %, sparse {outcome.sparse:.1f} %, compacted {outcome.small:.1f} %")
        print(outcome.result)


if __name__ == "__main__":
    main()
