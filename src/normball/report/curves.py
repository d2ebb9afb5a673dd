"""What plots need beyond the record: receiver curves, calibration, confusion, the order of a heat map, latent axes."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.cluster.hierarchy import leaves_list, linkage
from sklearn.metrics import roc_auc_score, roc_curve

from normball.report.intervals import wilson
from normball.selection.results import Study

__all__ = ["Axis", "Bins", "Roc", "calibration", "confusion", "heat_order", "latent_axes", "roc_curves", "standardised"]

Floats = npt.NDArray[np.float64]

ROC_POINTS = 200
CLUSTERED = 3000  # a tree of more samples than this takes memory by the square; they stay in the order of the classes


def confusion(study: Study) -> npt.NDArray[np.int64]:
    """Count samples by true class (rows) and predicted class (columns)."""
    names = [str(name) for name in study.classes]
    table = pd.crosstab(study.predictions["label"].astype(str), study.predictions["predicted"].astype(str))
    return np.asarray(table.reindex(index=names, columns=names, fill_value=0), dtype=np.int64)


@dataclass(frozen=True)
class Roc:
    """One class against the others."""

    name: str
    false_positive: Floats
    true_positive: Floats
    auc: float


def roc_curves(study: Study) -> list[Roc]:
    """One curve for two classes, that of the second; beyond, one for each class against the rest."""
    curves = []
    for name in study.classes if len(study.classes) > 2 else study.classes[1:]:
        truth = (study.predictions["label"].astype(str) == str(name)).to_numpy()
        score = study.predictions[f"p:{name}"].to_numpy(float)
        known = np.isfinite(score)
        if not known.any() or truth[known].all() or not truth[known].any():
            continue
        x, y, _ = roc_curve(truth[known], score[known])
        if len(x) > ROC_POINTS:
            kept = np.unique(np.linspace(0, len(x) - 1, ROC_POINTS).round().astype(int))
            x, y = x[kept], y[kept]
        curves.append(Roc(str(name), x, y, float(roc_auc_score(truth[known], score[known]))))
    return curves


@dataclass(frozen=True)
class Bins:
    """Samples of like confidence: how sure, how often right (with Wilson's interval), how many."""

    confidence: Floats
    right: Floats
    low: Floats
    high: Floats
    count: npt.NDArray[np.int64]

    @property
    def error(self) -> float:
        """The expected calibration error: the mean gap between the two."""
        return float(np.abs(self.confidence - self.right) @ self.count / self.count.sum())


def calibration(study: Study) -> Bins | None:
    """Bins with equal numbers of samples, at most ten, of some ten samples or more."""
    table = study.predictions[["confidence"]].astype(float).copy()
    table["right"] = study.predictions["label"].astype(str) == study.predictions["predicted"].astype(str)
    table = table[np.isfinite(table["confidence"])].sort_values("confidence", kind="stable")
    if not len(table):
        return None
    parts = np.array_split(np.arange(len(table)), max(1, min(10, len(table) // 10)))
    means = [table.iloc[part].mean() for part in parts]
    count = np.array([len(part) for part in parts])
    right = np.array([mean["right"] for mean in means], dtype=np.float64)
    low, high = wilson(right * count, count)
    return Bins(np.array([mean["confidence"] for mean in means], dtype=np.float64), right, low, high, count)


def standardised(values: pd.DataFrame) -> Floats:
    """Each column with mean 0 and deviation 1; missing entries and constant columns become 0."""
    x = values.to_numpy(np.float64)
    known = np.isfinite(x)
    low, high = np.where(known, x, np.inf).min(0, initial=np.inf), np.where(known, x, -np.inf).max(0, initial=-np.inf)
    varied = low < high
    known &= varied
    low, high = np.where(varied, low, -1.0), np.where(varied, high, 1.0)
    middle, half = low / 2 + high / 2, high / 2 - low / 2
    x = (np.where(known, x, middle) - middle) / half  # from -1 to 1: squares of large numbers may overflow
    count = known.sum(0).clip(1)
    x = np.where(known, x - x.sum(0) / count, 0.0)
    deviation = np.sqrt((x**2).sum(0) / count)
    return np.asarray(x / np.where(deviation > 0, deviation, 1.0))


def heat_order(z: Floats, groups: npt.NDArray[Any]) -> tuple[list[int], list[int]]:
    """Return the order of samples (within their class) and of features: leaves of trees of average linkage."""
    samples: list[int] = []
    for group in dict.fromkeys(groups.tolist()):
        mine = np.flatnonzero(groups == group)
        samples += mine[_leaves(z[mine])].tolist()
    return samples, _leaves(z.T).tolist()


def _leaves(points: Floats) -> npt.NDArray[np.int64]:
    if not 2 < len(points) <= CLUSTERED:
        return np.arange(len(points))
    return np.asarray(leaves_list(linkage(points, "average", optimal_ordering=len(points) <= 300)), dtype=np.int64)


@dataclass(frozen=True)
class Axis:
    """One coordinate of the latent space."""

    title: str
    values: Floats


def latent_axes(study: Study) -> list[Axis]:
    """Principal axes first, which show most in two dimensions, then the raw coordinates."""
    names = [name for name in study.latent.columns if name[:1] == "z" and name[1:].isdigit()]
    z = study.latent[names].to_numpy(np.float64)
    raw = [
        Axis(f"score for {study.classes[i]}" if len(names) == len(study.classes) else name, z[:, i])
        for i, name in enumerate(names)
    ]
    if len(names) < 2 or not np.isfinite(z).all():
        return raw
    centred = z - z.mean(0)
    u, s, v = np.linalg.svd(centred, full_matrices=False)
    sign = np.sign(v[np.arange(len(v)), np.abs(v).argmax(1)])  # so that rerunning gives the same picture
    share = s**2 / max(float((s**2).sum()), np.finfo(float).tiny)
    main = [
        Axis(f"main axis {i + 1} ({100 * share[i]:.0f} % of the spread)", u[:, i] * s[i] * sign[i]) for i in range(2)
    ]
    return main + raw
