"""The work of the biological table: the paper's comparison on a table of the user's."""

from __future__ import annotations

import hashlib
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from normball.experiments.experiment import Cell, Row, work
from normball.experiments.fits import METHODS

__all__ = ["cross_validations"]

INTENSE = 100.0  # tables with larger values hold intensities, not their logarithms


def _read(path: str) -> tuple[Any, Any, bool]:
    """Return samples by features, labels, and whether logarithms were taken."""
    import pandas as pd

    table = pd.read_csv(path, sep=None, engine="python")
    if "label" not in table:
        raise ValueError(f"data: expected a table with a column 'label', got {Path(path).name} without")
    X = table.drop(columns="label").select_dtypes("number").to_numpy(np.float64)
    logs = bool(np.nanmax(np.abs(X)) > INTENSE)
    return (np.arcsinh(X) if logs else X), table["label"].astype(str).to_numpy(), logs  # at home below zero too


@work(version=1)
def _cross_validation(path: str, digest: str, method: str, seed: int, folds: int) -> list[Row]:
    """Return a row for each outer fold; imputing, scaling and every choice are made inside the training part."""
    from sklearn.impute import SimpleImputer
    from sklearn.model_selection import StratifiedKFold
    from sklearn.pipeline import make_pipeline

    from normball.estimators import SupervisedAutoencoder

    X, y, logs = _read(path)
    name = f"{Path(path).name}, {X.shape[0]} x {X.shape[1]}, {len(set(y))} classes{', logs' if logs else ''}"
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


def cross_validations(paths: tuple[str, ...], methods: list[str], seeds: int, folds: int) -> list[Cell]:
    """Return the cells for these tables; a changed file is another table."""
    digests = {path: hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16] for path in paths}
    return [
        _cross_validation(path=path, digest=digest, method=method, seed=seed, folds=folds)
        for path, digest in digests.items()
        for method in methods
        for seed in range(seeds)
    ]
