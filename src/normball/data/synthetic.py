"""A made-up omics table, for demos and tests."""

from __future__ import annotations

import numpy as np

from normball.data.table import Table

__all__ = ["make_omics"]


def make_omics(
    n_samples: int = 120,
    n_features: int = 1000,
    n_informative: int = 10,
    *,
    classes: tuple[str, ...] = ("control", "case"),
    effect: float = 1.5,
    missing: float = 0.0,
    seed: int = 0,
) -> Table:
    """Make a table like one of gene expression: positive, skewed, correlated, and with few features that matter.

    Values are log-normal. Features come in blocks of ten that rise and fall together, as genes of one pathway do. In
    each informative feature, all in blocks of their own, one class is shifted by ``effect`` standard deviations, up or
    down. There is no batch effect.

    Parameters
    ----------
    n_samples, n_features, n_informative : int
        Sizes. The informative features stand anywhere; the notes name them.
    classes : tuple of str
        Names of the classes, equally frequent as far as they can be.
    effect : float
        Shift of the informative features, in standard deviations of their logarithm.
    missing : float
        Share of the values that are missing: the smaller ones more often, as under a limit of detection.
    seed : int
        The same seed gives the same table.

    Returns
    -------
    Table

    Examples
    --------
    >>> from normball.data import make_omics
    >>> make_omics(60, 500, 5, seed=1)
    Table('synthetic omics, seed 1': 60 samples x 500 features; classes {'case': 30, 'control': 30})
    """
    for name, value, least in (("n_samples", n_samples, 2), ("n_features", n_features, 1)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ValueError(f"{name}: expected an int >= {least}, got {value!r}")
    if not 0 <= n_informative <= n_features:
        raise ValueError(f"n_informative: expected 0 to {n_features}, got {n_informative!r}")
    if len(set(classes)) < 2:
        raise ValueError(f"classes: expected two different names at least, got {classes!r}")
    if not 0 <= missing < 1:
        raise ValueError(f"missing: expected a share of at least 0 and below 1, got {missing!r}")
    random = np.random.default_rng(seed)
    label = random.permutation(np.arange(n_samples) % len(classes))
    places = random.permutation(n_features)
    blocks = -(-n_features // 10)
    pathway = random.standard_normal((n_samples, blocks))
    Z = 0.6 * pathway[:, np.arange(n_features) % blocks] + 0.8 * random.standard_normal((n_samples, n_features))
    informative = places[:n_informative]
    shifted = random.integers(len(classes), size=n_informative)
    direction = random.choice([-1.0, 1.0], size=n_informative)
    Z[:, informative] += effect * direction * (label[:, None] == shifted)
    level = random.uniform(2.0, 9.0, n_features)
    spread = random.uniform(0.3, 1.0, n_features)
    X = np.exp(level + spread * Z).astype(np.float32, order="C")
    if missing:
        rank = random.random(X.shape) * (1 + (Z > 0))
        X[rank < np.quantile(rank, missing)] = np.nan
    names = [f"GENE{i + 1:0{len(str(n_features))}d}" for i in range(n_features)]
    told = ", ".join(names[i] for i in sorted(informative)[:50])
    return Table(
        X,
        names,
        [f"S{i + 1:0{len(str(n_samples))}d}" for i in range(n_samples)],
        np.array([classes[i] for i in label], dtype=object),
        name=f"synthetic omics, seed {seed}",
        notes=[f"made up, not measured; {n_informative} features matter: {told}" if n_informative else "all noise"],
    )
