"""Put the numbers of a full run where they are read: ``python -m benchmarks.publish benchmarks/results/full.jsonl``.

Writes docs/benchmarks_numbers.md, docs/images/ratio-*.svg and the table between the markers in README.md.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from benchmarks import plot
from benchmarks.harness import Record
from benchmarks.matrices import DTYPES, LAYOUTS, POINTS

ROOT = Path(__file__).resolve().parents[1]
BEGIN, END = "<!-- numbers: begin -->", "<!-- numbers: end -->"
README_POINTS = ("99 %", "90 %", "50 %", "r=0.5")
README_SIZES = ((1000, 1000), (4096, 4096))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.publish", description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path)
    parser.add_argument(
        "--force", action="store_true", help="publish a quick run, or one on a busy machine, all the same"
    )
    options = parser.parse_args()
    records = [json.loads(line) for line in options.results.read_text(encoding="utf-8").splitlines()]
    if fault := unfit(records):
        print(f"not fit for publishing: {fault}", file=sys.stderr)
        if not options.force:
            return 1

    images = ROOT / "docs" / "images"
    images.mkdir(parents=True, exist_ok=True)
    pictures = plot.draw(records, images, "ratio")
    for picture in pictures:
        picture.with_suffix(".png").unlink()
    page = ROOT / "docs" / "benchmarks_numbers.md"
    page.write_text(docs_page(records, pictures), encoding="utf-8")
    readme = ROOT / "README.md"
    before, rest = readme.read_text(encoding="utf-8").split(BEGIN)
    readme.write_text(f"{before}{BEGIN}\n{readme_table(records)}\n{END}{rest.split(END)[1]}", encoding="utf-8")
    for path in (page, readme, *pictures):
        print(path.relative_to(ROOT))
    return 0


def unfit(records: list[Record]) -> str | None:
    """Say why these numbers should not be quoted, if they should not."""
    machine = records[0]
    if machine["quick"]:
        return "a quick run"
    noise = next((r for r in records if r["kind"] == "noise"), None)
    if noise is None or len({r["case"] for r in records if "case" in r}) < 4:
        return "not a complete run"
    if not noise["quiet"]:
        return f"the machine was busy, other programs used {noise['others_cpus']} CPUs"
    wrong = sum(r["kind"] == "wrong" for r in records)
    return f"{wrong} wrong results" if wrong else None


def readme_table(records: list[Record]) -> str:
    """Newton, and in brackets the paper's algorithm, in copies of the matrix."""
    lines = [
        "| members x groups | dtype, groups | " + " | ".join(_heading(p) for p in README_POINTS) + " |",
        "|---|---|" + "---|" * len(README_POINTS),
    ]
    for size in README_SIZES:
        for dtype in DTYPES:
            for layout in LAYOUTS:
                cells = [_pair(records, size, dtype, layout, point) for point in README_POINTS]
                lines.append(f"| {size[0]} x {size[1]} | {dtype}, {layout} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", _machine(records)])


def docs_page(records: list[Record], pictures: list[Path]) -> str:
    """Targets, pictures, and newton on every distribution."""
    targets = [r for r in records if r["kind"] == "target"]
    parts = [
        _machine(records),
        "### Targets",
        "| target | limit | worst measured | where | |\n|---|---|---|---|---|\n"
        + "\n".join(
            f"| {r['target']} | {r['limit']:g} | {r['worst']:.2f} | {r['where']} "
            f"| {'met' if r['met'] else '**missed**'} |"
            for r in targets
        ),
        "### All methods",
        "Normal data, cold, one thread, into `out=`. `total_order` is left out above a million elements.",
        *(f"![{p.stem}](images/{p.name})" for p in pictures),
        "### The default method on every distribution",
        "Cold, one thread, into `out=`: the worst over both dtypes, in copies of the matrix.",
        _distributions(records),
        "### Threads",
        _threads(records),
    ]
    return "\n\n".join(parts) + "\n"


def _heading(point: str) -> str:
    return f"radius {point.removeprefix('r=')} of the norm" if point.startswith("r=") else f"{point} zero groups"


def _machine(records: list[Record]) -> str:
    m = records[0]
    return (
        f"{m['cpu']}, {m['cpus']} CPUs, last cache {m['last_cache'] / 2**20:.0f} MiB, {m['instruction_set']}, "
        f"Python {m['python']}, NumPy {m['numpy']}, normball {m['normball']}."
    )


def _projections(records: list[Record]) -> list[Record]:
    return [r for r in records if r["kind"] == "time" and r["case"] == "projection"]


def _pair(records: list[Record], size: tuple[int, int], dtype: str, layout: str, point: str) -> str:
    found = {
        r["method"]: r["ratio"]
        for r in _projections(records)
        if (r["members"], r["groups"]) == size
        and (r["dtype"], r["layout"], r["point"], r["distribution"]) == (dtype, layout, point, "normal")
    }
    if "newton" not in found:
        return "-"
    theirs = found.get("inverse_total_order")
    paper = "" if theirs is None else f" ({theirs:.3g})" if theirs < 1000 else f" ({theirs:.0f})"
    return f"**{found['newton']:.2f}**{paper}"


def _distributions(records: list[Record]) -> str:
    chosen = [r for r in _projections(records) if r["method"] == "newton"]
    columns = [str(p) for p in POINTS if any(r["point"] == str(p) for r in chosen)]
    lines = [
        "| members x groups | groups | distribution | " + " | ".join(columns) + " |",
        "|---|---|---|" + "---|" * len(columns),
    ]
    keys = dict.fromkeys((r["members"], r["groups"], r["layout"], r["distribution"]) for r in chosen)
    for key in keys:
        rows = [r for r in chosen if (r["members"], r["groups"], r["layout"], r["distribution"]) == key]
        cells = [max((r["ratio"] for r in rows if r["point"] == c), default=None) for c in columns]
        shown = " | ".join("-" if cell is None else f"{cell:.2f}" for cell in cells)
        lines.append(f"| {key[0]} x {key[1]} | {key[2]} | {key[3]} | {shown} |")
    return "\n".join(lines)


def _threads(records: list[Record]) -> str:
    lines = ["| matrix | point | threads | times one thread | a copy, times one thread |", "|---|---|---|---|---|"]
    lines += [
        f"| {r['members']} x {r['groups']} {r['dtype']} {r['layout']} | {r['point']} | {r['threads']} "
        f"| {r['speedup']:.2f} | {r['copy_speedup']:.2f} |"
        for r in records
        if r["kind"] == "threads"
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
