"""The pieces of a study: one outer fold, one permutation, the final model. Each needs nothing of the others.

A unit gives the same bits wherever and whenever it runs: it draws from seeds of its own, and on one thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.pipeline import Pipeline

from normball.estimators import SupervisedAutoencoder
from normball.estimators.attribution import chosen_attributions
from normball.selection import folds
from normball.selection.preparation import Impute, Log
from normball.selection.results import OURS
from normball.selection.rivals import RIVALS
from normball.selection.settings import Settings

__all__ = ["Data", "Unit", "run", "units_of"]

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]
Unit = tuple[str | int, ...]

INNER = 5  # folds of our own choices
INNER_RIVALS = 3
ROWS = 64  # of a test part that are prepared at a time
_PERMUTED = 7919  # sets the seeds of the permutations apart from all others


@dataclass(frozen=True)
class Data:
    """A table as the units see it: labels and groups are numbers."""

    X: npt.NDArray[Any]
    y: Indices
    classes: list[str]
    groups: Indices | None


def units_of(settings: Settings) -> list[Unit]:
    """Return all the units of a study, in the order in which they start."""
    made: list[Unit] = [("fold", repeat, fold) for repeat in range(settings.seeds) for fold in range(settings.folds)]
    return [*made, ("final",), *[("permutation", number) for number in range(settings.permutations)]]


def run(data: Data, settings: Settings, unit: Unit) -> tuple[Unit, dict[str, Any], Any]:
    """Compute one unit: what it found, as JSON can hold it, and for the final one the fitted pipeline."""
    start = time.perf_counter()
    model = None
    match unit:
        case ("fold", int(repeat), int(fold)):
            found = _fold(data, settings, repeat, fold)
        case ("permutation", int(number)):
            found = _permutation(data, settings, number)
        case _:
            found, model = _final(data, settings)
    return unit, found | {"seconds": time.perf_counter() - start}, model


def _model(data: Data, settings: Settings, rows: Indices, y: Indices, seed: int, told: Any = None) -> Pipeline:
    groups = None if data.groups is None else data.groups[rows]
    sae = SupervisedAutoencoder(
        settings.n_features,
        radius=settings.radius,
        norm=settings.norm,
        epochs=settings.epochs,
        device=settings.device,
        cv=folds.inner(y[rows], groups, INNER, seed),
        random_state=seed,
        callback=told,
    )
    return Pipeline([("impute", Impute(settings.impute)), ("log", Log(settings.log)), ("autoencoder", sae)])


def _prepared(model: Pipeline, X: npt.NDArray[Any], fit: bool) -> npt.NDArray[Any]:
    """Take rows that are a copy through all the steps before the last, in place."""
    for _, step in model.steps[:-1]:
        step.copy = False
        X = (step.fit(X) if fit else step).transform(X)
        step.copy = True
    return X


def _fitted(
    data: Data, settings: Settings, train: Indices, y: Indices, seed: int, told: Any = None
) -> tuple[Pipeline, npt.NDArray[Any]]:
    """Fit to some rows; returns the pipeline, and the rows as its last step saw them."""
    model = _model(data, settings, train, y, seed, told)
    A = _prepared(model, np.asarray(data.X)[train], fit=True)
    labels = np.array(data.classes, dtype=object)[y[train]]
    model[-1].fit(A, labels)
    return model, A


def _proba(model: Pipeline, B: npt.NDArray[Any], classes: list[str]) -> Floats:
    """Probabilities of prepared rows, with a column for each class."""
    proba = np.zeros((len(B), len(classes)))
    seen = np.searchsorted(np.array(classes, dtype=object), model[-1].classes_)
    proba[:, seen] = model[-1].predict_proba(B)
    return proba


def _fold(data: Data, settings: Settings, repeat: int, fold: int) -> dict[str, Any]:
    seed = settings.random_state + repeat
    train, test = folds.outer(data.y, data.groups, settings.folds, seed, data.classes)[fold]
    start = time.perf_counter()
    model, A = _fitted(data, settings, train, data.y, seed)
    sae = model[-1]

    def tested(proba: Callable[[Any], Floats]) -> Floats:
        """Ask for some rows at a time, so that the test part is never there as a whole beside the training part."""
        parts = np.array_split(test, -(-len(test) // ROWS))
        return np.vstack([proba(_prepared(model, np.asarray(data.X)[part], fit=False)) for part in parts])

    mine = tested(lambda B: _proba(model, B, data.classes))
    methods = {OURS: (mine, int(sae.support_.sum()), time.perf_counter() - start)}
    groups = None if data.groups is None else data.groups[train]
    splits = folds.inner(data.y[train], groups, INNER_RIVALS, seed)
    for name, rival in RIVALS.items():
        start = time.perf_counter()
        fitted = rival(A, data.y[train], len(data.classes), splits, seed)
        methods[name] = (tested(fitted.proba), fitted.n_features, time.perf_counter() - start)
    return {
        "test": test.tolist(),
        "methods": {
            name: {"proba": proba.tolist(), "n_features": count, "seconds": seconds}
            for name, (proba, count, seconds) in methods.items()
        },
        **_chosen(sae),
        "log": str(model["log"]),
    }


def _chosen(sae: Any) -> dict[str, Any]:
    return {
        "chosen": sae.get_support(indices=True).tolist(),
        "radius": sae.radius_,
        "theta": sae.theta_,
        "head": sae.head_,
    }


def _splits_of_shuffled(data: Data, settings: Settings, y: Indices, number: int) -> Iterator[tuple[Indices, Indices]]:
    """Yield folds; of shuffled groups a class may be all in one fold, and then others are drawn."""
    for attempt in range(100):
        try:
            yield from folds.outer(y, data.groups, settings.folds, settings.random_state + attempt, data.classes)
            return
        except ValueError:
            if data.groups is None or attempt == 99:
                raise


def _permutation(data: Data, settings: Settings, number: int) -> dict[str, Any]:
    """Score the whole procedure, over the folds of the first repeat, on labels in another order."""
    y = folds.shuffled(data.y, data.groups, [settings.random_state, _PERMUTED, number])
    scores = []
    for train, test in _splits_of_shuffled(data, settings, y, number):
        try:
            model, _ = _fitted(data, settings, train, y, settings.random_state)
            B = _prepared(model, np.asarray(data.X)[test], fit=False)
            guess = _proba(model, B, data.classes).argmax(1)
        except ValueError:
            if settings.radius is None:
                raise
            guess = np.full(len(test), np.bincount(y[train]).argmax())  # the radius left no feature: it knows nothing
        scores.append(float((guess == y[test]).mean()))
    return {"accuracy": float(np.mean(scores))}


def _final(data: Data, settings: Settings) -> tuple[dict[str, Any], Pipeline]:
    """Fit to all the samples, by the same procedure."""
    losses: list[dict[str, Any]] = []
    everyone = np.arange(len(data.y))
    model, A = _fitted(data, settings, everyone, data.y, settings.random_state, losses.append)
    sae = model[-1]
    sae.callback, sae.cv = None, None
    try:
        importance = np.abs(chosen_attributions(sae, A)).mean(1)
        how = "integrated gradients"
    except ImportError:
        importance = np.tile(sae.feature_importances_[sae.get_support()], (len(data.classes), 1))
        how = "first layer"
    kept = [each for each in losses if not each["stage"].startswith("fold")]
    found = {
        **_chosen(sae),
        "attribution": how,
        "importance": importance.tolist(),
        "latent": sae.transform(A).tolist(),
        "path": {name: np.asarray(values).tolist() for name, values in sae.feature_path_.items()},
        "losses": {name: [each[name] for each in kept] for name in ("stage", "epoch", "loss")},
        "log": str(model["log"]),
    }
    return found, model
