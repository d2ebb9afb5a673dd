"""The tables: synthetic ones as the paper states them, and the real ones where they are at hand."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_classification

INFORMATIVE = 64


@dataclass(frozen=True)
class Table:
    name: str
    X: Any
    y: Any
    informative: int | None  # the first so many features, on synthetic data
    standardize: bool


@dataclass(frozen=True)
class Synthetic:
    features: int
    sep: float
    clusters: int
    raw: bool = False

    @property
    def name(self) -> str:
        scaled = "raw" if self.raw else "standardised"
        return f"1000 x {self.features}, sep {self.sep}, {self.clusters} per class, {scaled}"

    def table(self, seed: int) -> Table:
        X, y = make_classification(
            1000, self.features, n_informative=INFORMATIVE, n_redundant=0, class_sep=self.sep, shuffle=False,
            n_clusters_per_class=self.clusters, random_state=seed,
        )  # fmt: skip
        return Table(self.name, X, y, INFORMATIVE, not self.raw)


SYNTHETIC = [
    Synthetic(10000, 0.8, 1),
    Synthetic(10000, 0.8, 2),
    Synthetic(10000, 0.8, 1, raw=True),
    Synthetic(10000, 1.2, 1),
    Synthetic(1000, 0.8, 1),
]


def _microarray(path: Path) -> tuple[Any, Any]:
    with gzip.open(path, "rt") as file:
        names = file.readline().strip().split(",")
        rows = [line.strip().split(",") for line in file]
    label = [name.strip('"') for name in names].index("label")
    y = np.array([row[label].strip('"') for row in rows])
    X = np.array([[float(value) for value in row[label + 1 :]] for row in rows])
    return X, y


def _floored(X: Any) -> Any:
    return np.log2(np.clip(X, 20.0, 16000.0))


def _gc_breast(path: Path) -> tuple[Any, Any]:
    lines = [line.rstrip("\n").split(";") for line in path.read_text(encoding="utf-8-sig").splitlines()]
    body = np.array([[float(v.replace(",", ".")) for v in line[1:]] for line in lines[1:] if len(line) > 1])
    return body[1:].T, body[0].astype(int)


def _pbmc(path: Path) -> tuple[Any, Any]:
    import anndata

    adata = anndata.read_h5ad(path)
    X = adata.raw.X
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X), np.asarray(adata.obs["bulk_labels"]).astype(str)


def real(folder: Path) -> Iterator[Table]:
    logs: dict[str, Callable[[Any], Any]] = {"alon": np.log, "golub": _floored, "singh": _floored, "khan": lambda X: X}
    readers: dict[str, Callable[[], tuple[Any, Any]]] = {
        "gc_breast.csv": lambda: _gc_breast(folder / "gc_breast.csv"),
        **{f"{name}.csv.gz": lambda name=name: _microarray(folder / f"{name}.csv.gz") for name in logs},
        "pbmc68k_reduced.h5ad": lambda: _pbmc(folder / "pbmc68k_reduced.h5ad"),
    }
    for file, read in readers.items():
        if not (folder / file).exists():
            print(f"{file}: not in {folder}, skipped")
            continue
        name = file.split(".")[0]
        X, y = read()
        yield Table(name, logs.get(name, lambda X: X)(X), y, None, True)
