"""Run the benchmark: ``python -m benchmarks.run [--quick] [--only CASE ...] [--out FOLDER]``."""

from __future__ import annotations

import argparse
import importlib
import json
import pkgutil
import sys
import time
from dataclasses import asdict
from pathlib import Path
from types import ModuleType

from benchmarks import cases, plot, solvers, table, targets
from benchmarks.harness import Bench, Record
from benchmarks.machine import this_machine
from normball.experiments.environment import others_seconds

QUIET = 0.1  # CPUs that others may use before the numbers are not worth quoting


def found_in(package: ModuleType) -> dict[str, ModuleType]:
    """Import the modules of a folder."""
    names = [module.name for module in pkgutil.iter_modules(package.__path__)]
    return {name: importlib.import_module(f"{package.__name__}.{name}") for name in names}


def main() -> int:
    known = found_in(cases)
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description="Time projections against a copy.")
    parser.add_argument(
        "--quick", action="store_true", help="a minute instead of a quarter of an hour; not for quoting"
    )
    parser.add_argument("--only", nargs="+", choices=sorted(known), default=sorted(known), help="run only these cases")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"), help="folder for the results")
    options = parser.parse_args()

    machine = this_machine()
    stem = "-".join(["quick" if options.quick else "full", *(options.only if set(options.only) != set(known) else ())])
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / f"{stem}.jsonl"
    print(machine)

    started, others = time.monotonic(), others_seconds()
    with path.open("w", encoding="utf-8") as file:

        def write(record: Record) -> None:
            file.write(json.dumps(record) + "\n")
            file.flush()

        bench = Bench(
            machine, {name: m.SOLVER for name, m in found_in(solvers).items()}, options.quick, on_record=write
        )
        write({"kind": "machine", "quick": options.quick, "cases": options.only} | asdict(machine))
        for name in options.only:
            known[name].run(bench)
        outcomes = targets.check(bench.records)
        for outcome in outcomes:
            write(outcome.record())
        others = (others_seconds() - others) / (time.monotonic() - started)
        write({"kind": "noise", "others_cpus": round(others, 3), "quiet": others <= QUIET})
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")

    wrong = [record for record in bench.records if record["kind"] == "wrong"]
    verdict = (
        f"{len(wrong)} results were wrong, and are in none of the numbers above." if wrong else "No result was wrong."
    )
    report = "\n\n".join([str(machine), table.text(bench.records), "Targets\n" + targets.text(outcomes), verdict])
    (options.out / f"{stem}.txt").write_text(report + "\n", encoding="utf-8")
    print(report.split("\n\n", 1)[1])
    pictures = plot.draw(bench.records, options.out, stem)
    print(f"\n{len(bench.records)} measurements in {(time.monotonic() - started) / 60:.1f} minutes:")
    for written in (path, options.out / f"{stem}.txt", *pictures):
        print(f"  {written}")
    if others > QUIET:
        print(f"Other programs used {others:.1f} CPUs meanwhile: do not quote these numbers.", file=sys.stderr)
    for record in wrong:
        print(f"WRONG RESULT: {record['method']} {targets.place(record)}: {record['error']}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
