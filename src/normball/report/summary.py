"""The numbers at the top of a report, computed from the record of a study; nothing here draws or writes."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from normball.report.intervals import Estimate, corrected, wilson
from normball.selection.results import OURS, Study

__all__ = ["MethodSummary", "Summary", "summarise"]


@dataclass(frozen=True)
class MethodSummary:
    """One method over all its folds and repeats."""

    method: str
    accuracy: Estimate
    balanced_accuracy: float
    auc: float
    n_features: float
    seconds: float


@dataclass(frozen=True)
class Summary:
    """What the first lines of a report say.

    Attributes
    ----------
    counts : dict
        Samples of each class, in the order of the classes.
    folds, repeats : int
        Of the outer cross-validation.
    ours : MethodSummary
    chance : float
        Share of the most frequent class: the accuracy of always guessing it.
    methods : list of MethodSummary
        Ours first, then the baselines, best first.
    baseline : MethodSummary or None
        The most accurate baseline.
    difference : Estimate or None
        Our accuracy minus its, paired over the common folds.
    n_selected : int
        Features in the final model.
    stability : Estimate
        The index of Nogueira, Sechidis and Brown.
    p_permutation : float or None
        Share of shuffled runs that do as well, the run itself counted among them.
    """

    counts: dict[str, int]
    folds: int
    repeats: int
    ours: MethodSummary
    chance: float
    methods: list[MethodSummary]
    baseline: MethodSummary | None
    difference: Estimate | None
    n_selected: int
    stability: Estimate
    p_permutation: float | None
    n_permutations: int


def summarise(study: Study) -> Summary:
    """Compute all of it."""
    scores = study.scores
    folds, repeats = int(scores["fold"].nunique()), int(scores["repeat"].nunique())
    labels = study.predictions["label"].astype(str)
    counts = {str(name): int((labels == str(name)).sum()) for name in study.classes}
    methods = [_method(str(name), part, folds, study.n_samples) for name, part in scores.groupby("method", sort=False)]
    ours = next((m for m in methods if m.method == OURS), None)
    if ours is None:
        raise ValueError(f"study.scores: expected rows of the method {OURS!r}, got {sorted(m.method for m in methods)}")
    baselines = sorted((m for m in methods if m is not ours), key=lambda m: -np.nan_to_num(m.accuracy.mean, nan=-1.0))
    best = baselines[0] if baselines else None
    stability = Estimate(*(float(np.minimum(1.0, study.stability[key])) for key in ("index", "low", "high")))
    shuffled = np.asarray(study.permutations, dtype=np.float64)
    as_good = int((shuffled >= ours.accuracy.mean - 1e-12).sum())
    return Summary(
        counts=counts,
        folds=folds,
        repeats=repeats,
        ours=ours,
        chance=max(counts.values()) / max(1, sum(counts.values())),
        methods=[ours, *baselines],
        baseline=best,
        difference=_difference(scores, best.method, folds) if best else None,
        n_selected=int(study.features["selected"].astype(bool).sum()),
        stability=stability,
        p_permutation=(1 + as_good) / (1 + len(shuffled)) if len(shuffled) else None,
        n_permutations=len(shuffled),
    )


def _method(name: str, part: pd.DataFrame, folds: int, n_samples: int) -> MethodSummary:
    accuracy = corrected(part["accuracy"], folds)
    if accuracy.low == accuracy.high:  # every fold alike, as where all is perfect: that is no proof of certainty
        low, high = wilson(accuracy.mean * n_samples, n_samples)
        accuracy = Estimate(accuracy.mean, float(low), float(high))
    accuracy = Estimate(accuracy.mean, *(float(np.clip(end, 0.0, 1.0)) for end in (accuracy.low, accuracy.high)))
    means = part[["balanced_accuracy", "auc", "n_features", "seconds"]].astype(float).mean()
    return MethodSummary(name, accuracy, *(float(value) for value in means))


def _difference(scores: pd.DataFrame, rival: str, folds: int) -> Estimate:
    table = scores.pivot_table(index=["repeat", "fold"], columns="method", values="accuracy")
    return corrected(table[OURS] - table[rival], folds)
