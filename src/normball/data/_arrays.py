"""Files of arrays: NumPy's npz, and AnnData's h5ad."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from normball._spelling import argument
from normball.data._foreign import load, reading
from normball.data._memory import check_memory
from normball.data._plan import Options, Raw, near, nothing_left, raw_labels
from normball.data.table import TableError, show

__all__ = ["read_h5ad", "read_npz"]

_FEATURES = ("feature_names", "features", "columns", "var_names", "genes", "names")
_SAMPLES = ("sample_ids", "samples", "sample_names", "obs_names", "index", "ids")


def read_npz(path: Path, options: Options) -> Raw:
    """Read an archive with ``X``, and perhaps ``feature_names``, ``sample_ids`` and labels under any name."""
    name = options.name
    with reading(name, "npz"), np.load(path, allow_pickle=False) as archive:
        shapes = {key: _shape(archive, key) for key in archive.files}
        flat = [key for key, shape in shapes.items() if len(shape) == 2]
        if "X" not in flat and len(flat) != 1:
            several = ", ".join(f"{show(key)} {shape}" for key, shape in shapes.items())
            raise TableError(f"{name}: expected an array X of two dimensions, got {several or 'nothing'}")
        key = "X" if "X" in flat else flat[0]
        rows, columns = shapes[key]
        check_memory(name, rows, columns, path.stat().st_size, options.memory_limit)
        values = archive[key]
        if values.dtype.kind not in "fiub":
            raise TableError(f"{name}: array {show(key)} holds {values.dtype}; expected real numbers")
        X = _single(values.T if options.transpose else values)
        del values

        def column(wanted: str | int | None, what: str) -> list[str] | None:
            if wanted is None or (options.target_optional and wanted not in shapes):
                return None
            if wanted not in shapes:
                known = near(str(wanted), list(shapes))
                raise TableError(f"{name}: {argument(what)} {show(wanted)} is not an array; {known}")
            if shapes[str(wanted)] != (len(X),):
                shape = shapes[str(wanted)]
                raise TableError(f"{name}: {argument(what)} {show(wanted)} has shape {shape}; expected {(len(X),)}")
            return raw_labels(archive[wanted].tolist())

        def names(known: Sequence[str], length: int) -> list[str] | None:
            found = next((each for each in known if shapes.get(each) == (length,)), None)
            return None if found is None else raw_labels(archive[found].tolist())

        features = names(_FEATURES, X.shape[1]) or [f"feature {j + 1}" for j in range(X.shape[1])]
        ids = names(_SAMPLES, len(X)) if options.index is not False else None
        if isinstance(options.index, str):
            ids = column(options.index, "index")
        y, groups = column(options.target, "target"), column(options.group, "group")
    return _without(Raw(X, features, ids, y, groups, [f"array {show(key)}"]), options, set(shapes))


def _shape(archive: Any, key: str) -> tuple[int, ...]:
    """Read the head of an array alone."""
    with archive.zip.open(f"{key}.npy") as file:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        return tuple(read(file)[0])


def read_h5ad(path: Path, options: Options) -> Raw:
    """Read cells by genes: ``X``, a layer, or ``raw`` by that name; target and group are columns of ``obs``."""
    name = options.name
    anndata = load("anndata", "h5ad")
    with reading(name, "h5ad"):
        data = anndata.read_h5ad(path, backed="r")
        try:
            layers = [*data.layers, *(["raw"] if data.raw is not None else [])]
            if options.layer is None or options.layer == "X":
                matrix, var = data.X, data.var_names
            elif options.layer in data.layers:
                matrix, var = data.layers[options.layer], data.var_names
            elif options.layer == "raw" and data.raw is not None:
                matrix, var = data.raw.X, data.raw.var_names
            else:
                known = near(options.layer, ["X", *layers])
                raise TableError(f"{name}: {argument('layer')} {show(options.layer)} is not there; {known}")
            if matrix is None:
                raise TableError(f"{name}: there is no X; give a layer: {near('', layers)}")
            samples, genes = matrix.shape
            check_memory(name, samples, genes, path.stat().st_size, options.memory_limit)
            X = np.empty((samples, genes), np.float32)
            if hasattr(matrix, "to_memory") and getattr(matrix, "format", "csr") != "csr":
                matrix = matrix.to_memory()  # by columns: rows cannot be read one after the other
                matrix = matrix.tocsr()
            step = max(1, (1 << 20) // max(genes, 1))
            for start in range(0, samples, step):
                block = matrix[start : start + step]
                with np.errstate(over="ignore"):
                    X[start : start + step] = block.toarray() if hasattr(block, "toarray") else block

            def column(wanted: str | int | None, what: str) -> list[str] | None:
                if wanted is None or (options.target_optional and wanted not in data.obs):
                    return None
                if wanted not in data.obs:
                    known = near(str(wanted), list(map(str, data.obs)))
                    raise TableError(f"{name}: {argument(what)} {show(wanted)} is not in obs; {known}")
                return raw_labels(data.obs[wanted].tolist())

            ids = column(options.index, "index") if isinstance(options.index, str) else list(map(str, data.obs_names))
            y, groups = column(options.target, "target"), column(options.group, "group")
            others = set(map(str, data.obs))
        finally:
            data.file.close()
    notes = [f"layer: {options.layer or 'X'}"]
    if options.layer is None and layers:
        notes.append(f"other layers are there: {', '.join(map(show, layers))}")
    return _without(Raw(X, list(map(str, var)), ids, y, groups, notes), options, others)


def _single(values: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(values, dtype=np.float32)


def _without(raw: Raw, options: Options, others: set[str]) -> Raw:
    """Leave out the features in ``drop``; other names of the file may stand there, too, and change nothing."""
    for each in options.drop:
        if each not in raw.features and each not in others:
            known = near(str(each), raw.features)
            raise TableError(f"{options.name}: {argument('drop')} {show(each)} is not a feature; {known}")
    wanted = options.features
    raw.aside = [feature for feature in raw.features if wanted is not None and feature not in wanted]
    gone = {*options.drop, *raw.aside}
    keep = [j for j, feature in enumerate(raw.features) if feature not in gone]
    if not keep:
        raise nothing_left(options, raw.features)
    if len(keep) < len(raw.features):
        raw.X = np.take(raw.X, keep, axis=1)
        raw.features = [raw.features[j] for j in keep]
    return raw
