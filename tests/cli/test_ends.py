"""How commands begin and end, whatever happens: help, versions, interrupts, faults, and output that nobody reads."""

import os
import re
import subprocess
import sys
import typing

import pytest
import typer
from typer.testing import CliRunner

import normball
from normball.cli.app import app
from normball.estimators._path import NORMS
from normball.selection.preparation import IMPUTATIONS, LOGS
from normball.selection.settings import Settings

COMMANDS = ("select", "apply", "reproduce")


def run(*arguments, **options):
    return CliRunner().invoke(app, arguments, **options)


def plain(text):
    return " ".join(re.sub(r"\x1b\[[0-9;]*m|[│╭╰─╮╯]", " ", text).split())


@pytest.mark.parametrize("option", ["-V", "--version"])
def test_version(option):
    done = run(option)
    assert (done.exit_code, done.output) == (0, f"normball {normball.__version__}\n")


def test_without_a_command_there_is_help():
    done = run()
    assert done.exit_code == 2
    assert all(name in done.output for name in (*COMMANDS, "--install-completion"))


def test_unknown_commands_and_options():
    for wrong, said in ((["slect"], "No such command 'slect'"), (["--frob"], "--frob")):
        done = run(*wrong)
        assert (done.exit_code, done.stdout) == (2, "")
        assert said in done.stderr
        assert done.stderr.endswith(" See normball --help.\n")
        assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("command", COMMANDS)
def test_help(command):
    done = run(command, "-h", env={"COLUMNS": "200", "TERM": "dumb"})
    assert done.exit_code == 0
    said = plain(done.stdout)
    assert f"Examples: normball {command} " in said
    group = typer.main.get_command(app)
    examples = group.commands[command].epilog.split("\n\n")[1:]
    assert len(examples) >= 3
    for example in examples:  # each is a command line that its parser takes
        words = re.sub(r" > .*", "", example).split()
        assert words[:2] == ["normball", command]
        flags = {option for each in group.commands[command].params for option in each.opts}
        assert {word for word in words if word.startswith("--")} <= flags
    for each in group.commands[command].params:
        if each.param_type_name == "option" and each.name != "help":
            assert re.fullmatch(r"[A-Z].*[.]", each.help), (each.name, each.help)


def choices(command, name):
    function = next(each.callback for each in app.registered_commands if each.callback.__name__ == command)
    annotation = typing.get_type_hints(function)[name]
    return typing.get_args(annotation)


def test_choices_and_defaults_are_those_of_the_library():
    assert sorted(choices("select", "norm")) == sorted([*NORMS, "none"])
    assert choices("select", "log") == LOGS
    assert choices("select", "impute") == IMPUTATIONS
    parameters = {each.name: each.default for each in typer.main.get_command(app).commands["select"].params}
    for name, default in vars(Settings()).items():
        assert parameters[name] == default, name


def test_completion_knows_the_choices():
    for typed, found in (
        ("--norm bilevel", ["bilevel_l1inf", "bilevel_l11", "bilevel_l12"]),
        ("--device c", ["cpu", "cuda"]),
    ):
        asked = {"_NORMBALL_COMPLETE": "complete_bash", "COMP_WORDS": f"normball select {typed}", "COMP_CWORD": "3"}
        assert run(env=asked, prog_name="normball").stdout.split() == found


def test_help_is_quick():
    program = (
        "import sys; from typer.testing import CliRunner; from normball.cli.app import app;"
        "done = CliRunner().invoke(app, ['select', '--help']); assert done.exit_code == 0;"
        "print('torch' in sys.modules, 'sklearn' in sys.modules, 'pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"] * 3


@pytest.fixture
def failing(monkeypatch):
    """A command that fails in a given way."""

    def made(error):
        def fail(*_, **__):
            raise error

        monkeypatch.setattr("normball.experiments.registry.chosen", fail)
        return run("reproduce", "--list")

    return made


def test_what_the_user_can_mend(failing):
    for error, said in (
        (ValueError("retime: expected\n  a time"), "--retime: expected a time"),
        (ValueError("nothing: to spell"), "nothing: to spell"),
        (FileNotFoundError(2, "No such file or directory", "a.csv"), "a.csv: No such file or directory"),
        (MemoryError(), "MemoryError"),
    ):
        done = failing(error)
        assert (done.exit_code, done.stdout) == (2, "")
        assert done.stderr.endswith(f" reproduce: {said}\n")
        assert done.stderr.count("\n") == 1


def test_faults(failing, monkeypatch):
    done = failing(RuntimeError("out\nof order"))
    assert (done.exit_code, done.stdout) == (1, "")
    assert "reproduce: RuntimeError: out of order (set NORMBALL_TRACEBACK=1 to see where it comes from)" in done.stderr
    assert done.stderr.count("\n") == 1
    monkeypatch.setenv("NORMBALL_TRACEBACK", "1")
    assert isinstance(failing(RuntimeError("out of order")).exception, RuntimeError)
    assert isinstance(failing(ValueError("wrong")).exception, ValueError)


def test_interrupts(failing):
    done = failing(KeyboardInterrupt())
    assert (done.exit_code, done.stdout, done.stderr) == (130, "", "Stopped.\n")


def test_output_that_nobody_reads():
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "normball", "reproduce", "--list"]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")
