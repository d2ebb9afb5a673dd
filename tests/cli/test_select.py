"""The commands from the outside: what they leave, what they say, how they end."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from normball.cli.app import app
from normball.data import make_omics
from normball.report.results import metrics
from normball.selection import load_model

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"
QUICK = ["--target", "label", "--seeds", "1", "--folds", "2", "--n-features", "3", "--epochs", "3", "--jobs", "1"]
FILES = {"features.csv", "predictions.csv", "metrics.json", "timing.json", "report.html"}
FOLDERS = {"model", "figures", ".progress"}


def run(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


def test_a_whole_run(table, tmp_path, few_trees, monkeypatch):
    out = tmp_path / "results"
    done = run("select", table, *QUICK, "--permutations", "1", "--out", out)
    assert done.exit_code == 0, done.output
    assert {path.name for path in out.iterdir()} == FILES | FOLDERS
    assert "<html" in (out / "report.html").read_text(encoding="utf-8")
    assert {path.suffix for path in (out / "figures").iterdir()} == {".svg", ".png"}
    for word in ("accuracy", "chance", "baseline", "features", "stability", "report", str(out / "report.html")):
        assert word in done.stdout, word
    assert "seed 1, fold 2" in done.stderr
    assert "logarithms" not in done.stdout
    told = json.loads((out / "metrics.json").read_text(encoding="utf-8"))
    assert told["table"]["classes"] == {"case": 24, "control": 24}
    assert told["settings"]["seeds"] == [0]
    assert told["settings"]["target"] == "label"
    assert told["final_model"]["n_features"] == 3
    assert told["accuracy"]["low"] <= told["accuracy"]["mean"] <= told["accuracy"]["high"]
    assert len(told["scores"]["accuracy"]) == 8
    assert 0 < told["permutations"]["p_value"] <= 1
    assert "seconds" not in json.dumps(told)
    features = pd.read_csv(out / "features.csv")
    assert list(features["rank"]) == list(range(1, 61))
    assert list(features["feature"][features["selected"]]) == told["final_model"]["features"]
    predictions = pd.read_csv(out / "predictions.csv")
    assert set(predictions["predicted"]) <= {"case", "control"}
    assert list(load_model(out / "model").feature_names_in_) == sorted(features["feature"])

    # The same command again: nothing to do, and the same bytes.
    monkeypatch.setattr("normball.report.write_report", lambda study, folder: folder / "report.html")
    before = {name: (out / name).read_bytes() for name in ("metrics.json", "features.csv", "predictions.csv")}
    started = (out / ".progress" / "fold-0-0.json").stat().st_mtime_ns
    again = run("select", table, *QUICK, "--permutations", "1", "--out", out, "--json")
    assert again.exit_code == 0
    assert json.loads(again.stdout) == told
    assert again.stderr == ""
    assert {name: (out / name).read_bytes() for name in before} == before
    assert (out / ".progress" / "fold-0-0.json").stat().st_mtime_ns == started
    # Another setting: anew, and it says so.
    other = run("select", table, *QUICK, "--norm", "l12", "--impute", "half-min", "--log", "no", "--out", out)
    assert "starting anew" in other.stderr
    assert json.loads((out / "metrics.json").read_text(encoding="utf-8"))["settings"]["norm"] == "l12"


def test_quiet(table, tmp_path, few_trees, no_page):
    done = run("select", table, *QUICK, "--quiet", "--out", tmp_path)
    assert (done.exit_code, done.output) == (0, "")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (["--target", "labl"], "did you mean 'label'"),
        (["--target", "GENE01", "--drop", "label"], "no classes"),
        (["--folds", "30"], "fewer than the 30 folds"),
        (["--folds", "1"], "folds: expected an int >= 2"),
        (["--norm", "l7"], "norm: expected one of"),
        (["--n-features", "many"], "n_features: expected"),
        (["--n-features", "99"], "n_features: expected"),
        (["--log", "maybe"], "log: expected one of"),
        (["--impute", "mean"], "impute: expected one of"),
        (["--radius", "-1", "--n-features", "auto"], "radius: expected a number > 0"),
        (["--radius", "1"], "got both"),
        (["--radius", "wide"], "radius"),
        (["--device", "abacus"], "device: expected"),
        (["--drop", "nothing"], "nothing"),
        (["--obs-target", "label"], "obs-target: expected it or target"),
        (["--frobnicate"], "No such option"),
    ],
)
def test_wrong_usage_is_told_in_a_line(table, tmp_path, wrong, said):
    done = run("select", table, *QUICK, *wrong, "--out", tmp_path / "results")
    assert done.exit_code == 2
    assert said in " ".join(done.stderr.split())
    assert "Traceback" not in done.output
    assert done.stdout == ""
    if said.split(":")[0] != "radius" and "option" not in said:
        assert len(done.stderr.strip().splitlines()) - done.stderr.count("\n  ") <= 2


def test_bad_files(tmp_path):
    (tmp_path / "text.csv").write_text("sample,label,a\nx,1,apple\ny,2,pear\n")
    (tmp_path / "empty.csv").write_text("")
    for name in ("none.csv", "text.csv", "empty.csv"):
        done = run("select", tmp_path / name, "--target", "label", "--out", tmp_path / "out")
        assert done.exit_code == 2, name
        assert name in done.stderr
        assert "Traceback" not in done.output
    done = run("select", tmp_path / "text.csv", "--out", tmp_path / "out")
    assert done.exit_code == 2
    assert "target: expected" in done.stderr
    assert not (tmp_path / "out").exists()


def started(table, out):
    command = [sys.executable, "-m", "normball", "select", table, "--target", "label", "--seeds", "1", "--folds", "3"]
    command += ["--jobs", "1", "--out", out]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    # What a shell runs in the background ignores interrupts, and so does what that starts, unless it handles them.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return subprocess.Popen(
            [str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        )
    finally:
        signal.signal(signal.SIGINT, before)


def wait_for(path, process):
    for _ in range(12000):
        if path.exists():
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    raise AssertionError(f"{path} did not appear")


def test_stopped_and_killed_runs_go_on_to_the_same_bytes(table, tmp_path, no_page):
    out = tmp_path / "stopped"
    first = started(table, out)
    wait_for(out / ".progress" / "fold-0-0.json", first)
    first.send_signal(signal.SIGINT)
    _, said = first.communicate(timeout=120)
    assert first.returncode == 130, said
    assert "Nothing that was finished is lost" in said
    assert "The same command goes on" in said
    assert "Traceback" not in said
    second = started(table, out)
    wait_for(out / ".progress" / "fold-0-1.json", second)
    second.kill()
    second.communicate()
    assert not (out / "metrics.json").exists()
    command = ["select", table, "--target", "label", "--seeds", "1", "--folds", "3", "--jobs", "1"]
    done = run(*command, "--out", out)
    assert done.exit_code == 0, done.output
    assert "going on where it stopped" in done.stderr
    assert run(*command, "--out", tmp_path / "whole", "--quiet").exit_code == 0
    for name in ("metrics.json", "features.csv", "predictions.csv", "model/autoencoder.safetensors"):
        assert (out / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name


def test_hostile_names(tmp_path, few_trees):
    made = make_omics(40, 12, 3, effect=4.0)
    names = ["=cmd|' /C calc'!A0", "+1+1", "@SUM(A1)", "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>']
    names += ["\u202eRTL \u05d0\u05d1\u05d2", "x" * 10_000, "comma, and\ttab", "'quoted'", "-", "ünïcødé", "{{ 7*7 }}"]
    classes = {"case": "=1+1", "control": "<b>well</b>"}
    path = tmp_path / "<img src=x>=table.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["sample", "label", *names])
        for i, row in enumerate(made.X):
            writer.writerow([f"=S{i}", classes[made.y[i]], *row.tolist()])
    done = run("select", path, *QUICK, "--n-features", "0.99", "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    for name in ("features.csv", "predictions.csv"):
        with (tmp_path / "out" / name).open(encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file))
        for cell in (cell for row in rows for cell in row):
            assert not cell.lstrip(" ").startswith(("=", "@", "\t", "\r")), (name, cell[:40])
            if cell.startswith(("+", "-")):
                float(cell)
    told = json.loads((tmp_path / "out" / "metrics.json").read_text(encoding="utf-8"))
    assert set(told["final_model"]["features"]) == set(names)  # as they are: JSON runs nothing
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    for evil in ("<script>alert(1)", "<img src=x", "<b>well"):
        assert evil not in page
    again = run("apply", tmp_path / "out" / "model", path, "--drop", "label", "--out", tmp_path / "new.csv")
    assert again.exit_code == 0, again.output
    assert (tmp_path / "new.csv").read_text(encoding="utf-8").count("\n'=S") == 40


def test_apply(table, tmp_path, few_trees, no_page):
    run("select", table, *QUICK, "--out", tmp_path)
    model, new = tmp_path / "model", pd.read_csv(table).drop(columns="label").iloc[:9]
    fitted = load_model(model)
    used = [fitted.feature_names_in_[k] for k in fitted[-1].get_support(indices=True)]
    new.iloc[:, ::-1].assign(extra=1.0).to_csv(tmp_path / "new.csv", index=False)
    done = run("apply", model, tmp_path / "new.csv", "--index", "sample", "--out", tmp_path / "scored.csv")
    assert done.exit_code == 0, done.output
    assert "1 columns are unknown to the model, and left aside: 'extra'" in done.stderr
    scored = pd.read_csv(tmp_path / "scored.csv")
    expected = fitted.predict_proba(new.drop(columns="sample").to_numpy(np.float32))
    np.testing.assert_allclose(scored[["p:case", "p:control"]], expected, rtol=1e-6)
    assert list(scored["sample"]) == list(new["sample"])
    with_labels = run("apply", model, table, "--target", "label", "--quiet")
    assert with_labels.exit_code == 0
    assert with_labels.stdout.startswith("sample,predicted,confidence,p:case,p:control\n")
    assert "accuracy" in run("apply", model, table, "--target", "label", "--out", tmp_path / "b.csv").stderr
    new.drop(columns=used[0]).to_csv(tmp_path / "lacking.csv", index=False)
    for wrong, said in (
        ((model, tmp_path / "lacking.csv"), f"missing: '{used[0]}'"),
        ((model, table), "drop=['label']"),
        ((tmp_path, table), "model: expected a folder"),
        ((model, tmp_path / "none.csv"), "none.csv"),
    ):
        done = run("apply", *wrong)
        assert done.exit_code == 2, done.output
        assert said in done.stderr
        assert done.stdout == ""


@pytest.mark.parametrize(
    ("name", "options", "least"),
    [("alon.csv.gz", ["--target", "label"], 0.7), ("gc_breast.csv", ["--label-row", "2"], 0.75)],
)
def test_real_tables(name, options, least, tmp_path, few_trees, no_page):
    if not (DATA / name).exists():
        pytest.skip(f"{name} is not in {DATA}")
    settings = ["--seeds", "1", "--folds", "3", "--n-features", "16", "--jobs", "1"]
    done = run("select", DATA / name, *options, *settings, "--out", tmp_path)
    assert done.exit_code == 0, done.output
    told = json.loads((tmp_path / "metrics.json").read_text(encoding="utf-8"))
    assert told["accuracy"]["mean"] > least
    assert any("logarithms" in note for note in told["table"]["notes"])


def test_help_is_quick():
    program = (
        "import sys; from typer.testing import CliRunner; from normball.cli.app import app;"
        "done = CliRunner().invoke(app, ['select', '--help']); assert done.exit_code == 0;"
        "print('torch' in sys.modules, 'sklearn' in sys.modules, 'pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"] * 3
    assert callable(metrics)
