"""The ``normball`` command with its subcommands.

A command lives in a file of its own and is registered here; what it needs beyond typer it imports when it runs, so
that ``normball --help`` answers at once.
"""

from typing import Annotated

import typer

import normball
from normball.cli._common import USAGE, Commands, add
from normball.cli.apply import apply
from normball.cli.reproduce import reproduce
from normball.cli.select import select

app = typer.Typer(
    name="normball",
    cls=Commands,
    epilog="Examples:\n\nnormball select expression.csv --target diagnosis\n\nnormball apply results/model new.csv",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"normball {normball.__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", "-V", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Find the few features of a table that matter, apply the model to new samples, and reproduce the paper."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(USAGE)


add(
    app,
    select,
    "normball select expression.csv --target diagnosis --out results",
    "normball select counts.tsv.gz --transpose --target Label --drop batch --group patient",
    "normball select cells.h5ad --obs-target cell_type --layer raw --n-features 20",
    "normball select matrix.csv --labels clinic.xlsx --target outcome --permutations 100 --jobs 4",
)
add(
    app,
    apply,
    "normball apply results/model new.csv",
    "normball apply results/model new.csv --out predictions.csv",
    "normball apply results/model cohort.csv --target diagnosis --json > predictions.json",
)
add(
    app,
    reproduce,
    "normball reproduce --quick --out paper",
    "normball reproduce --only fig:radius --only fig:theta",
    "normball reproduce --data colon.csv:tissue --only table:biology",
)
