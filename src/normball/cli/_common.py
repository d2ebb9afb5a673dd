"""What the commands share: where they talk, how they end, and how their help is written."""

from __future__ import annotations

import inspect
import os
import re
import signal
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from typer.core import TyperGroup

from normball._spelling import as_options

__all__ = ["FAILED", "INTERRUPTED", "USAGE", "Commands", "add", "messages", "stopped", "within_reach"]

FAILED = 1
USAGE = 2  # a wrong option, or a bad table
INTERRUPTED = 128 + signal.SIGINT
UNREAD = 128 + 13  # nobody reads the output any more, as after `| head`: the number of SIGPIPE is 13

_TRACEBACK = "NORMBALL_TRACEBACK"
_MENDABLE = (ValueError, TypeError, ImportError, OSError, MemoryError)  # what the user can mend
_UsageError: Any = typer.BadParameter.__base__  # it has no public name


def messages() -> Console:
    """Return the console for all that is not a result: standard error, with nothing read as markup."""
    return Console(stderr=True, markup=False, highlight=False, soft_wrap=True)


def stopped(text: str) -> typer.Exit:
    """Say that the user has stopped the command; return what ends it."""
    console = messages()
    console.print(f"{chr(10) if console.is_terminal else ''}Stopped. {text}".rstrip())  # below the ^C of a terminal
    return typer.Exit(INTERRUPTED)


def within_reach(path: Path | None) -> Path | None:
    """Check that a file or folder which is not there yet can be made, before any work is done."""
    if path is not None and not path.exists():
        there = next(parent for parent in path.absolute().parents if parent.exists())
        if not there.is_dir() or not os.access(there, os.W_OK):
            what = "is a file" if not there.is_dir() else "cannot be written"
            raise typer.BadParameter(f"'{path}' cannot be made, because {there} {what}.")
    return path


def add(app: typer.Typer, command: Callable[..., None], *examples: str) -> None:
    """Register a command, with examples below its help; paragraphs of its docstring become lines that flow."""

    @wraps(command)
    def run(**arguments: Any) -> None:
        with as_options(arguments):
            command(**arguments)

    paragraphs = (inspect.getdoc(command) or "").split("\n\n")
    told = "\n\n".join(" ".join(each.split()) for each in paragraphs)
    app.command(help=told, epilog="\n\n".join(["Examples:", *examples]))(run)


class Commands(TyperGroup):
    """The commands; however one of them ends, it says so in one line on standard error, and by its exit code."""

    def main(self, *args: Any, **options: Any) -> Any:
        """Run a command line, and end the process; return the exit code if ``standalone_mode=False``."""
        try:
            code = super().main(*args, **options | {"standalone_mode": False})
        except _UsageError as error:
            code = _misused("normball", error)
        except typer.Abort:
            code = INTERRUPTED
        if options.get("standalone_mode", True):
            sys.exit(code)
        return code

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        try:
            super().invoke(ctx)
            if sys.stdout is not None:
                sys.stdout.flush()
        except (typer.Exit, typer.Abort):
            raise
        except _UsageError as error:
            raise typer.Exit(_misused(f"{ctx.command_path} {ctx.invoked_subcommand or ''}".strip(), error)) from None
        except KeyboardInterrupt:
            raise stopped("") from None
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # takes what Python flushes at its end
            raise typer.Exit(UNREAD) from None
        except Exception as error:
            if os.environ.get(_TRACEBACK):
                raise
            command = self.commands[ctx.invoked_subcommand]
            name, text = f"{ctx.command_path} {command.name}", _text(error)
            if isinstance(error, _MENDABLE):
                messages().print(f"{name}: {_spelt(text, command)}")
                raise typer.Exit(USAGE) from None
            messages().print(f"{name}: {type(error).__name__}: {text} (set {_TRACEBACK}=1 to see where it comes from)")
            raise typer.Exit(FAILED) from None


def _misused(name: str, error: Any) -> int:
    """Say in a line what typer found wrong with the options; return the exit code."""
    text = " ".join(error.format_message().split()).replace("Value error, ", "")
    messages().print(f"{name}: {text}{'' if text.endswith(('.', '?')) else '.'} See {name} --help.")
    return USAGE


def _text(error: Exception) -> str:
    """Return the message of an error on one line."""
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split()) or type(error).__name__


def _spelt(text: str, command: Any) -> str:
    """Spell the arguments that a message begins with, as ``n_features: expected ...`` does, as options."""
    options = {each.name: each.opts[0] for each in command.params if each.opts[0].startswith("--")}
    head, colon, rest = text.partition(": ")
    if not re.fullmatch(r"\w+(, \w+)*", head):
        return text
    return ", ".join(options.get(name, name) for name in head.split(", ")) + colon + rest
