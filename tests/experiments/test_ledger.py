"""What is kept survives being cut off anywhere; what is done is not done again."""

import json

import pytest

from normball.experiments import runner
from normball.experiments.experiment import Cell, Experiment, Setting, Verdict, Work, work
from normball.experiments.ledger import Ledger

CALLS = []


@work(version=1)
def squares(number, seed):
    CALLS.append(number)
    return [{"square": number**2}, {"square": -(number**2)}]


def cells(setting):
    return [squares(number=number, seed=0) for number in range(2 if setting.quick else 4)]


EXPERIMENT = Experiment("fig:made-up", "", "", "", "", cells, lambda data: None, lambda data: Verdict("holds", ""))
QUICK, FULL = Setting(quick=True), Setting()


def run(path, setting=FULL, told=lambda cell: None):
    CALLS.clear()
    ledger = Ledger(path)
    runner.run(runner.missing([EXPERIMENT, EXPERIMENT], setting, ledger), ledger, 1, told)
    return ledger


def test_a_cell_is_done_once_though_two_figures_show_it(tmp_path):
    run(tmp_path / "a" / "cells.jsonl")
    assert CALLS == [0, 1, 2, 3]


def test_rows_carry_the_parameters_of_their_cell(tmp_path):
    data = runner.data_of(EXPERIMENT, FULL, run(tmp_path / "cells.jsonl"))
    assert list(data["number"]) == [0, 0, 1, 1, 2, 2, 3, 3]
    assert list(data["square"]) == [0, 0, 1, -1, 4, -4, 9, -9]


def test_a_second_run_does_only_what_is_missing(tmp_path):
    run(tmp_path / "cells.jsonl", QUICK)
    assert CALLS == [0, 1]
    run(tmp_path / "cells.jsonl")
    assert CALLS == [2, 3]


def test_an_interrupt_loses_nothing_that_was_done(tmp_path):
    def interrupt(cell):
        if cell.params["number"] == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "cells.jsonl", told=interrupt)
    run(tmp_path / "cells.jsonl")
    assert CALLS == [2, 3]


@pytest.mark.parametrize("keep", [0.02, 0.3, 0.5, 0.77, 0.99])
def test_a_file_cut_off_anywhere_is_read_and_written_on(tmp_path, keep):
    path = tmp_path / "cells.jsonl"
    run(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(keep * len(whole))])
    left = path.read_bytes().count(b"\n")
    ledger = run(path)
    assert list(range(left, 4)) == CALLS
    assert list(runner.data_of(EXPERIMENT, FULL, ledger)["square"]) == [0, 0, 1, -1, 4, -4, 9, -9]
    assert not runner.missing([EXPERIMENT], FULL, Ledger(path))  # and what was written after the torn line is found


def test_foreign_lines_are_passed_over(tmp_path):
    path = tmp_path / "cells.jsonl"
    path.write_text('nonsense\n[1]\n{"rows": []}\n\xff\n', encoding="latin-1")
    run(path)
    assert CALLS == [0, 1, 2, 3]


def test_keys_tell_parameters_versions_and_for_times_machines_apart():
    one = Cell(Work("a", lambda: [], 1, timed=True), {"x": 1})
    assert one.key("here") != one.key("there")
    assert one.key("here") != Cell(Work("a", lambda: [], 2, timed=True), {"x": 1}).key("here")
    assert one.key("here") != Cell(one.work, {"x": 2}).key("here")
    free = Cell(Work("a", lambda: [], 1, timed=False), {"x": 1, "y": [1, 2]})
    assert free.key("here") == free.key("there")
    assert json.loads(free.key(""))[-1] == {"x": 1, "y": [1, 2]}


def test_timed_cells_come_first(tmp_path):
    def both(setting):
        timed = Cell(Work("timed", lambda: [], 1, timed=True), {})
        return [*cells(setting), timed]

    mixed = Experiment("fig:mixed", "", "", "", "", both, lambda data: None, lambda data: Verdict("holds", ""))
    ledger = Ledger(tmp_path / "cells.jsonl")
    assert runner.missing([mixed], FULL, ledger)[0].work.timed
    runner.run(runner.missing([mixed], FULL, ledger), ledger, 1, lambda cell: None)
    assert not runner.missing([mixed], FULL, ledger)
    assert [cell.work.name for cell in runner.missing([mixed], FULL, ledger, retime=True)] == ["timed"]
