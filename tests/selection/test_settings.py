"""One record of what is asked: its checks, its defaults, and how one study is told from another."""

import dataclasses
import inspect
import json

import numpy as np
import pytest

from normball.selection import study
from normball.selection.procedure import planned
from normball.selection.progress import other_study
from normball.selection.settings import Settings

NAMES = [field.name for field in dataclasses.fields(Settings)]


def test_a_study_has_the_same_defaults():
    parameters = inspect.signature(study).parameters
    assert {name: parameters[name].default for name in NAMES} == dataclasses.asdict(Settings())
    assert set(parameters) - set(NAMES) >= {"jobs", "progress", "listener"}


def test_json_can_hold_it():
    settings = Settings(n_features=np.int64(3), folds=np.int32(4), epochs=np.int64(7), random_state=np.uint8(1))
    assert json.loads(json.dumps(dataclasses.asdict(settings))) == dataclasses.asdict(settings)
    assert type(Settings(radius=np.float32(0.5)).radius) is float
    assert type(Settings(n_features=np.float32(0.5)).n_features) is float


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"n_features": 0}, "n_features: expected 'auto', an int >= 1 or a share between 0 and 1, got 0"),
        ({"n_features": 1.5}, "n_features: expected .*, got 1.5"),
        ({"n_features": "some"}, "n_features: expected .*, got 'some'"),
        ({"n_features": True}, "n_features: expected .*, got True"),
        ({"folds": 2.0}, "folds: expected an int >= 2, got 2.0"),
        ({"seeds": None}, "seeds: expected an int >= 1, got None"),
        ({"epochs": 0}, "epochs: expected an int >= 1, got 0"),
        ({"radius": float("inf")}, "radius: expected a number > 0, got inf"),
        ({"radius": "1"}, "radius: expected a number > 0, got '1'"),
        ({"norm": ["l1"]}, "norm: expected one of 'l1', .*, got \\['l1'\\]"),
        ({"log": None}, "log: expected one of 'auto', 'yes', 'no', got None"),
        ({"device": "abacus"}, "device: expected"),
    ],
)
def test_it_is_checked_when_it_is_made(wrong, said):
    with pytest.raises(ValueError, match=said):
        Settings(**wrong)


@pytest.fixture
def record(make_table):
    return lambda **settings: planned(make_table(), Settings(folds=3, **settings)).record


def results(folder, content):
    folder.mkdir(exist_ok=True)
    (folder / "metrics.json").write_text(content)
    return folder


def test_the_same_study(record, tmp_path):
    assert other_study(tmp_path / "none", record()) is None
    assert other_study(tmp_path, record()) is None
    held = results(tmp_path / "same", json.dumps({"settings": record()}))
    assert other_study(held, record()) is None
    assert other_study(held, record(seeds=5, permutations=9)) is None  # more of the same


def test_another_study(record, make_table, tmp_path):
    held = results(tmp_path / "other", json.dumps({"settings": record(norm="l12")}))
    assert other_study(held, record()) == "norm is 'l12' there and 'l1inf' here"
    both = other_study(held, record(impute="half-min"))
    assert both == "norm is 'l12' there and 'l1inf' here, impute is 'median' there and 'half-min' here"
    older = record()
    older |= {"fingerprint": "another", "versions": older["versions"] | {"torch": "1.0"}}
    assert other_study(results(held, json.dumps({"settings": older})), record()).startswith("torch is '1.0' there")
    table = planned(make_table(seed=1), Settings(folds=3)).record
    assert other_study(held, table | {"versions": older["versions"]}) == "the table or its labels differ"
    # What is under way counts before what is finished.
    (held / ".progress").mkdir()
    (held / ".progress" / "study.json").write_text(json.dumps(record(norm="l1")))
    assert other_study(held, record()) == "norm is 'l1' there and 'l1inf' here"


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"settings": 3}', "{torn"])
def test_a_file_of_somebody_else(record, tmp_path, content):
    assert other_study(results(tmp_path, content), record()) == "the table or its labels differ"
