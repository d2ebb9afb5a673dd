"""What a run leaves: pictures as SVG, PDF and PNG, the data as CSV, the environment as JSON, and one page with all."""

from __future__ import annotations

import io
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, PackageLoader
from matplotlib.figure import Figure

from normball.experiments.experiment import FAILS, HOLDS, IN_PART, NOT_MEASURED, Experiment, Verdict
from normball.experiments.style import styled

__all__ = ["Finding", "find", "write_page"]

MARKS = {HOLDS: "✓", IN_PART: "◐", FAILS: "✗", NOT_MEASURED: "-"}


@dataclass(frozen=True)
class Finding:
    """An experiment with what came of it, ready to be shown."""

    experiment: Experiment
    verdict: Verdict
    svg: str = ""
    table: pd.DataFrame | None = None


def find(each: Experiment, data: pd.DataFrame, folder: Path) -> Finding:
    """Judge and draw an experiment; write its data and its pictures into the folder."""
    if data.empty:
        return Finding(each, Verdict(NOT_MEASURED, "", remedy=f"It needs {each.needs}."))
    data.to_csv(folder / f"{each.stem}.csv", index=False, float_format="%.6g")
    with styled(each.id):
        svg = _saved(each.draw(data), folder / each.stem)
    return Finding(each, each.judge(data), svg, each.table(data))


def _saved(figure: Figure, path: Path) -> str:
    """Write the picture in all the formats; return the SVG element, without what only a file of its own needs."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # it is laid out now: each format would do it anew
    figure.savefig(path.with_suffix(".pdf"), metadata={"CreationDate": None})
    figure.savefig(path.with_suffix(".png"), dpi=150)
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    path.with_suffix(".svg").write_text(text.getvalue(), encoding="utf-8")
    svg = text.getvalue()
    return re.sub(r"<metadata>.*?</metadata>\s*", "", svg[svg.index("<svg") :], flags=re.DOTALL)


def write_page(findings: list[Finding], environment: dict[str, Any], folder: Path) -> Path:
    """Write ``index.html``, which needs no other file, ``environment.json`` and ``verdicts.json``."""
    (folder / "environment.json").write_text(json.dumps(environment, indent=2) + "\n", encoding="utf-8")
    told = [
        {
            "id": each.experiment.id,
            "title": each.experiment.title,
            "place": each.experiment.place,
            "claim": each.experiment.claim,
            "rule": each.experiment.rule,
            "says": each.experiment.says,
            "outcome": each.verdict.outcome,
            "here": each.verdict.here,
            "default": each.verdict.default,
            "remedy": each.verdict.remedy,
            "numbers": dict(each.verdict.numbers),
            "table": None if each.table is None else each.table.to_dict("split", index=False),
        }
        for each in findings
    ]
    (folder / "verdicts.json").write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
    template = Environment(loader=PackageLoader("normball.experiments", "."), autoescape=True, trim_blocks=True)
    page = template.get_template("page.html.jinja").render(
        findings=findings, environment=environment, marks=MARKS, outcomes=_counted(findings)
    )
    path = folder / "index.html"
    path.write_text(page, encoding="utf-8")
    return path


def _counted(findings: list[Finding]) -> list[tuple[str, int]]:
    found = [each.verdict.outcome for each in findings]
    return [(outcome, found.count(outcome)) for outcome in MARKS if outcome in found]
