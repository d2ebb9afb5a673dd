"""The whole procedure: nothing leaks, nothing depends on how it was run, and what was finished stays finished."""

import json
from dataclasses import asdict, replace
from html.parser import HTMLParser

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

from normball.selection import folds, rivals, study, units
from normball.selection.files import plain
from normball.selection.procedure import _data
from normball.selection.settings import Settings
from normball.selection.statistics import univariate

QUICK = {"seeds": 1, "folds": 2, "n_features": 2, "epochs": 3}


def told(found):
    """All that must be the same, without the times."""
    parts = {name: getattr(found, name) for name in ("settings", "notes", "stability", "permutations")}
    frames = ("predictions", "features", "path", "latent", "losses", "values")
    parts |= {name: getattr(found, name) for name in frames}
    parts["scores"] = found.scores.drop(columns="seconds")
    return json.dumps(plain(parts))


def forgetful(result):
    """What a fold found, without the times."""
    methods = {name: {k: v for k, v in each.items() if k != "seconds"} for name, each in result["methods"].items()}
    return {k: v for k, v in result.items() if k != "seconds"} | {"methods": methods}


def test_rows_that_test_have_no_part_in_any_choice(make_table, options, few_trees):
    data = _data(make_table(missing=0.05, intensities=True))
    _, before, _ = units.run(data, replace(options, n_features="auto"), ("fold", 0, 1))
    test = np.array(before["test"])
    X = data.X.copy()
    X[test[1:]] = np.random.default_rng(5).normal(scale=1e6, size=(len(test) - 1, X.shape[1]))
    X[test[1:], 3] = np.nan
    _, after, _ = units.run(replace(data, X=X), replace(options, n_features="auto"), ("fold", 0, 1))
    for name in ("chosen", "radius", "theta", "head", "log", "test"):
        assert before[name] == after[name], name
    for name, each in before["methods"].items():
        assert each["n_features"] == after["methods"][name]["n_features"], name
        # A row that was left as it is gets the same answer, whatever stands beside it.
        np.testing.assert_allclose(each["proba"][0], after["methods"][name]["proba"][0], rtol=1e-12, err_msg=name)


def test_labels_that_test_are_never_seen(make_table, options, few_trees, monkeypatch):
    data = _data(make_table())
    splits = folds.outer(data.y, None, options.folds, 0, data.classes)
    monkeypatch.setattr(units.folds, "outer", lambda *_: splits)
    _, before, _ = units.run(data, options, ("fold", 0, 0))
    y = data.y.copy()
    y[splits[0][1]] = 1 - y[splits[0][1]]
    _, after, _ = units.run(replace(data, y=y), options, ("fold", 0, 0))
    assert forgetful(before) == forgetful(after)


def test_noise_is_told_as_noise(make_table, few_trees):
    table = make_table(n=60, d=1500, shift=0.0, seed=3)
    data = _data(table)
    # Features chosen with the test rows in sight would look good on this very table ...
    peeked = np.argsort(-univariate(data.X, data.y, 2)["F"])[:10]
    assert cross_val_score(LogisticRegression(), data.X[:, peeked], data.y, cv=5).mean() > 0.8
    # ... and those chosen inside do not.
    found = study(table, seeds=1, folds=3, n_features=10, epochs=3, permutations=1)
    for method, accuracy in found.scores.groupby("method")["accuracy"].mean().items():
        assert 0.25 < accuracy < 0.75, method
    assert all(0.25 < value < 0.75 for value in found.permutations)
    assert found.stability["index"] < 0.6


def test_the_record_is_complete(make_table, few_trees):
    table = make_table(n=60, classes=("a", "b", "c"), missing=0.05, intensities=True)
    found = study(table, seeds=2, folds=2, permutations=1, epochs=3)
    assert list(found.scores) == [
        "method", "repeat", "fold", "accuracy", "balanced_accuracy", "auc", "n_features", "seconds"
    ]  # fmt: skip
    assert set(found.scores["method"]) == {"normball", *rivals.RIVALS}
    assert len(found.scores) == 4 * 2 * 2
    assert list(found.predictions) == ["sample", "label", "predicted", "confidence", "p:a", "p:b", "p:c"]
    np.testing.assert_allclose(found.predictions[["p:a", "p:b", "p:c"]].sum(axis=1), 1.0)
    assert list(found.predictions["sample"]) == table.sample_ids
    wanted = ["feature", "rank", "selected", "frequency", "importance", "direction", "effect", "p_value", "q_value"]
    wanted += [f"{name}:{k}" for name in ("importance", "mean") for k in "abc"]
    assert list(found.features) == wanted
    assert sorted(found.features["feature"]) == sorted(table.feature_names)
    assert list(found.features["rank"]) == list(range(1, 21))
    top = found.features.iloc[0]
    assert top["feature"] in ("gene3", "gene7")
    assert top["frequency"] == 1.0
    assert top["importance"] > 0
    assert top["q_value"] < 1e-6
    raw = pd.DataFrame(table.X, columns=table.feature_names).groupby(table.y).mean()
    assert top["direction"] == raw[top["feature"]].idxmax()
    np.testing.assert_allclose(top[[f"mean:{k}" for k in "abc"]].astype(float), raw[top["feature"]], rtol=1e-5)
    assert list(found.path) == ["n_features", "radius", "theta", "accuracy", "error", "chosen"]
    assert found.path["chosen"].sum() == 1
    assert int(found.path["n_features"][found.path["chosen"]].iloc[0]) == found.features["selected"].sum()
    assert list(found.latent) == ["sample", "label", "predicted", "z0", "z1", "z2"]
    assert {"stage", "epoch", "loss"} <= set(found.losses)
    assert list(found.values.columns) == list(found.features["feature"][found.features["selected"]])
    np.testing.assert_array_equal(found.values["gene3"], table.X[:, 3])
    assert any("missing values filled" in note for note in found.notes)
    assert any("logarithms to base 2 taken" in note for note in found.notes)
    assert found.settings.items() >= asdict(Settings(seeds=2, folds=2, permutations=1, epochs=3)).items()
    assert {"normball", "numpy", "torch", "scikit-learn", "python"} == set(found.settings["versions"])
    assert found.model.predict(np.nan_to_num(table.X, nan=300.0)).shape == (60,)


def test_a_frame_is_a_table(make_table, few_trees):
    table = make_table(missing=0.05, groups=2)
    frame = pd.DataFrame(table.X, columns=table.feature_names, index=table.sample_ids)
    frame = frame.assign(status=table.y, patient=table.groups)
    one, other = study(frame, target="status", group="patient", **QUICK), study(table, **QUICK)
    assert (one.settings["target"], one.settings["group"], one.settings["table"]) == ("status", "patient", "table")
    for part in ("predictions", "features", "latent", "values"):
        pd.testing.assert_frame_equal(getattr(one, part), getattr(other, part))


def test_wrong_frames(make_table):
    table = make_table()
    frame = pd.DataFrame(table.X, columns=table.feature_names).assign(status=table.y)
    for wrong, options, error, said in (
        (frame, {}, ValueError, "target: expected the name of the column with the labels, got None"),
        (frame, {"target": "statsu"}, ValueError, "did you mean 'status'"),
        (frame.assign(batch="a"), {"target": "status"}, ValueError, "expected numbers, got column 'batch' of dtype"),
        (table, {"target": "status"}, ValueError, "target, group: expected None with a Table"),
        (table, {"group": "patient"}, ValueError, "target, group: expected None with a Table"),
        (table.X, {}, TypeError, "table: expected a Table, or a DataFrame with target=, got ndarray"),
        (sparse.csr_matrix(table.X), {}, TypeError, "table: expected a Table, .* got csr_matrix"),
        (replace(table, X=sparse.csr_matrix(table.X)), {}, TypeError, "X: expected an array .* got a sparse"),
    ):
        with pytest.raises(error, match=said):
            study(wrong, **options)


class Tags(HTMLParser):
    """What a page is made of."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.attributes, self.text = set(), [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.text.append(data)


def test_a_study_is_shown_in_a_line_and_in_a_notebook(make_table, few_trees):
    hostile = ["<script>alert(1)</script>", "a&b;\"'><img src=x>", "\x00\u202egnp\ud800", "x" * 500]
    table = make_table(classes=("<b>ill</b>", "well"))
    table.feature_names[3], table.feature_names[7] = hostile[:2]
    table.feature_names[:2] = hostile[2:]
    table = replace(table, name="</table><script>")
    found = study(table, **QUICK)
    assert repr(found).startswith("Study('</table><script>': 48 samples x 20 features, 2 classes; accuracy ")
    assert "2 selected: " in repr(found)
    for shown in (repr(found), repr(replace(found, features=found.features.assign(selected=True)))):
        assert len(shown) < 600
        assert shown.isprintable()
    for each in (found, replace(found, features=found.features.assign(selected=True))):
        page = each._repr_html_()
        assert len(page) < 3000
        page.encode("utf-8")
        told = Tags(page)
        assert told.tags == {"table", "caption", "tr", "th", "td"}
        assert not told.attributes
        for method in ("normball", *rivals.RIVALS):
            assert f"Accuracy, {method}" in told.text
        mean = found.scores.groupby("method")["accuracy"].mean()["normball"]
        assert any(text.startswith(f"{mean:.3f} (") for text in told.text)
    assert "<script>alert(1)</script>" in " ".join(Tags(found._repr_html_()).text)


def test_jobs_and_backends_do_not_matter(make_table):
    table = make_table(missing=0.05)
    plain_run = told(study(table, **QUICK, permutations=1))
    assert told(study(table, **QUICK, permutations=1, jobs=2)) == plain_run
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert told(study(table, **QUICK, permutations=1)) == plain_run


def test_what_was_finished_stays_finished(make_table, few_trees, tmp_path):
    table, events = make_table(missing=0.05), []
    plain_run = told(study(table, **QUICK, permutations=1))

    def stop(event):
        events.append(event)
        if event["done"] == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        study(table, **QUICK, permutations=1, progress=tmp_path / "kept", listener=stop)
    (tmp_path / "kept" / "fold-0-1.json").write_text("{half a")  # as if the disk had been full
    events.clear()
    found = study(table, **QUICK, permutations=1, progress=tmp_path / "kept", listener=events.append)
    assert told(found) == plain_run
    assert (events[0]["began"], events[0]["done"], events[0]["total"]) == ("again", 1, 4)
    events.clear()
    again = study(table, **QUICK, permutations=1, progress=tmp_path / "kept", listener=events.append)
    assert told(again) == plain_run  # also with the model from its files
    assert [event["event"] for event in events] == ["start"]
    # More permutations go on; another table or setting does not.
    study(table, **QUICK, permutations=2, progress=tmp_path / "kept", listener=events.append)
    assert events[-1]["unit"] == ("permutation", 1)
    X = table.X.copy()
    X[0, 0] += 1.0
    for other, options in ((replace(table, X=X), {}), (table, {"impute": "half-min"})):
        events.clear()
        study(other, **QUICK, **options, progress=tmp_path / "kept", listener=events.append)
        assert (events[0]["began"], events[0]["done"]) == ("anew", 0)


def test_groups(make_table, few_trees):
    table = make_table(n=60, groups=3)
    found = study(table, **QUICK, permutations=1)
    assert found.scores["accuracy"].mean() > 0.7
    data = _data(table)
    assert len(np.unique(data.groups)) == 20


@pytest.mark.parametrize("norm", ["l1inf", "l12", "l1", "bilevel_l1inf", "bilevel_l11", "bilevel_l12", None])
def test_norms(make_table, options, norm, few_trees):
    data = _data(make_table())
    _, found, _ = units.run(data, replace(options, norm=norm, n_features=2 if norm else "auto"), ("fold", 0, 0))
    chosen = set(found["chosen"])
    assert chosen == {3, 7} if norm else len(chosen) == 20


def test_a_radius(make_table, few_trees):
    found = study(make_table(), seeds=1, folds=2, radius=0.5, epochs=3)
    assert found.model["autoencoder"].radius_ == 0.5
    assert len(found.path) == 1


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"norm": "l7"}, "norm: expected one of"),
        ({"log": "perhaps"}, "log: expected"),
        ({"impute": "mean"}, "impute: expected"),
        ({"radius": -1.0}, "radius: expected a number > 0"),
        ({"radius": 1.0, "n_features": 3}, "radius, n_features: expected one of them at most, got both"),
        ({"norm": None, "n_features": 3}, "n_features: expected 'auto' with norm=None"),
        ({"norm": None, "radius": 1.0}, "radius: expected None with norm=None"),
        ({"n_features": 21}, "n_features: expected a number between 1 and the 20"),
        ({"n_features": "some"}, "n_features: expected"),
        ({"folds": 1}, "folds: expected an int >= 2"),
        ({"folds": 25}, "at most the 24 samples"),
        ({"seeds": 0}, "seeds: expected"),
        ({"permutations": -1}, "permutations: expected"),
        ({"epochs": 0}, "epochs: expected"),
        ({"device": "abacus"}, "device: expected"),
        ({"random_state": -1}, "random_state: expected"),
    ],
)
def test_wrong_arguments_are_told_before_any_work(make_table, wrong, match):
    with pytest.raises(ValueError, match=match):
        study(make_table(), **wrong)


def test_wrong_tables(make_table):
    table = make_table()
    for change, match in (
        ({"y": None}, "labels"),
        ({"y": table.y[:5]}, "y: expected one for each of 48"),
        ({"y": np.full(48, "a")}, "at least two classes"),
        ({"feature_names": ["a"]}, "feature_names"),
        ({"groups": table.y[:3]}, "groups"),
        ({"X": np.full((48, 20), np.inf, np.float32)}, "infinity"),
        ({"X": np.zeros(3)}, "samples by features"),
    ):
        with pytest.raises(ValueError, match=match):
            study(replace(table, **change))
