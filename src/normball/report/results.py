"""What a study found, as files for programs: tables, numbers, the model."""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from normball.report.cautions import cautions
from normball.report.summary import summarise
from normball.selection import Study, save_model
from normball.selection.files import csv_text, plain, write_text

__all__ = ["metrics", "write_results"]


def metrics(study: Study) -> dict[str, Any]:
    """Return all the numbers of a study, with its settings, as JSON can hold them; no times, which differ.

    Parameters
    ----------
    study : Study
        What the selection found.
    """
    summary = summarise(study)
    sae = study.model["autoencoder"]
    chosen = study.features[study.features["selected"]]
    best = summary.baseline
    told = {
        "table": {
            "name": study.settings.get("table"),
            "n_samples": study.n_samples,
            "n_features": study.n_features,
            "classes": summary.counts,
            "notes": study.notes,
        },
        "settings": study.settings,
        "accuracy": asdict(summary.ours.accuracy),
        "chance": summary.chance,
        "best_baseline": None if best is None else best.method,
        "difference_to_best_baseline": None if summary.difference is None else asdict(summary.difference),
        "methods": [
            {name: value for name, value in asdict(each).items() if name != "seconds"} for each in summary.methods
        ],
        "stability": study.stability,
        "permutations": {"accuracy": study.permutations, "p_value": summary.p_permutation},
        "final_model": {
            "n_features": len(chosen),
            "features": chosen["feature"].tolist(),
            "radius": sae.radius_,
            "theta": sae.theta_,
            "head": sae.head_,
        },
        "path": study.path,
        "scores": study.scores.drop(columns="seconds"),
        "warnings": [f"{each.seen} {each.advice}" for each in cautions(study, summary)],
    }
    made: dict[str, Any] = plain(told)
    return made


def write_results(study: Study, folder: str | os.PathLike[str]) -> None:
    """Write ``features.csv``, ``predictions.csv``, ``metrics.json``, ``timing.json`` and ``model/`` into a folder.

    Each file appears whole or not at all. The same study gives the same bytes, but for the times.

    Parameters
    ----------
    study : Study
        What the selection found.
    folder : path
        Where to write; it is made if it is not there.
    """
    folder = Path(folder)
    write_text(folder / "features.csv", csv_text(study.features))
    write_text(folder / "predictions.csv", csv_text(study.predictions))
    save_model(study.model, folder / "model")
    write_text(folder / "timing.json", json.dumps({"seconds": plain(study.seconds)}, indent=1) + "\n")
    write_text(folder / "metrics.json", json.dumps(metrics(study), indent=1, ensure_ascii=False) + "\n")
