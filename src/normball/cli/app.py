"""The ``normball`` command with its subcommands.

A command lives in a file of its own and is registered here; what it needs beyond typer it imports when it runs, so
that ``normball --help`` answers at once.
"""

from typing import Annotated

import typer

import normball
from normball.cli.apply import apply
from normball.cli.reproduce import reproduce
from normball.cli.select import select

app = typer.Typer(
    name="normball",
    help="Exact projections onto mixed-norm balls, and the few features that matter.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"normball {normball.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which.")] = False,
) -> None:
    pass


app.command()(select)
app.command()(apply)
app.command()(reproduce)
