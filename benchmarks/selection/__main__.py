"""Run the benchmark: ``python -m benchmarks.selection [--quick] [--seeds N] [--data FOLDER] [--out FOLDER]``."""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

from benchmarks.machine import this_machine
from benchmarks.selection.data import SYNTHETIC, Table, real
from benchmarks.selection.methods import METHODS
from benchmarks.selection.report import picture, table

Key = tuple[str, int, int, str]


def key_of(record: dict[str, Any]) -> Key:
    return record["table"], record["seed"], record["fold"], record["method"]


def measure(
    data: Table, seed: int, folds: int, limit: int, names: list[str], slow: bool, done: set[Key], write: Any
) -> None:
    parts = StratifiedKFold(folds, shuffle=True, random_state=seed).split(data.X, data.y)
    for number, (train, test) in enumerate(parts):
        if number == limit:
            break
        for name in names:
            method = METHODS[name]
            if (method.slow and not slow) or (data.name, seed, number, name) in done:
                continue
            started = time.process_time()  # of the CPU, on one thread: other work on the machine does not count
            model = method.make(data.standardize).fit(data.X[train], data.y[train])
            seconds = time.process_time() - started
            support = np.asarray(method.support(model))
            guess = model.predict(data.X[test])
            write(
                {
                    "table": data.name, "seed": seed, "fold": number, "method": name,
                    "accuracy": float((guess == data.y[test]).mean()),
                    "balanced": float(balanced_accuracy_score(data.y[test], guess)),
                    "features": int(support.sum()), "total": len(support), "seconds": seconds,
                    "found": None if data.informative is None else int(support[: data.informative].sum()),
                    "support": np.flatnonzero(support).tolist() if support.sum() <= 500 else None,
                }
            )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.selection", description="Compare feature selections.")
    parser.add_argument("--quick", action="store_true", help="one seed, one fold, small; not for quoting")
    parser.add_argument("--seeds", type=int, default=5, help="data seeds of each synthetic table")
    parser.add_argument("--folds", type=int, default=1, help="of four folds, how many to run on synthetic tables")
    parser.add_argument("--repeats", type=int, default=2, help="of the cross-validation on real tables")
    parser.add_argument("--only", nargs="+", default=None, help="words; run only tables whose name holds one of them")
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--data", type=Path, default=Path("data"), help="folder of the real tables")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--name", default="selection", help="of the files")
    parser.add_argument("--resume", action="store_true", help="keep what the file has, and measure only what it lacks")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    threadpool_limits(1)
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / f"{options.name}.jsonl"
    records: list[dict[str, Any]] = []
    if options.resume and path.exists():
        records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    done = {key_of(record) for record in records}
    print(this_machine())

    with path.open("a" if options.resume else "w", encoding="utf-8") as file:

        def write(record: dict[str, Any]) -> None:
            file.write(json.dumps(record) + "\n")
            file.flush()
            records.append(record)

        def wanted(name: str) -> bool:
            return options.only is None or any(word in name for word in options.only)

        for case in SYNTHETIC[-1:] if options.quick else SYNTHETIC:
            for seed in range(1 if options.quick else options.seeds):
                if wanted(case.name):
                    slow = case is SYNTHETIC[0] or seed == 0
                    measure(case.table(seed), seed, 4, options.folds, options.methods, slow, done, write)
        if not options.quick and options.data.is_dir():
            for data in real(options.data):
                if wanted(data.name):
                    for repeat in range(options.repeats):
                        measure(data, repeat, 5, 5, options.methods, False, done, write)
    print(table(records))
    (options.out / f"{options.name}.md").write_text(table(records), encoding="utf-8")
    picture(records, options.out / f"{options.name}.svg")


if __name__ == "__main__":
    main()
