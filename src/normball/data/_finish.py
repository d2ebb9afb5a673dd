"""The checks that every table passes, whatever file it comes from."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from normball._spelling import argument
from normball.data._cells import UNLABELLED
from normball.data._plan import Options, Raw
from normball.data.table import Table, TableError, blocks, show

__all__ = ["finish"]


def finish(raw: Raw, options: Options, file_name: str, extra_missing: Sequence[str], folds: int | None) -> Table:
    """Check names, labels and numbers; leave out what carries nothing, and say so."""
    name, notes = options.name, list(raw.notes)
    _unique(raw.features, f"{name}: feature", lambda j: f"feature {j + 1}")
    if raw.ids is not None:
        _unique(raw.ids, f"{name}: sample id", raw.row)
    if not len(raw.X):
        raise TableError(f"{name}: there are no samples")
    for mark in extra_missing:  # where it is a number, however it is written
        with contextlib.suppress(ValueError):
            raw.X[np.float32(mark) == raw.X] = np.nan
    _in_range(raw, name)
    ids = raw.ids if raw.ids is not None else [str(i + 1) for i in range(len(raw.X))]
    X, y, groups = raw.X, raw.y, raw.groups
    if groups is not None and (bare := [i for i, each in enumerate(groups) if each in UNLABELLED]):
        raise TableError(f"{name}, {raw.row(bare[0])}: no group; {len(bare)} samples lack one")
    if y is not None:
        kept = [i for i, label in enumerate(y) if label not in UNLABELLED]
        if not kept:
            raise TableError(f"{name}: {argument('target')} {show(options.target)} is empty in every sample")
        if options.features is not None:
            y = ["" if label in UNLABELLED else label for label in y]
        elif len(kept) < len(y):
            gone = sorted(set(range(len(y))) - set(kept))
            few = ", ".join(show(ids[i], 30) for i in gone[:3])
            notes.append(f"{len(gone)} samples without a label were left out: {few}{', ...' if len(gone) > 3 else ''}")
            X, ids, y = X[kept], [ids[i] for i in kept], [y[i] for i in kept]
            groups = groups and [groups[i] for i in kept]
        if options.features is None:
            _classes(y, name, options, folds)
    features = raw.features
    # Of samples that are there to be scored, what is constant among a few of them may still matter.
    scored = y is None or options.features is not None
    keep = np.ones(len(features), bool) if scored else _telling(X, features, notes)
    if not keep.any():
        raise TableError(f"{name}: every feature is constant or missing in all samples")
    if not keep.all():
        X = np.take(X, np.flatnonzero(keep), axis=1)
        features = [feature for feature, kept_too in zip(features, keep, strict=True) if kept_too]
    _dates(features, notes)
    table = Table(X, features, ids, _array(y), _array(groups), file_name, notes, raw.aside)
    if count := table.n_missing:
        notes.append(f"{count} values are missing ({100 * count / X.size:.2g} %)")
    return table


def _array(values: list[str] | None) -> npt.NDArray[np.object_] | None:
    return None if values is None else np.array(values, dtype=object)


def _unique(names: Sequence[str], what: str, where: Callable[[int], str]) -> None:
    if len(set(names)) == len(names):
        return
    twice = [name for name, count in Counter(names).items() if count > 1]
    first = [where(i) for i, name in enumerate(names) if name == twice[0]]
    more = f"; {len(twice)} names are there more than once" if len(twice) > 1 else ""
    raise TableError(f"{what} {show(twice[0])} is there {len(first)} times ({', '.join(first[:4])}){more}")


def _in_range(raw: Raw, name: str) -> None:
    """Text is checked where it is read; this is for files of numbers."""
    for start, block in blocks(raw.X):
        if np.isinf(block).any():
            i, j = np.argwhere(np.isinf(block))[0].tolist()
            where = f"{name}, {raw.row(start + i)}, {show(raw.features[j])}"
            raise TableError(f"{where}: infinite, or beyond the range of float32")


def _classes(y: list[str], name: str, options: Options, folds: int | None) -> None:
    counts = Counter(y)
    named = f"{argument('target')} {show(options.target)}" if options.target is not None else "the target"
    target = f"{name}: {named}"
    if len(counts) == 1:
        raise TableError(f"{target} has one class only, {show(y[0])}; two at least are needed")
    if len(counts) == len(y) > 2:
        raise TableError(f"{target} has another value in each of {len(y)} samples, such as {show(y[0])}: no classes")
    rare, least = min(counts.items(), key=lambda item: item[1])
    if folds is not None and least < folds:
        many = f"; so have {sum(count < folds for count in counts.values()) - 1} more classes"
        raise TableError(
            f"{target}: class {show(rare)} has {least} sample{'s' * (least > 1)}, fewer than the {folds} folds"
            + (many if not many.startswith("; so have 0") else "")
            + "; use fewer folds, or leave the class out"
        )


def _telling(X: npt.NDArray[np.float32], features: list[str], notes: list[str]) -> npt.NDArray[np.bool_]:
    """Mark the features that vary."""
    low = np.full(X.shape[1], np.inf, np.float32)
    high = np.full(X.shape[1], -np.inf, np.float32)
    for _, block in blocks(X):
        np.fmin(low, np.fmin.reduce(block, axis=0), out=low)
        np.fmax(high, np.fmax.reduce(block, axis=0), out=high)
    empty = low > high
    constant = ~empty & (low == high) & (len(X) > 1)
    for what, gone in (("missing in all samples", empty), ("constant", constant)):
        if gone.any():
            few = ", ".join(show(features[j], 40) for j in np.flatnonzero(gone)[:5])
            count = int(gone.sum())
            verb = "features are" if count > 1 else "feature is"
            notes.append(f"{count} {verb} {what}, left out: {few}{', ...' if count > 5 else ''}")
    keep: npt.NDArray[np.bool_] = ~(empty | constant)
    return keep


_DATE = re.compile(r"(\d{1,2}-(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)|\d{4}-\d\d-\d\d( 00:00:00)?)", re.I)


def _dates(features: list[str], notes: list[str]) -> None:
    dates = [name for name in features if len(name) < 20 and _DATE.fullmatch(name)]
    if dates:
        few = ", ".join(map(show, dates[:3]))
        notes.append(f"{len(dates)} features have dates for names ({few}): a spreadsheet may have changed gene names")
