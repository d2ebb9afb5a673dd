"""What a study of a table found: the one record that the procedure fills and that reports read."""

from dataclasses import dataclass, field
from html import escape
from typing import Any

import pandas as pd

from normball.data.table import show

__all__ = ["OURS", "Study"]

OURS = "normball"  # our method among the rivals
_SHOWN = 8  # names of features, and of classes, in one line


@dataclass(frozen=True, repr=False, eq=False)
class Study:
    """All that a selection found, as tables with named columns; nothing here refers to files or to figures.

    Attributes
    ----------
    settings : dict
        Every option of the run, with seeds, versions and the name of the table.
    n_samples, n_features : int
        Of the table as it was used.
    classes : list of str
        The names of the classes.
    notes : list of str
        What was done to the table on reading: left out, imputed, transformed.
    scores : DataFrame
        One row for each method, repeat and outer fold: ``method``, ``repeat``, ``fold``, ``accuracy``,
        ``balanced_accuracy``, ``auc`` (NaN where undefined), ``n_features``, ``seconds``. ``method`` is ``"normball"``
        for ours; the rest are the baselines.
    predictions : DataFrame
        One row for each sample, outside the folds that trained: ``sample``, ``label``, ``predicted``, ``confidence``,
        then ``p:<class>`` for each class (means over the repeats).
    features : DataFrame
        One row for each feature, best first: ``feature``, ``rank``, ``selected`` (in the final model), ``frequency``
        (share of folds and repeats that chose it), ``importance`` (attribution), ``direction`` (the class with the
        larger mean), ``effect`` (standardised difference, or eta squared beyond two classes), ``p_value``,
        ``q_value``, ``importance:<class>`` and ``mean:<class>`` for each class.
    path : DataFrame
        Along the path, means over the inner splits: ``n_features``, ``radius``, ``theta``, ``accuracy``, ``error``
        (standard error), ``chosen`` (one row is True).
    latent : DataFrame
        ``sample``, ``label``, ``predicted``, ``z0``, ``z1``, ...: each sample in the latent space of the final model.
    losses : DataFrame
        ``stage``, ``epoch``, ``loss`` and, where there was a validation part, ``validation``; of the final model.
    values : DataFrame
        Samples by chosen features (at most 200, best first) as they were read; index: sample names.
    stability : dict
        The Nogueira index: ``index``, ``low``, ``high``.
    permutations : list of float
        Accuracy of the same whole procedure with shuffled labels; empty if it was not asked for.
    seconds : dict
        Where the time went.
    model : Pipeline
        The final model, fitted to all the samples: fills gaps, takes logarithms or not, standardises, predicts.
    """

    settings: dict[str, Any]
    n_samples: int
    n_features: int
    classes: list[str]
    notes: list[str]
    scores: pd.DataFrame
    predictions: pd.DataFrame
    features: pd.DataFrame
    path: pd.DataFrame
    latent: pd.DataFrame
    losses: pd.DataFrame
    values: pd.DataFrame
    stability: dict[str, float]
    permutations: list[float] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    model: Any = None

    def _told(self) -> tuple[str, pd.DataFrame, list[str]]:
        """Return the name of the table, the means of each method, and the selected features."""
        means = self.scores.groupby("method", sort=False)[["accuracy", "n_features"]].mean()
        chosen = self.features["feature"][self.features["selected"].astype(bool)]
        return show(self.settings.get("table", "table")), means, [str(name) for name in chosen]

    def __repr__(self) -> str:
        name, means, chosen = self._told()
        return (
            f"Study({name}: {self.n_samples} samples x {self.n_features} features, {len(self.classes)} classes;"
            f" accuracy {means['accuracy'].get(OURS, float('nan')):.3f}; {len(chosen)} selected: {_few(chosen)})"
        )

    def _repr_html_(self) -> str:
        """Return the same for notebooks, with the rivals; names from the table are escaped."""
        name, means, chosen = self._told()
        rows = [
            ("Samples", f"{self.n_samples} in {len(self.classes)} classes: {_few(self.classes)}"),
            ("Features", f"{len(chosen)} of {self.n_features} selected: {_few(chosen)}"),
            ("Stability", f"{self.stability['index']:.2f}"),
            *(
                (f"Accuracy, {method}", f"{accuracy:.3f} ({count:.0f} features on average)")
                for method, accuracy, count in means.itertuples()
            ),
        ]
        body = "".join(f"<tr><th>{escape(head)}</th><td>{escape(cell)}</td></tr>" for head, cell in rows)
        return f"<table><caption>Study of {escape(name)}</caption>{body}</table>"


def _few(names: list[str]) -> str:
    """Quote the first names for one line."""
    return ", ".join(show(name, 30) for name in names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
