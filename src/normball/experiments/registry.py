"""The experiments, found by folder: a new one is a file in ``figures/`` with a constant ``EXPERIMENT``."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections.abc import Sequence

from normball.experiments import figures
from normball.experiments.experiment import Experiment

__all__ = ["chosen", "experiments"]


def experiments() -> dict[str, Experiment]:
    """Return all of them by id, in the order of the paper."""
    names = sorted(module.name for module in pkgutil.iter_modules(figures.__path__))
    found = [importlib.import_module(f"{figures.__name__}.{name}").EXPERIMENT for name in names]
    return {each.id: each for each in sorted(found, key=lambda each: figures.ORDER.index(each.id))}


def chosen(only: Sequence[str] = ()) -> list[Experiment]:
    """Return those asked for, or all.

    Raises
    ------
    ValueError
        For an unknown id; the message names the nearest.
    """
    known = experiments()
    for name in only:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
            near = near or [key for key in known if name.rpartition(":")[2] in key]
            hint = f"; did you mean {', '.join(near)}?" if near else ""
            raise ValueError(f"only: expected one of {', '.join(known)}, got {name!r}{hint}")
    return [each for key, each in known.items() if not only or key in only]
