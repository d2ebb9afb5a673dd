"""The command, from end to end."""

import json
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from normball.cli.app import app
from normball.experiments import runner
from normball.experiments.registry import experiments

KNOWN = experiments()


def call(*options):
    return CliRunner().invoke(app, ["reproduce", *map(str, options)])


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 12))
    y = np.where(X[:, 0] > 0, "ill", "well")
    path = tmp_path_factory.mktemp("table") / "small.csv"
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(12)])
    frame.assign(label=y).to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def done(tmp_path_factory, table):
    out = tmp_path_factory.mktemp("out") / "paper"
    result = call("--out", out, "--quick", "--jobs", 1, "--data", table)
    assert result.exit_code == 0, result.output
    return out, result.output


def test_quick_makes_every_figure_and_table(done):
    out, said = done
    verdicts = {each["id"]: each for each in json.loads((out / "verdicts.json").read_text())}
    assert set(verdicts) == set(KNOWN)
    for name, each in KNOWN.items():
        assert name in said
        if verdicts[name]["outcome"] == "not measured":
            assert name in ("fig:gpu", "fig:threads")  # no GPU, one CPU
        if name == "fig:gpu" and verdicts[name]["outcome"] == "not measured":
            continue
        for suffix in ("svg", "pdf", "png", "csv"):
            assert (out / f"{each.stem}.{suffix}").stat().st_size > 200, f"{name}.{suffix}"


def test_the_page_stands_alone(done):
    out, _ = done
    page = (out / "index.html").read_text(encoding="utf-8")
    assert page.count("<svg") >= len(KNOWN) - 1
    assert not re.findall(r'(?:src|href)="(?:https?:)?//', page)
    assert "<script" not in page
    assert "<link" not in page
    linked = {name for name in re.findall(r'href="([^"#]+)"', page)}
    assert linked
    assert all((out / name).exists() for name in linked)
    for each in KNOWN.values():
        assert f'id="{each.stem}"' in page
    assert "A quick run." in page
    assert "small.csv" in page
    assert not re.search(r"\bnan\b", re.sub(r"<svg.*?</svg>", "", page, flags=re.DOTALL), re.IGNORECASE)


def test_the_environment_says_where_and_with_what(done):
    told = json.loads((done[0] / "environment.json").read_text())
    assert told["cpu"]
    assert told["instruction_set"] in ("baseline", "avx2", "avx512")
    assert told["quick"] is True
    assert told["seeds"] == [0, 1, 2]
    assert {"numpy", "torch"} <= set(told["packages"])


def test_a_second_run_computes_nothing(done, table, monkeypatch):
    def never(*_):
        raise AssertionError("a cell was computed again")

    monkeypatch.setattr(runner, "_done", never)
    result = call("--out", done[0], "--quick", "--data", table, "--only", "fig:radius", "--only", "table:biology")
    assert result.exit_code == 0, result.output
    assert "0 pieces of work" in result.stderr
    lines = result.stdout.splitlines()  # verdicts and where the page is; all else is told on standard error
    assert [line[2:].split()[0] for line in lines[:2]] == ["fig:radius", "table:biology"]
    assert lines[2:] == ["", str(done[0] / "index.html")]


def test_an_interrupt_says_how_to_go_on(tmp_path, monkeypatch):
    real, count = runner._done, []

    def interrupted(cell):
        count.append(cell)
        if len(count) == 3:
            raise KeyboardInterrupt
        return real(cell)

    monkeypatch.setattr(runner, "_done", interrupted)
    result = call("--out", tmp_path, "--quick", "--only", "fig:radius")
    assert result.exit_code == 130
    assert result.stdout == ""
    assert result.stderr.endswith("\nStopped. 4 pieces of work are left. The same command goes on from there.\n")
    assert len((tmp_path / ".progress" / "cells.jsonl").read_text().splitlines()) == 2
    assert call("--out", tmp_path, "--quick", "--only", "fig:radius").exit_code == 0
    assert len(count) == 3 + 4


def test_a_killed_run_goes_on(tmp_path):
    """Killed for good, between or amid the cells; the next run keeps what was there, and ends."""
    command = [sys.executable, "-m", "normball", "reproduce", "--out", str(tmp_path), "--quick", "--jobs", "1"]
    command += ["--only", "fig:theta", "--only", "fig:large"]
    progress = tmp_path / ".progress" / "cells.jsonl"
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    until = time.monotonic() + 120
    while not (progress.exists() and progress.read_bytes().count(b"\n") >= 2) and time.monotonic() < until:
        time.sleep(0.02)
    running.send_signal(signal.SIGKILL)
    running.wait()
    before = progress.read_text().splitlines()
    assert len(before) >= 2
    result = call("--out", tmp_path, "--quick", "--jobs", 1, "--only", "fig:theta", "--only", "fig:large")
    assert result.exit_code == 0, result.output
    after = progress.read_text().splitlines()
    assert after[: len(before) - 1] == before[:-1]
    assert len({json.loads(line)["key"] for line in after if line.endswith("}")}) == 12


def test_side_by_side_gives_what_one_by_one_gives(tmp_path):
    for jobs in (1, 2):
        result = call("--out", tmp_path / str(jobs), "--quick", "--jobs", jobs, "--only", "fig:J")
        assert result.exit_code == 0, result.output
    one, two = ((tmp_path / str(jobs) / "fig-J.csv").read_text() for jobs in (1, 2))
    assert one == two


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--only", "fig:radios"], "did you mean fig:radius"),
        (["--only", "fig:radius", "--only", "nothing"], "--only: expected one of fig:radius"),
        (["--data", "not/there.csv"], "--data: expected a file, got not/there.csv"),
        (["--data", "README.md:label"], "README.md"),
        (["--jobs", "0"], "'--jobs'"),
        (["--backend", "slurm"], "'--backend': 'slurm' is not one of"),
        (["--scheduler", "tcp://a:1", "--only", "fig:J"], "--scheduler: expected --backend dask or ray"),
        (["--out", __file__], "'--out'"),
    ],
)
def test_errors_name_what_was_expected(tmp_path, options, said):
    result = call("--out", tmp_path / "out", *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_a_failing_cell_gives_one_line(tmp_path, monkeypatch):
    def fails(cell):
        raise RuntimeError("two algorithms differ")

    monkeypatch.setattr(runner, "_done", fails)
    result = call("--out", tmp_path / "out", "--quick", "--only", "fig:radius")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "reproduce: RuntimeError: two algorithms differ (set NORMBALL_TRACEBACK=1" in result.stderr.splitlines()[-1]
    assert "Traceback" not in result.stderr


def test_list_names_them_all(tmp_path):
    result = call("--out", tmp_path, "--list")
    assert result.exit_code == 0
    assert all(name in result.output for name in KNOWN)
