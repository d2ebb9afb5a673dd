"""When a report warns: each rule in one place, with a sentence on what was seen and one on what to do."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from normball.report.summary import Summary
from normball.report.text import percent, short
from normball.selection.results import Study

__all__ = ["Caution", "cautions"]

FEW_SAMPLES, FEW_IN_CLASS = 50, 20
POOR_STABILITY, GOOD_STABILITY = 0.4, 0.75  # the levels that the authors of the index propose
IMBALANCE = 3.0
PERFECT = 0.995
SIGNIFICANT = 0.05
TWO_GROUPS, TWO_GROUPS_SAMPLES = 0.85, 30  # a normal class scores 0.64, a uniform one 0.75
DRIFT, DRIFT_P, DRIFT_SAMPLES = 0.3, 0.001, 20

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Caution:
    """One warning: a key for programs, what was seen, what to do. ``grave`` ones put the result itself in doubt."""

    key: str
    grave: bool
    seen: str
    advice: str


def cautions(study: Study, summary: Summary) -> list[Caution]:
    """All warnings that apply, the grave ones first."""
    found = [*_accuracy(study, summary), *_samples(study, summary), *_selection(summary), *_batch(study)]
    return sorted(found, key=lambda each: not each.grave)


def _accuracy(study: Study, summary: Summary) -> Iterator[Caution]:
    ours, baseline, difference = summary.ours.accuracy, summary.baseline, summary.difference
    if ours.mean >= PERFECT:
        first = short(study.features["feature"].iloc[0], 60) if len(study.features) else "the first feature"
        yield Caution(
            "leak",
            True,
            "The accuracy is perfect, or nearly so, which real measurements seldom allow.",
            f"Check that no column gives the label away (look at “{first}” first), and that no sample is there twice; "
            "leave such columns out and run again.",
        )
    elif ours.low <= summary.chance:
        yield Caution(
            "chance",
            True,
            f"The accuracy is not clearly better than guessing the most frequent class ({percent(summary.chance)}).",
            "Do not interpret the selected features; collect more samples, or ask another question of these data.",
        )
    p = summary.p_permutation
    if p is not None and p > SIGNIFICANT:
        enough = 1 / (1 + summary.n_permutations) <= SIGNIFICANT
        yield Caution(
            "permutation",
            enough,
            f"With shuffled labels the same procedure does as well or better too often (p = {p:.2g}, "
            f"{summary.n_permutations} shuffles)."
            if enough
            else f"{summary.n_permutations} shuffles are too few to show significance: p cannot fall below {p:.2g}.",
            "Treat the accuracy as what chance can give."
            if enough
            else f"Ask for at least {round(1 / SIGNIFICANT) - 1} permutations, better 100.",
        )
    if baseline is not None and difference is not None and not difference.low > 0.0:
        known = np.isfinite(difference.low)
        features = f"{baseline.n_features:.0f} feature{'s' if round(baseline.n_features) != 1 else ''} on average"
        if known and difference.high < 0.0:
            seen = f"A simple method, {baseline.method}, is clearly better here"
            advice = f"Prefer {baseline.method} for prediction on these data."
        else:
            seen = f"A simple method, {baseline.method}, is as good within the error of the comparison"
            advice = "Report both; choose by the number of features and by how easily the result is explained."
        yield Caution("baseline", False, f"{seen} ({percent(baseline.accuracy.mean)}, {features}).", advice)
    if not np.isfinite(ours.low):
        yield Caution(
            "no_interval",
            False,
            "There is one score only, so nobody can tell how sure the accuracy is.",
            "Run again with several folds and repeats.",
        )


def _samples(study: Study, summary: Summary) -> Iterator[Caution]:
    rarest, most = (f(summary.counts, key=lambda name: summary.counts[name]) for f in (min, max))
    fewest = summary.counts[rarest]
    if study.n_samples < FEW_SAMPLES or fewest < FEW_IN_CLASS:
        yield Caution(
            "few_samples",
            False,
            f"There are few samples: {study.n_samples} in all, {fewest} in the smallest class, {short(rarest)}.",
            "Read the interval rather than the accuracy, and confirm the features on new samples before you build on "
            "them.",
        )
    if summary.counts[most] > IMBALANCE * fewest:
        yield Caution(
            "imbalance",
            False,
            f"The classes are unequal: {summary.counts[most]} samples of {short(most)}, {fewest} of {short(rarest)}.",
            f"Look at the balanced accuracy ({percent(summary.ours.balanced_accuracy)}) and at the confusion matrix "
            "before the accuracy.",
        )


def _selection(summary: Summary) -> Iterator[Caution]:
    if summary.stability.mean < POOR_STABILITY:
        yield Caution(
            "unstable",
            False,
            f"The selection is unstable (index {summary.stability.mean:.2f}): other samples would have given other "
            "features.",
            "Trust features with a high selection frequency only; correlated features may replace each other.",
        )


def _batch(study: Study) -> Iterator[Caution]:
    """Look for structure in the latent space that the classes do not explain."""
    latent = study.latent
    z = latent[[column for column in latent.columns if column[:1] == "z" and column[1:].isdigit()]].to_numpy(float)
    labels = latent["label"].astype(str)
    settled = np.isfinite(z).all(axis=1) & (labels == latent["predicted"].astype(str)).to_numpy()
    for name in study.classes:
        mine = z[settled & (labels == str(name)).to_numpy()]
        if len(mine) >= TWO_GROUPS_SAMPLES and two_groups(main_axis(mine)) > TWO_GROUPS:
            yield Caution(
                "clusters",
                False,
                f"Samples of the class {short(name)} fall into two separate groups, which the classes do not explain: "
                "perhaps a batch effect, perhaps an unknown subtype.",
                "Compare the names of the samples in both groups (batch, site, date, sex) on the plot of the latent "
                "space, and keep batches together in folds with --group.",
            )
            break
    if drifts(z[settled], labels[settled]):
        yield Caution(
            "order",
            False,
            "Within the classes, the place of a sample in the latent space goes with its place in the table: perhaps a "
            "drift of the instrument, or batches one after the other.",
            "Find out how the table was ordered; if by time or plate, correct for it, or keep batches together in "
            "folds with --group.",
        )


def main_axis(points: Floats) -> Floats:
    """Project the points onto the direction in which they vary most."""
    centred = points - points.mean(0)
    return np.asarray(centred @ np.linalg.svd(centred, full_matrices=False)[2][0])


def two_groups(x: Floats) -> float:
    """Return the share of the variance that goes away when the best cut makes two groups of 15 % or more."""
    x = np.sort(x)
    n, least = len(x), int(np.ceil(0.15 * len(x)))
    if x[0] == x[-1] or n < 2:
        return 0.0
    size = np.arange(1, n)
    sums = np.cumsum(x)
    lower, upper = sums[:-1] / size, (sums[-1] - sums[:-1]) / (n - size)
    between = size * (n - size) / n**2 * (upper - lower) ** 2
    return float(between[least - 1 : n - least].max() / x.var())


def drifts(z: Floats, labels: pd.Series) -> bool:
    """Whether some latent axis, freed of the classes, goes with the order of the samples within their class."""
    if len(z) < DRIFT_SAMPLES:
        return False
    table = pd.DataFrame(z).groupby(labels.to_numpy())
    place = table.cumcount() / table[0].transform("size")
    residual = (pd.DataFrame(z) - table.transform("mean")) / table.transform("std").replace(0.0, np.nan)
    for axis in residual:
        known = residual[axis].notna()
        if known.sum() < DRIFT_SAMPLES:
            continue
        rho, p = stats.spearmanr(place[known], residual.loc[known, axis])
        if abs(rho) > DRIFT and p * residual.shape[1] < DRIFT_P:
            return True
    return False
