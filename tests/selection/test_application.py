"""Models as folders, and on new samples; files that are whole and harmless."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from normball.data import read_table
from normball.selection import apply_model, load_model, save_model, units
from normball.selection.application import used_features
from normball.selection.files import csv_text, harmless, on_disk, write_text
from normball.selection.procedure import _data
from normball.selection.settings import Settings


@pytest.fixture(scope="module")
def fitted(make_table):
    table = make_table(missing=0.05, intensities=True)
    _, _, model = units.run(_data(table), Settings(n_features=6, folds=2, epochs=3), ("final",))
    model["impute"].feature_names_in_ = np.array(table.feature_names, dtype=object)
    return model, table


def test_round_trip(fitted, tmp_path):
    model, table = fitted
    save_model(model, tmp_path / "model")
    save_model(model, tmp_path / "model")  # over the first
    again = load_model(tmp_path / "model")
    np.testing.assert_array_equal(model.predict_proba(table.X), again.predict_proba(table.X))
    assert list(again.feature_names_in_) == table.feature_names
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]
    assert not any(path.suffix in (".pkl", ".joblib") for path in (tmp_path / "model").iterdir())


@pytest.mark.parametrize("spoil", ["gone", "empty", "other", "torn"])
def test_what_is_no_model(fitted, tmp_path, spoil):
    save_model(fitted[0], tmp_path / "model")
    path = tmp_path / "model" / "model.json"
    if spoil == "gone":
        path.unlink()
    elif spoil == "empty":
        path.write_text("{}")
    elif spoil == "other":
        path.write_text(path.read_text().replace('"format": 1', '"format": 99'))
    else:
        (tmp_path / "model" / "autoencoder.safetensors").write_bytes(b"torn")
    with pytest.raises(ValueError, match="model: expected a folder that normball select has written"):
        load_model(tmp_path / "model")


def test_the_folder_around_a_model(fitted, tmp_path):
    save_model(fitted[0], tmp_path / "model")
    with pytest.raises(ValueError, match=f"got {tmp_path}; did you mean {tmp_path / 'model'}\\?"):
        load_model(tmp_path)


def test_columns_are_matched_by_name(fitted):
    model, table = fitted
    expected = model.predict_proba(table.X)
    order = np.random.default_rng(0).permutation(20)
    moved = replace(table, X=table.X[:, order], feature_names=[table.feature_names[k] for k in order], y=None)
    found = apply_model(model, moved)
    np.testing.assert_allclose(found.predictions[["p:ill", "p:well"]].to_numpy(), expected, rtol=1e-6)
    assert (found.missing, found.unused, found.extra, found.warnings) == ([], 0, [], [])
    one = apply_model(model, replace(table, X=table.X[:1], sample_ids=["s0"], y=None))
    np.testing.assert_allclose(one.predictions["p:ill"], expected[:1, 0], rtol=1e-6)


def test_missing_and_extra_columns(fitted):
    model, table = fitted
    used = model[-1].get_support(indices=True)
    idle = [k for k in range(20) if k not in used]

    def without(gone, extra=()):
        kept = [k for k in range(20) if k not in gone]
        X = np.hstack([table.X[:, kept], np.ones((48, len(extra)), np.float32)])
        return replace(table, X=X, feature_names=[*(table.feature_names[k] for k in kept), *extra])

    found = apply_model(model, without(idle[:3], ["new", "=cmd"]))
    assert (found.missing, found.unused, found.extra) == ([], 3, ["new", "=cmd"])
    one = apply_model(model, without(used[:1]))
    assert one.missing == [table.feature_names[used[0]]]
    X = table.X.copy()
    X[:, used[0]] = np.nan
    np.testing.assert_allclose(one.predictions["p:ill"], model.predict_proba(X)[:, 0], rtol=1e-6)
    with pytest.raises(ValueError, match="6 features that the model uses, got 4; missing"):
        apply_model(model, without(used[:2]))
    with pytest.raises(ValueError, match=r"none of the 6 features .* are the samples in columns"):
        apply_model(model, replace(table, feature_names=[f"x{k}" for k in range(20)]))


def test_what_a_model_needs_of_a_table(fitted, tmp_path):
    model, table = fitted
    assert used_features(model) == [table.feature_names[k] for k in model[-1].get_support(indices=True)]
    frame = pd.DataFrame(table.X, columns=table.feature_names, index=table.sample_ids)
    idle = next(name for name in table.feature_names if name not in used_features(model))
    frame.assign(**{idle: "text", "site": "Rome", "dx": table.y}).to_csv(tmp_path / "a.csv")
    read = read_table(tmp_path / "a.csv", features=used_features(model))
    found = apply_model(model, read)
    expected = apply_model(model, replace(table, y=None)).predictions
    np.testing.assert_allclose(found.predictions["p:ill"], expected["p:ill"], rtol=1e-6)
    assert (found.missing, found.unused, found.extra) == ([], 0, ["site", "dx"])
    assert (found.accuracy, found.chance) == (None, None)


def test_known_labels(fitted):
    model, table = fitted
    found = apply_model(model, table)
    predicted = found.predictions["predicted"].to_numpy()
    right = predicted == table.y
    assert (found.accuracy, found.chance) == (right.mean(), 0.5)
    some = np.array(["", "ill", "Well", *table.y[3:]], dtype=object)
    found = apply_model(model, replace(table, y=some))
    assert found.accuracy == np.mean([predicted[1] == "ill", False, *right[3:]])
    assert found.warnings == ["the model does not know the labels 'Well'; it knows 'ill', 'well'"]
    assert apply_model(model, replace(table, y=np.full(48, "", object))).accuracy is None
    with pytest.raises(ValueError, match="y: expected one label for each of 48 samples, got 3"):
        apply_model(model, replace(table, y=some[:3]))


def test_nonsense_is_refused_or_doubted(fitted):
    model, table = fitted
    with pytest.raises(ValueError, match="expected values, got none"):
        apply_model(model, replace(table, X=np.full_like(table.X, np.nan)))
    X = table.X.copy()
    X[3] = np.nan
    found = apply_model(model, replace(table, X=X))
    assert "'s3'" in found.warnings[0]
    assert found.predictions["predicted"][3] == ""
    assert np.isnan(found.predictions["confidence"][3])
    assert found.predictions["confidence"].notna().sum() == 47
    far = apply_model(model, replace(table, X=table.X * np.float32(1e12)))
    assert any("standard deviations" in warning for warning in far.warnings)


HOSTILE = ["=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", " =1", "<script>alert(1)</script>"]
HOSTILE += ['"quoted", and, commas', "line\nbreak", "\u202eRTL \u05d0\u05d1", "x" * 10_000, "'", "", "-1.5", "\ud800"]


def test_tables_that_a_spreadsheet_will_not_run(tmp_path):
    frame = pd.DataFrame({"feature": HOSTILE, "=header": np.arange(len(HOSTILE)) - 3.5})
    write_text(tmp_path / "a.csv", csv_text(frame))
    back = pd.read_csv(tmp_path / "a.csv", keep_default_na=False, lineterminator="\n")
    assert list(back) == ["feature", "'=header"]
    np.testing.assert_array_equal(back["'=header"], frame["=header"])  # numbers stay numbers
    for cell, name in zip(back["feature"][:-1], HOSTILE[:-1], strict=True):
        assert cell in (name, f"'{name}")
        assert cell == "-1.5" or not cell.lstrip(" ").startswith(("=", "+", "-", "@", "\t", "\r"))
    assert harmless(-1.5) == -1.5
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


def test_a_table_on_disk(fitted, tmp_path):
    table = fitted[1]
    with on_disk(table, tmp_path / "kept") as lean:
        assert isinstance(lean.X, np.memmap)
        np.testing.assert_array_equal(lean.X, table.X)
        assert lean.feature_names == table.feature_names
    assert list((tmp_path / "kept").iterdir()) == []
