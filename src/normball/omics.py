"""Feature selection on AnnData, as scanpy users expect it.

Needs anndata and scikit-learn: ``pip install normball[sklearn,omics]``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from normball.estimators import SupervisedAutoencoder
from normball.estimators._tables import stored

__all__ = ["select"]


def select(
    adata: Any,
    groupby: str,
    *,
    layer: str | None = None,
    n_features: int | float | str = "auto",
    key_added: str = "normball",
    copy: bool = False,
    **options: Any,
) -> Any:
    """Select the genes that tell the groups of the cells apart.

    Parameters
    ----------
    adata : AnnData
        Cells in rows, of log counts or the like. One that is backed by a file, dense or CSR, is read batch by batch,
        and what is written stays in memory.
    groupby : str
        A column of ``adata.obs`` with the groups. Cells without a group are left out of the fit.
    layer : str, optional
        Take this layer in place of ``X``.
    n_features : int, float or "auto"
        See `SupervisedAutoencoder`.
    key_added : str
        The name of what is written.
    copy : bool
        Return a copy, in memory, and leave `adata` as it was.
    **options
        Of `SupervisedAutoencoder`.

    Returns
    -------
    AnnData or None
        The copy, if one was asked for. Written are ``.var[key]``, whether a gene is selected, and
        ``.var[key + "_importance"]``; ``.obsm["X_" + key]``, the latent space; and ``.uns[key]``, with the parameters,
        the classes and the path.

    Examples
    --------
    >>> import anndata, numpy as np
    >>> from sklearn.datasets import make_classification
    >>> from normball.omics import select
    >>> X, y = make_classification(200, 50, n_informative=3, n_redundant=0, class_sep=2, shuffle=False, random_state=0)
    >>> adata = anndata.AnnData(X)
    >>> adata.obs["cell_type"] = np.where(y == 0, "B", "T")
    >>> select(adata, "cell_type", n_features=3, random_state=0)
    >>> list(adata.var_names[adata.var["normball"]])
    ['0', '1', '2']
    >>> adata.obsm["X_normball"].shape
    (200, 2)
    """
    if groupby not in adata.obs:
        raise ValueError(f"groupby: expected a column of adata.obs, {list(adata.obs.columns)}, got {groupby!r}")
    if layer is not None and layer not in adata.layers:
        raise ValueError(f"layer: expected one of {list(adata.layers)}, got {layer!r}")
    if copy:
        adata = adata.to_memory() if adata.isbacked else adata.copy()
    X = adata.X if layer is None else adata.layers[layer]
    X = X if (table := stored(X)) is None else table
    groups = adata.obs[groupby]
    known = groups.notna().to_numpy()
    y = groups[known].astype(str).to_numpy()
    rows = np.flatnonzero(known)
    options.setdefault("random_state", 0)
    sae = SupervisedAutoencoder(n_features, **options).fit(X[rows] if table is None else table.take(rows), y)
    adata.var[key_added] = sae.get_support()
    adata.var[f"{key_added}_importance"] = sae.feature_importances_
    adata.obsm[f"X_{key_added}"] = sae.transform(X)
    adata.uns[key_added] = {
        "params": {"groupby": groupby, "layer": layer or "X", "n_features": str(n_features)},
        "classes": sae.classes_.astype(str),
        "head": sae.head_,
        "n_selected": int(sae.support_.sum()),
        "radius": float(sae.radius_) if sae.radius_ is not None else np.nan,
        "theta": float(sae.theta_) if sae.theta_ is not None else np.nan,
        "path": {name: np.asarray(values) for name, values in sae.feature_path_.items()},
    }
    return adata if copy else None
