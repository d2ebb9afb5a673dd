"""A saved model on new samples: what is matched, what is told, and what does not matter."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from normball.cli.app import app
from normball.selection import load_model, rivals
from normball.selection.application import used_features


def run(*arguments):
    return CliRunner().invoke(app, ["apply", *map(str, arguments)])


@pytest.fixture(scope="module")
def results(table, tmp_path_factory):
    """What `normball select` leaves."""
    out = tmp_path_factory.mktemp("results")
    options = ["--seeds", "1", "--folds", "2", "--n-features", "3", "--epochs", "3", "--jobs", "1", "--quiet"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rivals, "TREES", 80)
        patch.setattr("normball.report.write_report", lambda study, folder: folder / "report.html")
        done = CliRunner().invoke(app, ["select", str(table), "--target", "label", *options, "--out", str(out)])
    assert (done.exit_code, done.output) == (0, "")
    return out


@pytest.fixture
def model(results):
    return results / "model"


@pytest.fixture
def frame(table):
    return pd.read_csv(table)


@pytest.fixture
def used(model):
    return used_features(load_model(model))


def expected(model, frame):
    features = frame.drop(columns=["sample", "label"]).to_numpy(np.float32)
    return load_model(model).predict_proba(features)


def test_columns_are_matched_by_name(model, frame, tmp_path):
    new = frame.drop(columns="label").iloc[:9]
    new.iloc[:, ::-1].assign(extra=1.0).to_csv(tmp_path / "new.csv", index=False)
    done = run(model, tmp_path / "new.csv", "--index", "sample", "--out", tmp_path / "scored.csv")
    assert done.exit_code == 0, done.output
    assert "columns that the model does not know, left aside: 1, 'extra'" in done.stderr
    assert f"9 samples scored: {tmp_path / 'scored.csv'}" in done.stderr
    assert done.stdout == ""
    scored = pd.read_csv(tmp_path / "scored.csv")
    np.testing.assert_allclose(scored[["p:case", "p:control"]], expected(model, frame)[:9], rtol=1e-6)
    assert list(scored["sample"]) == list(new["sample"])


def test_the_training_table_itself(model, table, frame):
    done = run(model, table)
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0] == "sample,predicted,confidence,p:case,p:control"
    assert len(lines) == 1 + len(frame)
    quiet = run(model, table, "--quiet")
    assert (quiet.stdout, quiet.stderr) == (done.stdout, "")


def test_text_that_the_model_does_not_use(model, frame, used, tmp_path):
    idle = next(name for name in frame.columns[2:] if name not in used)
    frame.assign(**{idle: "text", "site": "Rome"}).to_csv(tmp_path / "text.csv", index=False)
    done = run(model, tmp_path / "text.csv", "--out", tmp_path / "scored.csv")
    assert done.exit_code == 0, done.output
    assert "left aside: 2, 'label', 'site'" in done.stderr
    scored = pd.read_csv(tmp_path / "scored.csv")
    np.testing.assert_allclose(scored[["p:case", "p:control"]], expected(model, frame), rtol=1e-6)


def test_text_that_the_model_uses(model, frame, used, tmp_path):
    place = list(frame.columns).index(used[0]) + 1
    frame[used[0]] = frame[used[0]].astype(object)
    frame.loc[2, used[0]] = "much"
    frame.to_csv(tmp_path / "text.csv", index=False)
    done = run(model, tmp_path / "text.csv")
    assert done.exit_code == 2
    assert f"'text.csv', line 4, column {place} ('{used[0]}'): 'much'" in done.stderr
    assert "--missing much" in done.stderr
    assert run(model, tmp_path / "text.csv", "--missing", "much").exit_code == 0


def test_known_labels(model, table, frame, tmp_path):
    done = run(model, table, "--target", "label", "--out", tmp_path / "a.csv")
    right = (pd.read_csv(tmp_path / "a.csv")["predicted"] == frame["label"]).mean()
    assert f"accuracy {100 * right:.1f} %, chance 50.0 %" in done.stderr
    # New samples may all be of one class, and some may lack a label.
    cases = frame[frame["label"] == "case"].copy()
    cases.iloc[0, 1] = None
    cases.to_csv(tmp_path / "cases.csv", index=False)
    done = run(model, tmp_path / "cases.csv", "--target", "label")
    assert done.exit_code == 0, done.output
    assert "chance 100.0 %" in done.stderr
    assert len(done.stdout.splitlines()) == 1 + len(cases)
    frame.replace({"label": {"case": "Case"}}).to_csv(tmp_path / "other.csv", index=False)
    done = run(model, tmp_path / "other.csv", "--target", "label", "--quiet")
    assert done.stderr == "warning: the model does not know the labels 'Case'; it knows 'case', 'control'\n"


def test_json(model, frame, used, tmp_path):
    frame.assign(site="Rome").loc[:, lambda each: each.columns != "GENE01"].to_csv(tmp_path / "new.csv", index=False)
    done = run(model, tmp_path / "new.csv", "--target", "label", "--json", "--out", tmp_path / "scored.csv")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert set(told) == {
        "model", "table", "predictions", "missing", "unused", "extra", "warnings", "accuracy", "chance"
    }  # fmt: skip
    assert (told["model"], told["table"], told["extra"]) == (str(model), "new.csv", ["site"])
    assert told["unused"] == ("GENE01" not in used)
    pd.testing.assert_frame_equal(pd.DataFrame(told["predictions"]), pd.read_csv(tmp_path / "scored.csv"))
    assert "accuracy" in done.stderr
    frame.loc[0, used] = np.nan
    frame.drop(columns="label").to_csv(tmp_path / "gap.csv", index=False)
    told = json.loads(run(model, tmp_path / "gap.csv", "--json").stdout)
    assert told["predictions"]["confidence"][0] is None
    assert (told["accuracy"], told["chance"]) == (None, None)
    assert "no prediction" in told["warnings"][0]


def test_wrong_command_lines(results, model, table, frame, used, tmp_path):
    frame.drop(columns=used[0]).to_csv(tmp_path / "lacking.csv", index=False)
    pd.DataFrame({"id": ["a", "b"], "x": [1, 2]}).to_csv(tmp_path / "other.csv", index=False)
    (tmp_path / "empty").mkdir()
    for wrong, said in (
        ((model, tmp_path / "lacking.csv"), f"missing: '{used[0]}'"),
        ((model, tmp_path / "other.csv"), "none of the 3 features that are wanted"),
        ((model, table, "--drop", used[0], "--drop", used[1]), "missing: "),
        ((results, table), f"got {results}; did you mean {model}?"),
        ((tmp_path / "empty", table), "model: expected a folder that normball select has written"),
        ((table, model), "'model': "),
        ((tmp_path / "none", table), "'model': "),
        ((model,), "'table'"),
        ((model, tmp_path / "none.csv"), "none.csv"),
        ((model, tmp_path), "directory"),
        ((model, table, "--target", "labl"), "--target 'labl' is not a column; did you mean 'label'?"),
        ((model, table, "--transpose"), "none of the 3 features that are wanted"),
        ((model, table, "--out", tmp_path), "'--out': "),
        ((model, table, "--out", table / "new.csv"), "cannot be made, because"),
        ((model, table, "--decimal", "x"), "'--decimal': 'x' is not one of"),
    ):
        done = run(*wrong)
        assert done.exit_code == 2, (wrong, done.output)
        assert len(done.stderr.splitlines()) == 1, done.stderr
        assert said.lower() in done.stderr.lower()
        assert done.stdout == ""
