"""The work of the biological table: the paper's comparison on a table of the user's."""

from __future__ import annotations

import hashlib
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from normball.data import read_table
from normball.experiments.experiment import Cell, Row, work
from normball.experiments.fits import METHODS

__all__ = ["absolute", "cross_validations", "load", "parsed"]

INTENSE = 100.0  # tables with larger values hold intensities, not their logarithms


def parsed(spec: str) -> tuple[Path, dict[str, str]]:
    """Return the file and how its labels are found: ``FILE``, ``FILE:COLUMN`` or ``FILE:row=LINE``."""
    if Path(spec).is_file():
        return Path(spec), {"target": "label"}
    file, _, target = spec.rpartition(":")
    if not Path(file).is_file():
        raise ValueError(f"data: expected a file, got {spec}")
    line = target.removeprefix("row=")
    return Path(file), ({"target": target} if line == target else {"label_row": line})


def absolute(spec: str) -> str:
    """Return the same for any working directory: what is kept is found again from another one."""
    file = spec if Path(spec).is_file() else spec.rpartition(":")[0]
    return f"{Path(file).resolve()}{spec[len(file) :]}"


def load(spec: str) -> tuple[str, Any, Any]:
    """Return a name that says what was done, samples by features, and labels.

    Raises
    ------
    ValueError
        For a file that is not there, is no table or has no labels.
    """
    path, labels = parsed(spec)
    table = read_table(path, **labels)  # type: ignore[arg-type]
    X = np.asarray(table.X, np.float64)
    logs = bool(np.nanmax(np.abs(X)) > INTENSE)
    name = f"{path.name}, {X.shape[0]} x {X.shape[1]}, {len(table.classes)} classes{', logs' if logs else ''}"
    return name, (np.arcsinh(X) if logs else X), table.y  # like a logarithm, but at home below zero too


@work(version=1)
def _cross_validation(table: str, digest: str, method: str, seed: int, folds: int) -> list[Row]:
    """Return a row for each outer fold; imputing, scaling and every choice are made inside the training part."""
    from sklearn.impute import SimpleImputer
    from sklearn.model_selection import StratifiedKFold
    from sklearn.pipeline import make_pipeline

    from normball.estimators import SupervisedAutoencoder

    name, X, y = load(table)
    rows = []
    for fold, (train, test) in enumerate(StratifiedKFold(folds, shuffle=True, random_state=seed).split(X, y)):
        sae = SupervisedAutoencoder(random_state=seed, **METHODS[method])
        model = make_pipeline(SimpleImputer(strategy="median", keep_empty_features=True), sae)
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # rare classes are the table's, not ours
            model.fit(X[train], y[train])
        rows.append(
            {
                "data": name,
                "fold": fold,
                "accuracy": 100.0 * float(model.score(X[test], y[test])),
                "kept": int(sae.support_.sum()),
                "column_sparsity": 100.0 * (1.0 - float(sae.support_.mean())),
                "seconds": time.perf_counter() - start,
            }
        )
    return rows


def cross_validations(specs: tuple[str, ...], methods: list[str], seeds: int, folds: int) -> list[Cell]:
    """Return the cells for these tables; a changed file is another table."""
    digests = {spec: hashlib.sha256(parsed(spec)[0].read_bytes()).hexdigest()[:16] for spec in specs}
    return [
        _cross_validation(table=spec, digest=digest, method=method, seed=seed, folds=folds)
        for spec, digest in digests.items()
        for method in methods
        for seed in range(seeds)
    ]
