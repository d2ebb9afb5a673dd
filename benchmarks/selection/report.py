"""The table and the picture of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from normball.estimators import nogueira

REFERENCE = "normball, default"


def _groups(records: list[dict[str, Any]]) -> dict[str, dict[str, list[dict[str, Any]]]]:
    groups: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for record in records:
        groups.setdefault(record["table"], {}).setdefault(record["method"], []).append(record)
    return groups


def _stability(runs: list[dict[str, Any]]) -> str:
    supports = [run["support"] for run in runs]
    if len(runs) < 3 or any(support is None for support in supports):
        return "-"
    masks = np.zeros((len(runs), runs[0]["total"]), bool)
    for mask, support in zip(masks, supports, strict=True):
        mask[support] = True
    return "-" if runs[0]["found"] is not None else f"{nogueira(masks).value:.2f}"  # other data seeds, other features


def _paired(runs: list[dict[str, Any]], reference: list[dict[str, Any]]) -> str:
    """Mean difference of the accuracies of the reference and of this method over common folds, and its error."""
    mine = {(run["seed"], run["fold"]): run["accuracy"] for run in runs}
    keys = [((run["seed"], run["fold"]), run["accuracy"]) for run in reference]
    pairs = [accuracy - mine[key] for key, accuracy in keys if key in mine]
    if len(pairs) < 2 or runs is reference:
        return "-"
    return f"{100 * np.mean(pairs):+.1f} ± {100 * np.std(pairs, ddof=1) / np.sqrt(len(pairs)):.1f}"


def table(records: list[dict[str, Any]]) -> str:
    lines = []
    for name, methods in _groups(records).items():
        lines += [
            f"\n**{name}**\n",
            "| method | fits | accuracy % | balanced % | default better by | features | informative | stability "
            "| CPU s |",
            "|---|---|---|---|---|---|---|---|---|",
        ]
        for method, runs in methods.items():
            accuracy = 100 * np.array([run["accuracy"] for run in runs])
            balanced = 100 * np.mean([run["balanced"] for run in runs])
            spread = f" ± {accuracy.std(ddof=1):.1f}" if len(runs) > 1 else ""
            found = "-" if runs[0]["found"] is None else f"{np.mean([run['found'] for run in runs]):.1f}"
            lines.append(
                f"| {method} | {len(runs)} | {accuracy.mean():.1f}{spread} | {balanced:.1f} | "
                f"{_paired(runs, methods.get(REFERENCE, []))} | {np.median([run['features'] for run in runs]):g} | "
                f"{found} | {_stability(runs)} | {np.median([run['seconds'] for run in runs]):.1f} |"
            )
    return "\n".join(lines) + "\n"


def picture(records: list[dict[str, Any]], path: Path) -> None:
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    groups = _groups(records)
    figure, axes = pyplot.subplots(len(groups), 1, figsize=(7, 3 * len(groups)), squeeze=False)
    for axis, (name, methods) in zip(axes[:, 0], groups.items(), strict=True):
        for method, runs in methods.items():
            x = np.median([run["features"] for run in runs])
            y = 100 * np.mean([run["accuracy"] for run in runs])
            axis.plot(x, y, "o" if method.startswith("normball") else "s")
            axis.annotate(method, (x, y), textcoords="offset points", xytext=(5, 3), fontsize=7)
        axis.set(xscale="log", xlabel="features", ylabel="accuracy, %", title=name)
    figure.tight_layout()
    figure.savefig(path)
