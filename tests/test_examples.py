"""The examples run, and do what they say."""

import importlib.util
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


@pytest.mark.parametrize(("kind", "epochs", "lost"), [("perceptron", 20, 3.0), ("convnet", 2, 100.0)])
def test_digits(kind, epochs, lost):
    pytest.importorskip("sklearn")
    spec = importlib.util.spec_from_file_location("digits", EXAMPLES / "digits.py")
    digits = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = digits  # where dataclasses look
    spec.loader.exec_module(digits)
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
