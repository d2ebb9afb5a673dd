"""What the default method promises, and the worst that was measured of each promise.

Ratios are to a copy; `newton`, one thread, unless said otherwise.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass

from benchmarks.harness import Record

SPARSE = ("99.9 %", "99 %", "90 %")
BY_GROUPS = ("l12", "bilevel_l1inf", "bilevel_l11")
BYTES_PER_GROUP = 512  # what "proportional to the groups" is taken to mean
BYTES_FOR_ARRAYS = 160  # twenty numbers for each group, which is much next to groups of a hundred members


@dataclass(frozen=True)
class Outcome:
    target: str
    limit: float
    worst: float
    where: str
    measured: int
    met: bool

    def record(self) -> Record:
        return {"kind": "target"} | asdict(self)


def check(records: list[Record]) -> list[Outcome]:
    """One outcome for each target that something was measured of."""
    newton = [r for r in records if r["kind"] == "time" and r["method"] == "newton" and r["threads"] == 1]
    cold = [r for r in newton if r["start"] == "cold"]
    sparse = [r for r in cold if r["point"] in SPARSE]
    big = [r for r in sparse if not r["fits_cache"]]
    small = [r for r in sparse if r["fits_cache"]]
    warm = [r for r in newton if r["point"] in SPARSE and r["target"] == "in place"]
    rivals, paper = _against(records)
    found: list[Outcome | None] = [
        _most("90 % zero groups or more, larger than the last cache", 1.3, big),
        _most("90 % zero groups or more, inside the cache", 2.0, [r for r in small if r["members"] > 100]),
        _most("... groups of 100 members or fewer", 2.5, [r for r in small if r["members"] <= 100]),
    ]
    for fits, limits in ((False, (3.0, 4.0)), (True, (5.0, 7.0))):
        where = "inside the cache" if fits else "larger than the last cache"
        for layout, limit in zip(("contiguous", "strided"), limits, strict=True):
            chosen = [r for r in cold if r["fits_cache"] is fits and r["layout"] == layout]
            found.append(_most(f"any radius, any distribution, {layout}, {where}", limit, chosen))
    found += [
        _most(
            "warm in place, every entry moved a little, 90 % or more", 1.0, [r for r in warm if r["start"] == "warm"]
        ),
        _most(
            "warm in place, last projection plus a step, 90 % or more", 1.0, [r for r in warm if r["start"] == "step"]
        ),
        _least("times faster than the fastest other method", 1.0, rivals, lambda r: r["advantage"]),
        _least("times faster than inverse_total_order at 50 % or fewer", 10.0, paper, lambda r: r["advantage"]),
        _least("all threads against one", 1.6, _of(records, "threads"), lambda r: r["speedup"]),
        _most("10x10 matrix, microseconds over a copy", 5.0, _of(records, "small"), lambda r: r["overhead_us"]),
        _most(
            f"extra memory beyond {BYTES_FOR_ARRAYS} bytes a group, share of the matrix",
            0.25,
            _of(records, "memory"),
            lambda r: r["extra_share"] * (1.0 - BYTES_FOR_ARRAYS / max(r["bytes_per_group"], BYTES_FOR_ARRAYS)),
        ),
        _most(
            "extra memory at 99 % zero groups or more, bytes per group",
            BYTES_PER_GROUP,
            [r for r in _of(records, "memory") if r["point"] in SPARSE[:2]],
            lambda r: r["bytes_per_group"],
        ),
    ]
    return [outcome for outcome in [*found, *_family(records)] if outcome is not None]


def _family(records: list[Record]) -> list[Outcome | None]:
    family = _of(records, "family")

    def of(*names: str) -> list[Record]:
        return [r for r in family if r["method"] in names]

    def faster(rival: str) -> list[Record]:
        return [r | {"advantage": r[rival] / r["ratio"]} for r in family if rival in r]

    return [
        _most("project_l1, project_simplex of ten million entries", 2.5, of("l1", "simplex")),
        _most("project_l12 and the bilevel projections, contiguous", 1.5, _laid(of(*BY_GROUPS), "contiguous")),
        _most("... strided", 1.5, _laid(of(*BY_GROUPS), "strided")),
        _most("radius_for_sparsity", 5.0, of("radius_for_sparsity")),
        _least("the family: times faster than plain NumPy", 1.0, faster("plain_ratio"), lambda r: r["advantage"]),
        _least("... than PyTorch with torch.sort", 1.0, faster("torch_ratio"), lambda r: r["advantage"]),
    ]


def _laid(records: list[Record], layout: str) -> list[Record]:
    return [r for r in records if r["layout"] == layout]


def text(outcomes: Iterable[Outcome]) -> str:
    lines = []
    for o in outcomes:
        lines.append(f"{'met   ' if o.met else 'MISSED'} {o.target:68s} {o.worst:8.2f}  limit {o.limit:<5g} {o.where}")
    return "\n".join(lines)


def place(r: Record) -> str:
    """Where a record was measured, in a few words."""
    words = [f"{r['members']}x{r['groups']}", r["dtype"], r["layout"]]
    words += [r["method"]] if r.get("case") == "family" else []
    words += [str(r[key]) for key in ("distribution", "point", "target") if key in r]
    if r.get("start", "cold") != "cold":
        words.append(r["start"])
    if "rival" in r:
        words.append(f"against {r['rival']}")
    return " ".join(words)


def _of(records: list[Record], kind: str) -> list[Record]:
    return [r for r in records if r["kind"] == kind]


def _most(
    target: str, limit: float, records: list[Record], value: Callable[[Record], float] = lambda r: r["ratio"]
) -> Outcome | None:
    if not records:
        return None
    worst = max(records, key=value)
    return Outcome(target, limit, value(worst), place(worst), len(records), value(worst) <= limit)


def _least(target: str, limit: float, records: list[Record], value: Callable[[Record], float]) -> Outcome | None:
    if not records:
        return None
    worst = min(records, key=value)
    return Outcome(target, limit, value(worst), place(worst), len(records), value(worst) >= limit)


def _against(records: list[Record]) -> tuple[list[Record], list[Record]]:
    """How many times faster newton is than the best other method, and than the paper's where half or less is zero."""
    places: dict[tuple[object, ...], dict[str, Record]] = defaultdict(dict)
    for r in records:
        if r["kind"] == "time" and r["case"] == "projection":
            key = tuple(r[k] for k in ("members", "groups", "dtype", "layout", "distribution", "point"))
            places[key][r["method"]] = r
    best, paper = [], []
    for found in places.values():
        if "newton" not in found or len(found) == 1:
            continue
        ours = found.pop("newton")
        rival = min(found.values(), key=lambda r: r["ratio"])
        best.append(ours | {"rival": rival["method"], "advantage": rival["ratio"] / ours["ratio"]})
        if "inverse_total_order" in found and ours["point"] not in SPARSE:
            theirs = found["inverse_total_order"]
            paper.append(ours | {"advantage": theirs["ratio"] / ours["ratio"]})
    return best, paper
