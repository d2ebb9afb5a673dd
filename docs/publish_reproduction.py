"""Put a full reproduction where it is read: ``python docs/publish_reproduction.py paper [more ...]``.

Writes docs/reproduction_numbers.md, docs/images/paper-*.svg and the two pictures between the markers in README.md.
What the first folder could not measure, such as a GPU, is taken from the next that could, with its machine. Tables of
the user's own are never published.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

from normball.experiments.registry import experiments

ROOT = Path(__file__).resolve().parents[1]
BEGIN, END = "<!-- reproduction: begin -->", "<!-- reproduction: end -->"
PRIVATE = ("table:biology",)
README = {
    "fig:sparsity": "Time of a projection against sparsity, for all the algorithms; the dashed line is a copy",
    "fig:accuracy-features": "Accuracy against the number of features on the paper's synthetic data",
}
BUSY = 0.25
COORDINATES = re.compile(r"""\s(?:d|points|x|y|x1|y1|x2|y2|width|height)=("[^"]*"|'[^']*')""")


def main() -> int:
    """Publish, or say why not."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="what normball reproduce has written, in full")
    parser.add_argument("more", type=Path, nargs="*", help="runs elsewhere, for what the first could not measure")
    parser.add_argument("--force", action="store_true", help="publish though the machine was busy")
    options = parser.parse_args()
    environment, verdicts = read(options.folder)
    if fault := unfit(environment, verdicts):
        print(f"not fit for publishing: {fault}", file=sys.stderr)
        return 1
    busy = environment["others_cpus"]
    if busy > BUSY and not options.force:
        print(f"the machine was busy, other programs used {busy} CPUs: --force to publish", file=sys.stderr)
        return 1
    shown = [filled(each, options.more) for each in verdicts if each["id"] not in PRIVATE]
    for each in shown:
        picture = each.get("folder", options.folder) / f"{stem(each)}.svg"
        if each["outcome"] != "not measured":
            image_of(each).write_text(slim(picture.read_text(encoding="utf-8")), encoding="utf-8")
    page = ROOT / "docs" / "reproduction_numbers.md"
    page.write_text(numbers(environment, shown), encoding="utf-8")
    readme = ROOT / "README.md"
    before, rest = readme.read_text(encoding="utf-8").split(BEGIN)
    readme.write_text(f"{before}{BEGIN}\n{pictures(environment)}\n{END}{rest.split(END)[1]}", encoding="utf-8")
    return 0


def read(folder: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return where a run was made, and its verdicts."""
    environment, verdicts = (
        json.loads((folder / f"{name}.json").read_text(encoding="utf-8")) for name in ("environment", "verdicts")
    )
    return environment, verdicts


def filled(each: dict[str, Any], folders: list[Path]) -> dict[str, Any]:
    """Return a verdict, from another machine where the first had none."""
    if each["outcome"] != "not measured":
        return each
    for folder in folders:
        environment, verdicts = read(folder)
        for other in verdicts:
            if other["id"] == each["id"] and other["outcome"] != "not measured" and not environment["quick"]:
                return other | {"folder": folder, "machine": machine(environment)}
    return each


def unfit(environment: dict[str, Any], verdicts: list[dict[str, Any]]) -> str | None:
    """Say why this run must not be quoted, if it must not."""
    if environment["quick"]:
        return "a quick run"
    left_out = set(experiments()) - {each["id"] for each in verdicts}
    return f"without {', '.join(sorted(left_out))}" if left_out else None


def stem(each: dict[str, Any]) -> str:
    """Return the name of its files."""
    return str(each["id"]).replace(":", "-")


def image_of(each: dict[str, Any]) -> Path:
    """Return where its picture stands in the docs."""
    return ROOT / "docs" / "images" / f"paper-{stem(each)}.svg"


def slim(svg: str) -> str:
    """Leave out the metadata, and round coordinates to a hundredth of a point; text and scales keep their digits."""
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    return re.sub(r"<[a-z][^<>]*>", lambda tag: COORDINATES.sub(rounded, tag[0]), svg)


def rounded(attribute: re.Match[str]) -> str:
    """Return an attribute with its numbers rounded to two decimals."""
    return re.sub(r"-?\d+\.\d{3,}(?!\d|e)", lambda number: f"{float(number[0]):.2f}", attribute[0])


def machine(environment: dict[str, Any]) -> str:
    """Return where the numbers came from, in one line."""
    packages = environment["packages"]
    gpu = f", {environment['gpu']}" if environment["gpu"] else ""
    busy = environment["others_cpus"]
    note = f" Other programs used {busy:.2f} CPUs while times were taken." if busy > BUSY else ""
    return (
        f"{environment['cpu']}, {environment['cpus']} CPUs, {environment['instruction_set']}{gpu}; Python "
        f"{environment['python']}, NumPy {packages['numpy']}, PyTorch {packages['torch']}, normball "
        f"{environment['normball']}.{note}"
    )


def numbers(environment: dict[str, Any], verdicts: list[dict[str, Any]]) -> str:
    """Return the page: the verdicts, then each figure with what was found."""
    parts = [
        machine(environment),
        "| figure or table | claim | verdict |\n|---|---|---|\n"
        + "\n".join(
            f"| [{each['title']}](#{anchor(each)}) | {each['claim']} | {told(each['outcome'])} |" for each in verdicts
        ),
        *(section(each) for each in verdicts),
    ]
    return "\n\n".join(parts) + "\n"


def told(outcome: str) -> str:
    """Return a verdict, the bad ones in bold."""
    return f"**{outcome}**" if outcome == "does not hold" else outcome


def anchor(each: dict[str, Any]) -> str:
    """Return the anchor of the heading of a section."""
    return re.sub(r"[^a-z0-9 -]", "", each["title"].lower()).replace(" ", "-")


def section(each: dict[str, Any]) -> str:
    """Return a figure with what the paper says and what came out."""
    parts = [f"### {each['title']}", f"`{each['id']}`, {each['place']}.", f"> {each['claim']}"]
    if "machine" in each:
        parts.append(f"On another machine: {each['machine']}")
    if each["outcome"] != "not measured":
        parts.append(f"![{each['title']}](images/{image_of(each).name})")
    if each["table"]:
        parts.append(table(each["table"]))
    lines = [f"- **{told(each['outcome']).strip('*').capitalize()}.** Rule: {each['rule']}"]
    lines += [f"- Paper: {each['says']}"] if each["says"] else []
    lines += [f"- The paper's algorithm and settings, here: {each['here']}"] if each["here"] else []
    lines += [f"- Default: {each['default']}"] if each["default"] else []
    asked = "How to measure it" if each["outcome"] == "not measured" else "What would make it hold"
    lines += [f"- {asked}: {each['remedy']}"] if each["remedy"] else []
    return "\n\n".join([*parts, "\n".join(lines)])


def table(split: dict[str, Any]) -> str:
    """Return a table in Markdown."""
    rows = [split["columns"], ["---"] * len(split["columns"]), *split["data"]]
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in rows)


def pictures(environment: dict[str, Any]) -> str:
    """Return what the README shows."""
    shown = [f"![{text}](docs/images/paper-{name.replace(':', '-')}.svg)" for name, text in README.items()]
    return "\n\n".join([*shown, machine(environment)])


if __name__ == "__main__":
    sys.exit(main())
