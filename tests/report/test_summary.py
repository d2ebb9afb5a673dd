from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from normball.report.cautions import cautions, drifts, main_axis, two_groups
from normball.report.intervals import corrected, wilson
from normball.report.summary import summarise
from normball.report.words import in_short, interval, methods_paragraph, stability_word
from tests.report.synthetic import make_study


@pytest.fixture(scope="module")
def study():
    """One to which no rule applies but that of the baseline, which `with_scores` settles."""
    return make_study(n=120, d=60, repeats=3)


def with_scores(study, **accuracies):
    """The same study with accuracies by method: a number, or one for each fold in turn."""
    scores = study.scores.copy()
    for method, values in accuracies.items():
        rows = scores["method"] == {"ours": "normball", "l1": "L1 logistic", "forest": "random forest"}[method]
        scores.loc[rows, "accuracy"] = np.resize(values, rows.sum())
    return replace(study, scores=scores)


def keys(study):
    return {each.key for each in cautions(study, summarise(study))}


@pytest.fixture
def clean(study):
    found = with_scores(study, ours=[0.93, 0.95, 0.94], l1=[0.83, 0.85, 0.84], forest=[0.7, 0.72])
    assert keys(found) == set()
    return found


def test_the_corrected_interval_is_that_of_nadeau_and_bengio():
    scores = np.random.default_rng(0).uniform(0.7, 1.0, size=15)
    found = corrected(scores, folds=5)
    error = np.sqrt((1 / 15 + 0.25) * scores.var(ddof=1))
    assert found.mean == pytest.approx(scores.mean())
    assert found.high - found.mean == pytest.approx(stats.t.ppf(0.975, 14) * error)
    assert found.mean - found.low == pytest.approx(found.high - found.mean)
    plain = stats.t.interval(0.95, 14, scores.mean(), stats.sem(scores))
    assert found.low < plain[0] < plain[1] < found.high


def test_intervals_of_little():
    assert np.isnan(corrected([], 5).mean)
    assert corrected([0.5, np.nan], 5).mean == 0.5
    assert np.isnan(corrected([0.5], 5).low)
    assert np.isnan(corrected([0.5, 0.6], 1).low)
    low, high = wilson(0, 10)
    assert low == pytest.approx(0.0, abs=1e-12)
    assert 0.2 < high < 0.35


def test_the_summary_counts_what_is_there(study):
    found = summarise(study)
    assert found.counts == {"control": 60, "tumour": 60}
    assert (found.folds, found.repeats, found.chance) == (5, 3, 0.5)
    assert found.n_selected == study.features["selected"].sum()
    mine = study.scores[study.scores["method"] == "normball"]
    assert found.ours.accuracy.mean == pytest.approx(mine["accuracy"].mean())
    assert found.methods[0].method == "normball"
    assert found.baseline is found.methods[1]
    assert found.baseline.accuracy.mean == max(m.accuracy.mean for m in found.methods[1:])


def test_the_difference_is_paired(study):
    noise = np.random.default_rng(0).uniform(0.6, 0.9, size=15)
    found = summarise(with_scores(study, ours=noise + 0.05, l1=noise, forest=0.1))
    assert found.difference.mean == pytest.approx(0.05)
    assert found.difference.low == pytest.approx(0.05)  # the folds differ much, the methods always by the same


def test_scores_without_ours_are_refused(study):
    with pytest.raises(ValueError, match=r"study\.scores: expected rows of the method 'normball', got \['L1"):
        summarise(replace(study, scores=study.scores.query("method != 'normball'")))


def test_a_study_without_baselines_has_none(clean):
    found = replace(clean, scores=clean.scores.query("method == 'normball'"))
    assert summarise(found).baseline is None
    assert keys(found) == set()
    assert len(in_short(found, summarise(found))) == 3


def test_perfect_folds_do_not_make_certain(study):
    found = summarise(with_scores(study, ours=1.0)).ours.accuracy
    assert found.high == pytest.approx(1.0)
    assert 0.9 < found.low < 1.0


@pytest.mark.parametrize(("accuracy", "there"), [([1.0, 0.99], True), ([0.98, 0.99], False)])
def test_perfect_accuracy_is_suspected(clean, accuracy, there):
    found = with_scores(clean, ours=accuracy)
    assert ("leak" in keys(found)) is there
    if there:
        first = cautions(found, summarise(found))[0]
        assert first.grave
        assert found.features["feature"][0] in first.advice


@pytest.mark.parametrize(("accuracy", "there"), [([0.45, 0.6], True), ([0.6, 0.61], False)])
def test_chance(clean, accuracy, there):
    assert ("chance" in keys(with_scores(clean, ours=accuracy, l1=0.1, forest=0.1))) is there


@pytest.mark.parametrize(
    ("l1", "there", "word"),
    [([0.84, 0.85], False, ""), ([0.95, 0.93, 0.94], True, "as good"), ([0.99, 0.98, 0.985], True, "clearly better")],
)
def test_a_baseline_that_does_as_well_is_told(clean, l1, there, word):
    found = with_scores(clean, l1=l1)
    told = [each for each in cautions(found, summarise(found)) if each.key == "baseline"]
    assert bool(told) is there
    assert not there or (word in told[0].seen and "L1 logistic" in told[0].seen)


@pytest.mark.parametrize(
    ("permutations", "there", "grave"),
    [([], False, None), ([0.5] * 19, False, None), ([0.5] * 18, True, False), ([0.5] * 30 + [0.99] * 2, True, True)],
)
def test_permutations(clean, permutations, there, grave):
    found = replace(clean, permutations=permutations)
    told = [each for each in cautions(found, summarise(found)) if each.key == "permutation"]
    assert bool(told) is there
    assert not there or told[0].grave is grave
    if permutations:
        as_good = sum(p >= summarise(found).ours.accuracy.mean for p in permutations)
        assert summarise(found).p_permutation == (1 + as_good) / (1 + len(permutations))


@pytest.mark.parametrize(("n", "there"), [(49, True), (50, False)])
def test_few_samples(n, there):
    assert ("few_samples" in keys(make_study(n=n, d=20))) is there


def relabelled(study, rare):
    """The same study with only so many samples of the second class."""
    names = np.where(np.arange(study.n_samples) < rare, study.classes[1], study.classes[0])
    return replace(study, predictions=study.predictions.assign(label=names))


@pytest.mark.parametrize(
    ("rare", "few", "unequal"), [(19, True, True), (20, False, True), (29, False, True), (30, False, False)]
)
def test_small_and_unequal_classes(clean, rare, few, unequal):
    found = keys(relabelled(clean, rare))
    assert ("few_samples" in found, "imbalance" in found) == (few, unequal)


@pytest.mark.parametrize(("index", "there"), [(0.39, True), (0.4, False), (np.nan, False)])
def test_an_unstable_selection(clean, index, there):
    assert ("unstable" in keys(replace(clean, stability={"index": index, "low": 0.2, "high": 0.5}))) is there


def test_one_score_has_no_interval(clean):
    found = replace(clean, scores=clean.scores.query("repeat == 0 and fold == 0"))
    assert "no_interval" in keys(found)
    assert interval(summarise(found).ours.accuracy) == "unknown, as there is one score only"


def with_latent(study, z):
    latent = study.latent.assign(z0=z, z1=np.random.default_rng(1).normal(size=len(z)) * 0.1)
    return replace(study, latent=latent.assign(predicted=latent["label"]))


@pytest.mark.parametrize(("gap", "there"), [(0.0, False), (3.0, False), (8.0, True)])
def test_two_groups_within_a_class(clean, gap, there):
    rng = np.random.default_rng(0)
    tumour = (clean.latent["label"] == "tumour").to_numpy()
    batch = rng.integers(2, size=len(tumour))
    assert (
        "clusters" in keys(with_latent(clean, 9.0 * tumour + gap * batch * tumour + rng.normal(size=len(tumour))))
    ) is there


def test_misclassified_samples_are_no_group_of_their_own(clean):
    rng = np.random.default_rng(0)
    wrong = rng.random(clean.n_samples) < 0.3
    there = (clean.latent["label"] == "tumour").to_numpy() ^ wrong
    found = with_latent(clean, 20.0 * there + rng.normal(size=clean.n_samples))
    latent = found.latent.assign(predicted=np.where(there, "tumour", "control"))
    assert "clusters" not in keys(replace(found, latent=latent))
    assert "clusters" in keys(found)


@pytest.mark.parametrize(("drift", "there"), [(0.0, False), (3.0, True)])
def test_drift_along_the_table(clean, drift, there):
    rng = np.random.default_rng(0)
    tumour = (clean.latent["label"] == "tumour").to_numpy()
    z = 9.0 * tumour + drift * np.linspace(0, 1, len(tumour)) + rng.normal(size=len(tumour))
    assert ("order" in keys(with_latent(clean, z))) is there


def test_a_table_sorted_by_class_is_no_drift():
    labels = np.repeat(["a", "b"], 40)
    z = np.where(labels == "a", 0.0, 9.0)[:, None] + np.random.default_rng(0).normal(size=(80, 1))
    assert not drifts(z, pd.Series(labels))
    assert not drifts(z[:10], pd.Series(labels[:10]))


def test_the_share_of_two_groups():
    rng = np.random.default_rng(0)
    assert two_groups(rng.normal(size=5000)) == pytest.approx(2 / np.pi, abs=0.02)
    assert two_groups(np.repeat([0.0, 1.0], 10)) == pytest.approx(1.0)
    assert two_groups(np.zeros(30)) == 0.0
    assert two_groups(np.r_[np.zeros(29), 1.0]) < 0.2  # one outlier is no group
    line = np.outer(rng.normal(size=50), [3.0, 4.0])
    assert np.abs(main_axis(line)).max() == pytest.approx(np.linalg.norm(line - line.mean(0), axis=1).max())


def test_the_words_tell_the_numbers(clean):
    found = replace(clean, permutations=[0.5] * 99)
    said = " ".join(in_short(found, summarise(found)))
    for part in ("120 samples", "60 features", "2 classes", "control: 60", "94.0\xa0%", "50.0\xa0%", "L1 logistic",
                 "clearly better", "p = 0.01"):  # fmt: skip
        assert part in said
    paragraph = methods_paragraph(found, summarise(found))
    for part in ("normball 0.1.0", "l1,inf", "3 repeats of stratified 5-fold", "99 permutations",
                 "2 constant features left out", "Logarithms to base 2 were taken", "Random seeds: 0, 1"):  # fmt: skip
        assert part in paragraph
    assert "delimiter" not in paragraph
    settings = {**found.settings, "norm": None, "group": "patient"}
    other = methods_paragraph(replace(found, settings=settings), summarise(found))
    assert "without a projection" in other
    assert "samples of each patient kept in one fold" in other


def test_words_for_stability():
    assert [stability_word(x) for x in (0.1, 0.4, 0.75, 0.76, np.nan)] == [
        "poor",
        "fair to good",
        "fair to good",
        "excellent",
        "unknown",
    ]
