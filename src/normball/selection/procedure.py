"""The whole procedure: folds and seeds, rivals, the final model, stability, permutations."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import sklearn
import torch

from normball._version import __version__
from normball.data import Table
from normball.data._frames import array_of, is_frame
from normball.estimators import _checks
from normball.estimators.sweeps import sweep
from normball.selection import assembly, folds
from normball.selection.models import load_model, save_model
from normball.selection.progress import Progress, fingerprint_of
from normball.selection.results import Study
from normball.selection.settings import Settings
from normball.selection.units import Data, run, units_of

__all__ = ["Plan", "carried_out", "planned", "study"]


def study(
    table: Table | pd.DataFrame,
    *,
    target: Any = None,
    group: Any = None,
    radius: float | None = None,
    n_features: int | float | str = "auto",
    norm: str | None = "l1inf",
    seeds: int = 3,
    folds: int = 5,
    log: str = "auto",
    impute: str = "median",
    epochs: int | None = None,
    device: str = "cpu",
    jobs: int | None = None,
    permutations: int = 0,
    random_state: int = 0,
    progress: str | Path | None = None,
    listener: Callable[[dict[str, Any]], Any] | None = None,
) -> Study:
    """Find the few features that tell the classes of a table apart, and how sure that is.

    Nested cross-validation, repeated: each outer fold fills gaps, takes logarithms, standardises, chooses the radius
    and fits on its training part alone; its test part only scores. Rivals run in the same folds: logistic regression
    with an l1 penalty, the best features of an analysis of variance with logistic regression, and a random forest, each
    tuned inside. A final model is fitted to all the samples by the same procedure.

    Parameters
    ----------
    table : Table or pandas.DataFrame
        The samples, with their labels. A data frame goes through `Table.from_dataframe`: samples in rows, and numbers
        in all columns but `target` and `group`. Samples of one group are never split between training and test.
    target : label, optional
        The name of the column with the labels, if `table` is a data frame.
    group : label, optional
        The name of the column with the groups, if `table` is a data frame.
    radius : float, optional
        The radius of the ball. By default it is chosen, in each training part, with the number of features.
    n_features : int, float or "auto"
        A number of features, or a fraction of them, in place of the choice. Giving a radius too is an error.
    norm : {"l1inf", "l12", "l1", "bilevel_l1inf", "bilevel_l11", "bilevel_l12"} or None
        The norm of the ball. None uses all the features; a number of features or a radius is then an error.
    seeds : int
        Repeats of the cross-validation, each with other folds.
    folds : int
        Outer folds.
    log : {"auto", "yes", "no"}
        Logarithms: where the training part looks as if nobody had taken them, or as told.
    impute : {"median", "half-min"}
        What fills a gap, from the training part.
    epochs : int, optional
        See `SupervisedAutoencoder`.
    device : str
        "cpu", "cuda" or "auto".
    jobs : int, optional
        Processes of joblib, or what ``joblib.parallel_config`` says. The result does not depend on it.
    permutations : int
        Times that the procedure is run on shuffled labels, over the folds of the first repeat, without the rivals.
    random_state : int
        The first seed; repeat r has this plus r.
    progress : path, optional
        A folder for finished folds. The same study goes on from there; another one begins anew.
    listener : callable, optional
        Called with a dict when it starts, ``event="start"``, with ``began`` ("new", "again" or "anew"), ``units``,
        ``finished``, ``done`` and ``total``; and after each unit, ``event="unit"``, with ``unit``, ``seconds``,
        ``done`` and ``total``.

    Returns
    -------
    Study
        All that was found.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from normball.selection import study
    >>> y = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(size=(60, 30))
    >>> X[:, 7] += 4 * y
    >>> frame = pd.DataFrame(X).add_prefix("gene").assign(status=np.where(y, "ill", "well"))
    >>> found = study(frame, target="status", seeds=1, folds=3)
    >>> list(found.features["feature"][found.features["selected"]])
    ['gene7']
    >>> bool(found.scores.query("method == 'normball'")["accuracy"].mean() > 0.9)
    True
    """
    settings = Settings(
        radius=radius, n_features=n_features, norm=norm, seeds=seeds, folds=folds, log=log, impute=impute,
        epochs=epochs, device=device, permutations=permutations, random_state=random_state,
    )  # fmt: skip
    table, columns = _labelled(table, target, group)
    return carried_out(planned(table, settings, about=columns), jobs=jobs, progress=progress, listener=listener)


@dataclass(frozen=True)
class Plan:
    """A table and settings that fit each other, and the record by which a study is known."""

    data: Data
    features: list[str]
    samples: list[str]
    notes: list[str]
    settings: Settings
    record: dict[str, Any]


def planned(table: Any, settings: Settings, about: Mapping[str, Any] | None = None) -> Plan:
    """Find out before any work whether the settings fit the table; `about` is what else the record is to tell."""
    data = _data(table)
    _checks.count_of(settings.n_features, data.X.shape[1], "n_features")
    for repeat in range(settings.seeds):
        folds.outer(data.y, data.groups, settings.folds, settings.random_state + repeat, data.classes)
    features, samples = [str(name) for name in table.feature_names], [str(name) for name in table.sample_ids]
    versions = {
        "normball": __version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "scikit-learn": sklearn.__version__,
        "torch": torch.__version__,
    }
    record = {
        "table": str(table.name),
        "fingerprint": fingerprint_of(data, features, samples, settings, versions),
        **asdict(settings),
        "versions": versions,
        **(about or {}),
    }
    return Plan(data, features, samples, list(table.notes), settings, record)


def carried_out(
    plan: Plan,
    *,
    jobs: int | None = None,
    progress: str | Path | None = None,
    listener: Callable[[dict[str, Any]], Any] | None = None,
) -> Study:
    """Compute what is not finished yet, and put the record of the study together."""
    store = Progress(None if progress is None else Path(progress), plan.record)
    units = units_of(plan.settings)
    found = {unit: kept for unit in units if (kept := store.get(unit)) is not None}
    model = None
    if ("final",) in found and store.model is not None:
        try:
            model = load_model(store.model)
        except ValueError:
            del found["final",]
    tell = listener or (lambda event: None)
    count = {"done": len(found), "total": len(units)}
    tell({"event": "start", "began": store.began, "units": units, "finished": list(found), **count})

    started = time.perf_counter()
    waiting = [(plan.settings, unit) for unit in units if unit not in found]
    for _, (unit, result, fitted) in sweep(run, waiting, shared=(plan.data,), n_jobs=jobs):
        if fitted is not None:
            model = fitted
            model["impute"].feature_names_in_ = np.array(plan.features, dtype=object)
            if store.model is not None:
                save_model(model, store.model)
        store.put(unit, result)
        found[unit] = result
        count["done"] = len(found)
        tell({"event": "unit", "unit": unit, "seconds": result["seconds"], **count})

    settings = plan.record | {"attribution": found["final",]["attribution"]}
    seconds = {"this run": time.perf_counter() - started}
    return assembly.assembled(plan.data, plan.features, plan.samples, plan.notes, settings, found, model, seconds)


def _labelled(table: Any, target: Any, group: Any) -> tuple[Table, dict[str, str | None]]:
    """Return the table, and for a data frame the names of its columns of labels and groups."""
    if is_frame(table):
        if target is None:
            raise ValueError("target: expected the name of the column with the labels, got None")
        columns = {"target": str(target), "group": None if group is None else str(group)}
        return Table.from_dataframe(table, target, group=group), columns
    if target is not None or group is not None:
        raise ValueError("target, group: expected None with a Table, which holds labels and groups; they name columns")
    if not hasattr(table, "feature_names"):
        kind = type(table).__name__
        raise TypeError(f"table: expected a Table, or a DataFrame with target=, got {kind}; see Table.from_dataframe")
    return table, {}


def _data(table: Table) -> Data:
    X = array_of(table.X)
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"X: expected samples by features, got shape {X.shape}")
    if X.dtype != np.float32:
        X = X.astype(np.float32)
    for part in X:
        if np.isinf(part).any():
            raise ValueError("X: expected finite numbers or gaps, got an infinity")
    if table.y is None:
        raise ValueError("y: expected labels, got a table without any")
    classes, y = _numbered(table.y)
    for name, value, size in (
        ("y", table.y, len(X)),
        ("sample_ids", table.sample_ids, len(X)),
        ("feature_names", table.feature_names, X.shape[1]),
    ):
        if len(value) != size:
            raise ValueError(f"{name}: expected one for each of {size}, got {len(value)}")
    if len(classes) < 2:
        raise ValueError(f"y: expected at least two classes, got {len(classes)}")
    groups: npt.NDArray[np.intp] | None = None
    if table.groups is not None:
        if len(table.groups) != len(X):
            raise ValueError(f"groups: expected one for each of {len(X)} samples, got {len(table.groups)}")
        groups = _numbered(table.groups)[1]
    return Data(X, y, classes, groups)


def _numbered(labels: Any) -> tuple[list[str], npt.NDArray[np.intp]]:
    """Return the different labels in order, and the place there of each."""
    # As objects: an array of strings would have room for the longest in every place.
    names, numbers = np.unique(np.array([str(each) for each in labels], dtype=object), return_inverse=True)
    return names.tolist(), numbers
