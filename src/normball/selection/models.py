"""A fitted pipeline as a folder: tensors in safetensors, the rest as JSON. No pickle."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file
from sklearn.pipeline import Pipeline

from normball._version import __version__
from normball.estimators import SupervisedAutoencoder
from normball.selection.files import write_text
from normball.selection.preparation import Impute, Log

__all__ = ["load_model", "save_model"]

_FORMAT = 1


def save_model(pipeline: Pipeline, folder: str | Path) -> None:
    """Write a fitted pipeline of a study to a folder, which appears as a whole.

    Parameters
    ----------
    pipeline : Pipeline
        ``Study.model``.
    folder : path
        Replaced if it exists.
    """
    folder = Path(folder)
    fresh = folder.with_name(f"{folder.name}.{os.getpid()}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    impute, log, sae = (pipeline[name] for name in ("impute", "log", "autoencoder"))
    names = [str(name) for name in pipeline.feature_names_in_]
    told = {
        "format": _FORMAT,
        "normball": __version__,
        "feature_names": names,
        "classes": [str(name) for name in sae.classes_],
        "selected": [names[k] for k in sae.get_support(indices=True)],
        "impute": {"how": impute.how},
        "log": {"when": log.when, "taken": log.taken_, "offset": log.offset_, "floor": log.floor_},
    }
    save_file({"fill": np.asarray(impute.fill_)}, fresh / "preparation.safetensors")
    sae.save(fresh / "autoencoder.safetensors")
    write_text(fresh / "model.json", json.dumps(told, indent=1, ensure_ascii=False) + "\n")
    shutil.rmtree(folder, ignore_errors=True)
    os.replace(fresh, folder)


def load_model(folder: str | Path) -> Pipeline:
    """Read what `save_model`, or ``normball select``, has written.

    Parameters
    ----------
    folder : path
        The folder ``model`` among the results.

    Returns
    -------
    Pipeline
        As in ``Study.model``; ``feature_names_in_`` are the columns that it expects, in order.

    Raises
    ------
    ValueError
        For a folder that holds something else.
    """
    folder = Path(folder)
    try:
        told: dict[str, Any] = json.loads((folder / "model.json").read_text(encoding="utf-8"))
        if told["format"] != _FORMAT:
            raise ValueError(f"format {told['format']}, of another version of normball")
        fill = load_file(folder / "preparation.safetensors")["fill"]
        sae = SupervisedAutoencoder.load(folder / "autoencoder.safetensors")
        impute, log = Impute(told["impute"]["how"]), Log(told["log"]["when"])
        names = [str(name) for name in told["feature_names"]]
        log.taken_, log.offset_, log.floor_ = (told["log"][name] for name in ("taken", "offset", "floor"))
        if not len(names) == len(fill) == sae.n_features_in_:
            raise ValueError(f"{len(names)} names, {len(fill)} fills, {sae.n_features_in_} columns")
    except Exception as error:  # whatever is wrong with the files, they are not a model
        expected = "a folder that normball select has written"
        inner = folder / "model"
        why = f"; did you mean {inner}?" if (inner / "model.json").exists() else f" ({type(error).__name__}: {error})"
        raise ValueError(f"model: expected {expected}, got {folder}{why}") from None
    impute.fill_, impute.feature_names_in_ = fill, np.array(names, dtype=object)
    impute.n_features_in_ = log.n_features_in_ = len(fill)
    return Pipeline([("impute", impute), ("log", log), ("autoencoder", sae)])
