"""The commands from the outside: what they leave, what they say, how they end."""

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from normball.cli.app import app
from normball.data import make_omics
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
    assert (
        told["settings"].items() >= {"seeds": 1, "folds": 2, "n_features": 3, "norm": "l1inf", "radius": None}.items()
    )
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
    # More permutations belong to the same study, which goes on and says so.
    more = run("select", table, *QUICK, "--permutations", "2", "--out", out)
    assert "going on where it stopped: 4 of 5 parts are finished" in more.stderr
    # Another setting is another study: refused, whether its progress is there or its results alone.
    other = ["select", table, *QUICK, "--norm", "l12", "--impute", "half-min", "--log", "no", "--out", out]
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    refused = run(*other)
    assert refused.exit_code == 2
    said = "norm is 'l1inf' there and 'l12' here, log is 'auto' there and 'no' here, impute is 'median' there"
    assert said in refused.stderr
    assert "--out: expected a folder without another study" in refused.stderr
    assert "--force" in refused.stderr.splitlines()[-1]
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    shutil.rmtree(out / ".progress")
    assert said in run(*other).stderr
    forced = run(*other, "--force")
    assert forced.exit_code == 0
    assert json.loads((out / "metrics.json").read_text(encoding="utf-8"))["settings"]["norm"] == "l12"
    assert "starting anew" in run("select", table, *QUICK, "--out", out, "--force").stderr


def test_quiet(table, tmp_path, few_trees, no_page):
    done = run("select", table, *QUICK, "--quiet", "--out", tmp_path)
    assert (done.exit_code, done.output) == (0, "")


WRONG = [
    (["--frobnicate"], "No such option"),
    (["--target"], "Option '--target' requires an argument"),
    (["--norm", "l7"], "'--norm': 'l7' is not one of 'l1inf', 'l12', 'l1', 'bilevel_l1inf', 'bilevel_l11'"),
    (["--log", "maybe"], "'--log': 'maybe' is not one of 'auto', 'yes', 'no'"),
    (["--impute", "mean"], "'--impute': 'mean' is not one of 'median', 'half-min'"),
    (["--decimal", ";"], "'--decimal': ';' is not one of"),
    (["--backend", "slurm"], "'--backend': 'slurm' is not one of 'loky', 'threading', 'dask', 'ray'"),
    (["--scheduler", "tcp://a:1"], "--scheduler: expected --backend dask or ray with an address, got none"),
    (["--folds", "1"], "--folds: expected an int >= 2, got 1"),
    (["--folds", "two"], "'--folds'"),
    (["--seeds", "0"], "--seeds: expected an int >= 1, got 0"),
    (["--permutations", "-1"], "--permutations: expected an int >= 0, got -1"),
    (["--epochs", "0"], "--epochs: expected an int >= 1, got 0"),
    (["--random-state", "-1"], "--random-state: expected an int >= 0, got -1"),
    (["--jobs", "0"], "'--jobs'"),
    (["--n-features", "many"], "--n-features: expected 'auto', an int >= 1 or a share between 0 and 1, got 'many'"),
    (["--n-features", "0"], "--n-features: expected"),
    (["--radius", "-1", "--n-features", "auto"], "--radius: expected a number > 0, got -1.0"),
    (["--radius", "nan", "--n-features", "auto"], "--radius: expected a number > 0, got nan"),
    (["--radius", "wide"], "'--radius'"),
    (["--radius", "1"], "--radius, --n-features: expected one of them at most, got both: 1.0 and 3"),
    (["--device", "abacus"], "--device: expected 'cpu', 'cuda' or 'auto', got 'abacus'"),
    (["--obs-target", "label"], "give one of --target and --obs-target, not both"),
    (["--labels", "none.csv"], "'--labels': "),
    (["--out", __file__], "'--out': "),
    (["--out", f"{__file__}/results"], "cannot be made, because"),
]
TOLD_BY_THE_TABLE = [
    (["--target", "labl"], "--target 'labl' is not a column; did you mean 'label'?"),
    (["--target", "GENE01", "--drop", "label"], "--target 'GENE01' has another value in each"),
    (["--target", "GENE01"], "if this is no feature: --drop label; if it means a missing value: --missing "),
    (["--folds", "30"], "fewer than the 30 folds"),
    (["--n-features", "99"], "--n-features: expected a number between 1 and the 60 features"),
    (["--drop", "nothing"], "--drop 'nothing' is not a column"),
    (["--drop", "label"], "--target 'label' is in --drop, too"),
    (["--group", "patient"], "--group 'patient' is not a column"),
    (["--index", "label"], "--index 'label' is the target"),
    (["--label-row", "2"], "--target and --label-row: expected one of them, got both"),
    (["--layer", "raw"], "--layer: expected an h5ad file"),
    (["--sheet", "1"], "--sheet: expected an xlsx file"),
    (["--delimiter", "ab"], "--delimiter: expected one character, got 'ab'"),
    (["--encoding", "utf-99"], "--encoding: expected one that Python knows"),
    (["--memory-limit", "much"], "--memory-limit: expected bytes"),
    (["--memory-limit", "1k"], "or raise --memory-limit"),
    (["--transpose"], "--drop; missing values: --missing"),
]


def in_one_line(done, said, command="select"):
    """A wrong command line ends with one line that names what is wrong, and leaves nothing else."""
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    last = done.stderr.splitlines()[-1]
    assert said in last
    assert last.split(": ")[0].endswith(command)
    assert "Traceback" not in done.stderr
    return done.stderr.splitlines()[:-1]


@pytest.mark.parametrize(("wrong", "said"), WRONG)
def test_options_are_checked_before_the_table_is_read(table, tmp_path, monkeypatch, wrong, said):
    monkeypatch.setattr("normball.data.read_table", lambda *_, **__: pytest.fail("the table was read"))
    out = [] if "--out" in wrong else ["--out", tmp_path / "results"]
    assert in_one_line(run("select", table, *QUICK, *out, *wrong), said) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("wrong", "said"), TOLD_BY_THE_TABLE)
def test_wrong_usage_is_told_in_a_line(table, tmp_path, wrong, said):
    notes = in_one_line(run("select", table, *QUICK, *wrong, "--out", tmp_path / "results"), said)
    assert all(note.startswith(("Table(", "  ")) for note in notes)
    assert list(tmp_path.iterdir()) == []


def test_labels_are_asked_for(table, tmp_path):
    in_one_line(
        run("select", table, "--out", tmp_path / "out"), "one of --target, --obs-target, --labels and --label-row"
    )


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "none.csv"),
        ("", "the file is empty"),
        ("id,label,a\n", "no line below the line of names"),
        ("id,label,a\nx,1,apple\ny,2,pear\nz,1,3\n", "line 2, column 3 ('a'): 'apple'; "),
        ("id,label,a\nx,1,5\ny,1,6\n", "has one class only, '1'"),
        ("\x00\x01\x02\x03" * 9, "binary"),
    ],
)
def test_bad_files(tmp_path, content, said):
    path = tmp_path / ("none.csv" if content is None else "table.csv")
    if content is not None:
        path.write_text(content)
    in_one_line(run("select", path, "--target", "label", "--out", tmp_path / "out"), said)
    assert not (tmp_path / "out").exists()


def test_a_folder_is_no_table(tmp_path):
    in_one_line(run("select", tmp_path, "--target", "label"), "directory")


def test_a_tab_can_be_typed(tmp_path, few_trees, no_page):
    made = make_omics(24, 5, 2, effect=3.0)
    rows = [["id", "label", *made.feature_names], *([f"s{i}", made.y[i], *row] for i, row in enumerate(made.X))]
    (tmp_path / "t.tsv").write_text("\n".join("\t".join(map(str, row)) for row in rows) + "\n")
    done = run("select", tmp_path / "t.tsv", *QUICK, "--delimiter", r"\t", "--quiet", "--out", tmp_path / "out")
    assert (done.exit_code, done.output) == (0, "")


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
    assert said.endswith(f"Stopped. Nothing that was finished is lost: it is in {out / '.progress'}. "
                         "The same command goes on from there.\n")  # fmt: skip
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
