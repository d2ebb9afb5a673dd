import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from normball.report.curves import calibration, confusion, heat_order, latent_axes, roc_curves, standardised
from normball.report.palette import COLOURS, turn
from normball.report.payload import SAMPLES, TABLE_ROWS, payload
from normball.report.summary import summarise
from normball.report.text import script_json
from tests.report.synthetic import make_study


@pytest.fixture(scope="module")
def study():
    return make_study(n=100, d=40, classes=("a", "b", "c"))


def test_the_confusion_matrix_counts_each_sample_once(study):
    counts = confusion(study)
    assert counts.sum() == 100
    for i, true in enumerate(study.classes):
        for j, named in enumerate(study.classes):
            assert counts[i, j] == sum((study.predictions["label"] == true) & (study.predictions["predicted"] == named))


def test_areas_are_the_shares_of_ordered_pairs(study):
    curves = roc_curves(study)
    assert [curve.name for curve in curves] == study.classes
    for curve in curves:
        p, mine = study.predictions[f"p:{curve.name}"].to_numpy(), (study.predictions["label"] == curve.name).to_numpy()
        gap = p[mine][:, None] - p[~mine]
        assert curve.auc == pytest.approx((gap > 0).mean() + (gap == 0).mean() / 2)
        assert np.trapezoid(curve.true_positive, curve.false_positive) == pytest.approx(curve.auc, abs=0.01)


def test_two_classes_have_one_curve():
    assert [curve.name for curve in roc_curves(make_study(n=60, d=20))] == ["tumour"]


def test_calibration_bins_hold_all_samples(study):
    bins = calibration(study)
    right = study.predictions["label"] == study.predictions["predicted"]
    assert bins.count.sum() == 100
    assert (bins.right * bins.count).sum() == pytest.approx(right.sum())
    assert (np.diff(bins.confidence) >= 0).all()
    assert ((bins.low <= bins.right + 1e-12) & (bins.right <= bins.high + 1e-12)).all()
    assert 0 <= bins.error <= 1


def test_standardised_columns():
    values = pd.DataFrame(
        {"a": [1.0, 2.0, 3.0], "same": 5.0, "gap": [1.0, np.nan, 3.0], "large": [1e308, -1e308, 0.0], "none": np.nan}
    )
    z = standardised(values)
    assert np.isfinite(z).all()
    assert z[:, 0] == pytest.approx([-np.sqrt(1.5), 0, np.sqrt(1.5)])
    assert (z[:, [1, 4]] == 0).all()
    assert z[:, 2] == pytest.approx([-1, 0, 1])
    assert z[:, 3] == pytest.approx([np.sqrt(1.5), -np.sqrt(1.5), 0])


@given(st.floats(-1e300, 1e300), st.integers(1, 70))
def test_a_constant_column_stays_flat(value, rows):
    assert (standardised(pd.DataFrame({"same": np.full(rows, value)})) == 0).all()


@given(arrays(float, (9, 3), elements=st.integers(-1000, 1000)))
def test_standardised_columns_are_those_of_the_textbook(x):
    spread = x.std(0)
    expected = np.where(spread > 0, (x - x.mean(0)) / np.where(spread > 0, spread, 1), 0)
    assert standardised(pd.DataFrame(x)) == pytest.approx(expected, abs=1e-6)


def test_the_heat_map_keeps_classes_together_and_neighbours_alike():
    rng = np.random.default_rng(0)
    pattern = np.repeat(np.eye(2), 10, axis=0)[rng.permutation(20)]
    z = (pattern @ rng.normal(size=(2, 8)) + 0.01 * rng.normal(size=(20, 8))) * 5
    groups = np.repeat(["a", "b"], 10)
    samples, features = heat_order(z, groups)
    assert sorted(samples) == list(range(20))
    assert sorted(features) == list(range(8))
    assert list(groups[samples]) == list(groups)
    for part in (samples[:10], samples[10:]):  # within a class, each of the two patterns stands in one block
        assert np.abs(np.diff(pattern[part, 0])).sum() <= 1


def test_latent_axes_are_a_rotation(study):
    axes = latent_axes(study)
    assert axes[2].title == "score for a"
    z = study.latent[["z0", "z1", "z2"]].to_numpy()
    assert axes[0].values.var() >= axes[1].values.var()
    assert axes[0].values.var() == pytest.approx(np.linalg.eigvalsh(np.cov(z.T, bias=True))[-1])
    assert np.corrcoef(axes[0].values, axes[1].values)[0, 1] == pytest.approx(0, abs=1e-9)


def test_the_page_is_bounded_however_large_the_study(monkeypatch):
    study = make_study(n=300, d=500, n_selected=200)
    monkeypatch.setattr("normball.report.payload.TABLE_ROWS", 100)
    monkeypatch.setattr("normball.report.payload.SAMPLES", 150)
    monkeypatch.setattr("normball.report.payload.CELLS", 6000)
    monkeypatch.setattr("normball.report.payload.HEAT_SAMPLES", 50)
    data = payload(study, summarise(study))
    assert (TABLE_ROWS, SAMPLES) == (25_000, 5_000)
    assert len(data["features"]["feature"]) == 100
    assert data["features"]["total"] == 500
    assert 140 <= len(data["samples"]["name"]) <= 150
    assert data["samples"]["left_out"] == 300 - len(data["samples"]["name"])
    assert len(data["values"]["columns"]) == 40
    assert np.shape(data["values"]["z"]) == (40, 50)
    wrong = (study.predictions["label"] != study.predictions["predicted"]).sum()
    assert sum(a != b for a, b in zip(data["samples"]["label"], data["samples"]["predicted"], strict=True)) == min(
        wrong, 75
    )
    script_json(data)


def test_values_and_names_stay_together(study):
    data = payload(study, summarise(study))
    for name, row, column in zip(
        data["values"]["feature"], data["values"]["row"], data["values"]["columns"], strict=True
    ):
        assert data["features"]["feature"][row] == name
        assert column == pytest.approx(study.values[name].tolist(), rel=1e-3)
    z = standardised(study.values)
    heat = z[np.ix_(data["values"]["heat_samples"], data["values"]["heat_features"])].T
    assert np.array(data["values"]["z"]) == pytest.approx(heat, rel=0.06)
    labels = [data["samples"]["label"][i] for i in data["values"]["heat_samples"]]
    assert labels == sorted(labels)
    assert [data["classes"][i] for i in data["samples"]["label"]] == list(study.predictions["label"])


def test_classes_beyond_the_palette_differ():
    assert len({(i % len(COLOURS), turn(i)) for i in range(64)}) == 64


def test_gaps_are_null_and_empty_parts_are_left_out(study):
    from dataclasses import replace

    values = study.values.copy()
    values.iloc[3, 0] = np.nan
    gone = replace(study, values=values, path=study.path[:0], losses=study.losses[:0])
    data = payload(gone, summarise(gone))
    assert data["values"]["columns"][0][3] is None
    assert data["losses"] == []
    script_json(data)
