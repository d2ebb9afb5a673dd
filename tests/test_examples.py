"""The examples run, and do what they say."""

import importlib.util
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("kind", "epochs", "lost"), [("perceptron", 20, 3.0), ("convnet", 2, 100.0)])
def test_digits(kind, epochs, lost):
    pytest.importorskip("sklearn")
    digits = load("digits")
    threads = digits.torch.get_num_threads()
    digits.torch.set_num_threads(1)
    try:
        outcome = digits.experiment(kind, epochs=epochs)
    finally:
        digits.torch.set_num_threads(threads)
    assert outcome.small == outcome.sparse
    assert outcome.small >= outcome.dense - lost
    assert outcome.result.after["parameters"] < 0.4 * outcome.result.before["parameters"]
    assert outcome.result.after["flops"] < 0.4 * outcome.result.before["flops"]


def test_demo(tmp_path, capsys):
    pytest.importorskip("typer")
    demo = load("demo")
    quick = ("--seeds", "1", "--folds", "2", "--n-features", "12", "--epochs", "3", "--jobs", "1")
    demo.selection(tmp_path, 60, 80, *quick)
    said = capsys.readouterr().out
    assert (tmp_path / "results" / "report.html").exists()
    assert str(tmp_path / "results" / "report.html") in said
    assert "12 features matter" in said
    Y = demo.planted(20, 30, informative=5)
    X, info = demo.normball.project_l1inf(Y, 3.0, return_info=True)
    demo.picture(Y, X, info, 3.0, tmp_path / "projection.png")
    assert (tmp_path / "projection.png").stat().st_size > 10_000
