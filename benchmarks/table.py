"""The records as plain text."""

from __future__ import annotations

from collections import defaultdict

from benchmarks.harness import Record
from benchmarks.matrices import POINTS

COLUMNS = [str(point) for point in POINTS]


def text(records: list[Record]) -> str:
    """All tables, one under the other."""
    parts = [
        _grid(records, "projection"),
        _grid(records, "modes"),
        _threads(records),
        _small(records),
        _memory(records),
        _family(records),
    ]
    return "\n\n".join(part for part in parts if part)


def _grid(records: list[Record], case: str) -> str:
    """Ratios to a copy: a row for each method (or mode), a column for each radius."""
    chosen = [r for r in records if r["kind"] == "time" and r["case"] == case]
    if not chosen:
        return ""
    blocks: dict[str, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for r in chosen:
        block = f"{r['members']}x{r['groups']} {r['dtype']} {r['layout']}" + (
            "" if r["fits_cache"] else ", out of cache"
        )
        threads = f"{r['threads']} threads" if r["threads"] > 1 else "1 thread"
        row = (
            f"{r['distribution']:10s} {r['method']}"
            if case == "projection"
            else f"{r['start']} {r['target']}, {threads}"
        )
        blocks[block][row][r["point"]] = r["ratio"]
    columns = [c for c in COLUMNS if any(r["point"] == c for r in chosen)]
    lines = [
        f"Ratio to a copy: {case}. Columns: share of zero groups, then radius as a part of the norm.",
    ]
    for block, rows in blocks.items():
        lines += ["", f"{block:44s}" + "".join(f"{c:>9s}" for c in columns)]
        for row, cells in rows.items():
            lines.append(f"  {row:42s}" + "".join(f"{cells[c]:9.2f}" if c in cells else f"{'-':>9s}" for c in columns))
    if case == "projection":
        lines += [
            "",
            "Left out to bound the time: methods other than newton on data that are neither normal nor, up to a",
            "million elements, uniform; total_order above a million elements.",
        ]
    return "\n".join(lines)


def _threads(records: list[Record]) -> str:
    lines = [
        f"  {r['members']}x{r['groups']} {r['dtype']} {r['layout']:10s} {r['point']:>7s}   {r['threads']} threads: "
        f"{r['speedup']:.2f} times one; a copy {r['copy_speedup']:.2f} times"
        for r in records
        if r["kind"] == "threads"
    ]
    return "\n".join(["Threads", *lines]) if lines else ""


def _small(records: list[Record]) -> str:
    lines = [
        f"  {r['dtype']} {r['layout']:10s} {r['target']:4s} {1e6 * r['seconds']:6.2f} us, a copy "
        f"{1e6 * r['copy_seconds']:5.2f} us, over it {r['overhead_us']:5.2f} us"
        for r in records
        if r["kind"] == "small"
    ]
    return "\n".join(["A call on a 10x10 matrix", *lines]) if lines else ""


def _memory(records: list[Record]) -> str:
    lines = [
        f"  {r['members']}x{r['groups']} {r['dtype']} {r['layout']:10s} {r['point']:>7s} "
        f"{r['extra_bytes'] / 2**20:8.2f} MiB, {100 * r['extra_share']:5.1f} % of the matrix, "
        f"{r['bytes_per_group']:7.0f} bytes per group"
        for r in records
        if r["kind"] == "memory"
    ]
    return "\n".join(["Extra memory at the peak of a call", *lines]) if lines else ""


RIVALS = {"plain_ratio": "plain NumPy", "torch_ratio": "PyTorch"}


def _family(records: list[Record]) -> str:
    lines = [
        f"  {r['method']:20s} {r['members']}x{r['groups']} {r['dtype']} {r['layout']:10s} {r['distribution']:9s} "
        f"{r['point']:>9s} {r['ratio']:6.2f}"
        + "".join(f", {title} {r[key]:6.1f}" for key, title in RIVALS.items() if key in r)
        for r in records
        if r["kind"] == "family"
    ]
    return "\n".join(["The family, ratio to a copy", *lines]) if lines else ""
