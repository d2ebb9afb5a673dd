"""The page: the words and the data of a study put into the template."""

import base64
from importlib.resources import files
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from normball.report.cautions import cautions
from normball.report.payload import TABLE_ROWS
from normball.report.summary import Summary
from normball.report.text import percent, script_json, short
from normball.report.words import GLOSSARY, in_short, interval, methods_paragraph, points, stability_word
from normball.selection.results import Study

__all__ = ["page"]

SCRIPTS = ("text.js", "plots.js", "table.js", "main.js")
PRINTED, WRONG = 50, 20
DASH = "\N{EN DASH}"


def page(study: Study, summary: Summary, data: dict[str, Any], stills: dict[str, bytes]) -> str:
    """Return the HTML, given the data for its scripts and the static figures as SVG."""
    settings = study.settings
    predictions = study.predictions
    missed = predictions[predictions["label"].astype(str) != predictions["predicted"].astype(str)]
    selected = study.features[study.features["selected"].astype(bool)]
    binary = len(study.classes) == 2
    left_out = data["samples"]["left_out"]
    return _environment().get_template("report.html").render(
        study=study,
        summary=summary,
        target=settings.get("target"),
        table=settings.get("table") or "a table",
        version=settings.get("versions", {}).get("normball", ""),
        in_short=in_short(study, summary),
        tiles=_tiles(study, summary),
        cautions=cautions(study, summary),
        roc_how="True positives against false ones, as the threshold moves. The area is the AUC: 0.5 is chance, 1 is "
        "perfect." + ("" if binary else " Each class against the rest."),
        latent_how="What the network makes of each sample; colour and symbol tell the true class. Crosses: "
        "misclassified by models that had not seen them."
        + (f" {left_out:,} of the correctly classified samples are not drawn." if left_out else ""),
        stills={key: _data_url(svg) for key, svg in stills.items()},
        more_features=len(study.features) > TABLE_ROWS,
        table_rows=TABLE_ROWS,
        printed=selected.head(PRINTED).to_dict("records"),
        wrong=missed.sort_values("confidence", ascending=False, kind="stable").head(WRONG).to_dict("records"),
        n_wrong=len(missed),
        methods=methods_paragraph(study, summary),
        settings=[*_flat(settings), *((f"seconds: {key}", f"{value:.1f}") for key, value in study.seconds.items())],
        glossary=GLOSSARY,
        style=_raw("style.css"),
        data=Markup(script_json(data)),  # escaped there for this very place
        plotly=Markup(get_plotlyjs()),
        scripts=Markup("\n").join(_raw(name) for name in SCRIPTS),
    )  # fmt: skip


def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("normball.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(short=short, percent=_or_dash(percent), interval=interval, decimal=_decimal, tiny=_tiny)
    return made


def _raw(name: str) -> Markup:
    return Markup((files("normball.report") / "templates" / name).read_text(encoding="utf-8"))


def _flat(settings: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return the settings as rows, those within others under a joint name."""
    rows: list[tuple[str, Any]] = []
    for key, value in settings.items():
        nested = isinstance(value, dict) and value
        rows += [(f"{key}: {inner}", each) for inner, each in value.items()] if nested else [(key, value)]
    return rows


def _data_url(svg: bytes) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(svg).decode("ascii")


def _or_dash(form: Any) -> Any:
    return lambda value, *options: form(value, *options) if np.isfinite(value) else DASH


def _decimal(value: float, digits: int) -> str:
    return f"{value:,.{digits}f}" if np.isfinite(value) else DASH


def _tiny(value: float) -> str:
    return f"{value:.2g}" if np.isfinite(value) else DASH


def _tiles(study: Study, summary: Summary) -> list[dict[str, str]]:
    """Return the numbers that one wants at a glance, each with what it means."""
    ours = summary.ours.accuracy
    tiles = [
        ("Accuracy", percent(ours.mean), f"95 %: {interval(ours)}. Right answers on unseen samples."),
        ("Chance", percent(summary.chance), "Always saying the most frequent class."),
    ]  # fmt: skip
    if summary.baseline is not None and summary.difference is not None:
        gap = f"Model minus baseline: {points(summary.difference.mean)} points."
        tiles.append(
            ("Best baseline", percent(summary.baseline.accuracy.mean), f"{short(summary.baseline.method)}. {gap}")
        )
    tiles.append(("Features kept", f"{summary.n_selected:,}", f"Of {study.n_features:,}, in the final model."))
    index = summary.stability.mean
    if np.isfinite(index):
        tiles.append(
            (
                "Stability",
                f"{index:.2f}",
                f"{stability_word(index).capitalize()}. 1: the same features each time; 0: chance.",
            )
        )
    if summary.p_permutation is not None:
        tiles.append(("p, shuffled labels", f"{summary.p_permutation:.2g}", "How often chance does as well."))
    return [{"title": title, "number": number, "meaning": meaning} for title, number, meaning in tiles]
