"""What the report says in sentences: the result in short, the methods paragraph, and what each number means."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from normball.report.cautions import GOOD_STABILITY, POOR_STABILITY
from normball.report.intervals import Estimate
from normball.report.summary import Summary
from normball.report.text import percent, short
from normball.selection.results import Study

__all__ = ["GLOSSARY", "in_short", "interval", "methods_paragraph", "points", "stability_word"]

GLOSSARY = {
    "Accuracy": "The share of samples that were classified correctly by a model that had not seen them.",
    "Interval": "A range that holds the true accuracy in about 95 of 100 such studies: the corrected resampled t "
    "interval of Nadeau and Bengio, which allows for folds that share training samples.",
    "Chance": "What you get by always saying the most frequent class.",
    "Balanced accuracy": "The accuracy within each class, averaged over the classes: a rare class counts as much as "
    "a frequent one.",
    "Baseline": "A well-known simple method, run on the very same folds.",
    "Area under the curve (AUC)": "How often a sample of the class scores higher than one of another class: 0.5 is "
    "chance, 1 is perfect.",
    "Selection frequency": "How often the feature was selected over folds and repeats, each of which leaves out other "
    "samples.",
    "Stability": "Agreement of the selections over folds and repeats (index of Nogueira and others): 1 is always the "
    "same features, 0 is no more than by chance; below 0.4 is poor, above 0.75 excellent.",
    "Importance": "How much the model's answer depends on the feature.",
    "Effect": "The difference between the class means in standard deviations; beyond two classes, the share of the "
    "variance that the classes explain (eta squared).",
    "p and q": "p: how often chance alone gives such a difference for one feature. q: the same after correction for "
    "the number of features (Benjamini-Hochberg): of the features with q below 0.05, about 5 % are false finds.",
    "Confidence": "The probability that the model gives to the class it predicts.",
    "Calibration": "Whether predictions made with 80 % confidence are right 80 % of the time.",
    "Latent space": "What the network makes of each sample before it decides on a class: samples that it takes for "
    "alike lie close together.",
    "Radius": "How much weight the first layer of the network may have in all: the smaller, the fewer features.",
    "Shuffled labels": "The same procedure with labels dealt out at random: what it finds then is chance.",
}


def points(value: float) -> str:
    """Write a difference of shares in points of per cent, with its sign."""
    return f"{100.0 * value:+.1f}".replace("-", "\N{MINUS SIGN}")


def interval(estimate: Estimate) -> str:
    """Write the ends of an interval of shares, or nothing where there is none."""
    if not np.isfinite(estimate.low):
        return "unknown, as there is one score only"
    return f"{100.0 * estimate.low:.1f} to {percent(estimate.high)}"


def stability_word(index: float) -> str:
    """Put the index in a word, by the levels of its authors."""
    if not np.isfinite(index):
        return "unknown"
    return "poor" if index < POOR_STABILITY else "excellent" if index > GOOD_STABILITY else "fair to good"


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def in_short(study: Study, summary: Summary) -> list[str]:
    """Return the result as three or four sentences."""
    counts = [f"{short(name)}: {count}" for name, count in summary.counts.items()]
    listed = ", ".join(counts[:8]) + (", …" if len(counts) > 8 else "")
    ours = summary.ours.accuracy
    said = [
        f"The table has {_many(study.n_samples, 'sample')}, {_many(study.n_features, 'feature')} and "
        f"{len(study.classes)} classes ({listed}).",
        f"On samples that it has not seen, the model is right in {percent(ours.mean)} of the cases (95 % "
        f"interval: {interval(ours)}); always saying the most frequent class would give {percent(summary.chance)}.",
    ]
    if summary.baseline is not None and summary.difference is not None:
        said.append(_against(summary.baseline.method, summary.baseline.accuracy.mean, summary.difference))
    word = stability_word(summary.stability.mean)
    stable = "" if word == "unknown" else (
        f"; over folds and repeats the selection has a stability of {summary.stability.mean:.2f}, which is {word}"
    )  # fmt: skip
    said.append(f"The final model uses {_many(summary.n_selected, 'feature')} of {study.n_features:,}{stable}.")
    if summary.p_permutation is not None:
        said.append(
            f"Shuffled labels, in {_many(summary.n_permutations, 'run')} of the same procedure, do as well with "
            f"p = {summary.p_permutation:.2g}."
        )
    return said


def _against(name: str, accuracy: float, difference: Estimate) -> str:
    sentence = f"The best simple method, {short(name)}, reaches {percent(accuracy)}: "
    if not np.isfinite(difference.low):
        return sentence + f"a difference of {points(difference.mean)} points."
    verdict = (
        "the model is clearly better"
        if difference.low > 0
        else "the simple method is clearly better"
        if difference.high < 0
        else "no clear difference"
    )
    return (
        sentence + f"{verdict} ({points(difference.mean)} points, 95 % interval {points(difference.low)} to "
        f"{points(difference.high)})."
    )


def methods_paragraph(study: Study, summary: Summary) -> str:
    """Return the paragraph for a paper: what was done, by which settings, judged how."""
    return " ".join(_methods(study, summary, study.settings))


def _methods(study: Study, summary: Summary, settings: dict[str, Any]) -> Iterator[str]:
    norms = {"l1inf": "l1,inf", "l12": "l1,2", "l1": "l1", "bilevel_l1inf": "bilevel l1,inf"}
    norm = settings.get("norm", "l1inf")
    version = settings.get("versions", {}).get("normball", "")
    yield (
        f"Features that discriminate between {len(study.classes)} classes were selected among {study.n_features:,} "
        f"features of {study.n_samples:,} samples with normball{f' {version}' if version else ''}."
    )
    for note in (short(note, 300) for note in study.notes):
        text = note.partition(": ")[2] if note.startswith("log=") else note
        if text != note or any(word in note for word in ("left out", "filled")):  # not of the file, but of the values
            text = text.replace(" taken", " were taken").replace(" filled,", " were filled,")
            yield f"{text[:1].upper()}{text[1:].rstrip('.')}."
    if norm in (None, "none"):
        yield "A supervised autoencoder was trained on all the features, without a projection."
    else:
        yield (
            "A supervised autoencoder was trained whose first layer was constrained to the "
            f"{norms.get(str(norm), str(norm))} ball, which sets the weights of whole features to zero (Perez, Condat "
            "and Barlaud, 2023)."
        )
    yield (
        f"The procedure was judged by {summary.repeats} repeat{'s' if summary.repeats != 1 else ''} of stratified "
        f"{summary.folds}-fold cross-validation"
        + (f", with the samples of each {short(settings['group'])} kept in one fold" if settings.get("group") else "")
        + "; imputation, transformation, scaling and the choice of the number of features took place inside the "
        "training folds, and each test fold was used for scoring only."
    )
    ours = summary.ours
    yield (
        f"The accuracy was {percent(ours.accuracy.mean)} (95 % corrected resampled t interval "
        f"{interval(ours.accuracy)}; Nadeau and Bengio, 2003), the balanced accuracy "
        f"{percent(ours.balanced_accuracy)}; the most frequent class made up {percent(summary.chance)} of the samples."
    )
    if summary.baseline is not None and summary.difference is not None:
        others = ", ".join(f"{m.method} {percent(m.accuracy.mean)}" for m in summary.methods[1:])
        yield f"Baselines on the same folds reached: {others}."
    if np.isfinite(summary.stability.mean):
        yield (
            f"The final model uses {_many(summary.n_selected, 'feature')}; the stability of the selection was "
            f"{summary.stability.mean:.2f} (95 % interval {summary.stability.low:.2f} to {summary.stability.high:.2f}; "
            "Nogueira, Sechidis and Brown, 2018)."
        )
    yield "Univariate p-values were corrected by the method of Benjamini and Hochberg (1995)."
    if summary.p_permutation is not None:
        yield (
            f"The whole procedure was repeated with {summary.n_permutations} permutations of the labels "
            f"(p = {summary.p_permutation:.2g})."
        )
    if "seeds" in settings:
        first = settings["random_state"]
        yield f"Random seeds: {', '.join(str(first + repeat) for repeat in range(settings['seeds']))}."
