"""Reading tables against pandas' default reader: ``python -m benchmarks.tables [--samples N] [--features N]``.

A CSV of log-normal values with sample ids and labels is written once; both readers then take turns in this process,
and the ratio of the medians counts, of wall time and of CPU time. pandas gives a DataFrame, unchecked; ours a checked
float32 table. The peak of memory is that of a fresh process (on Linux), less that of one that reads a small table, as a
multiple of the float32 table. ``--plain`` leaves out pyarrow.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from statistics import median

import numpy as np
import pandas as pd

from benchmarks.machine import this_machine
from normball.data import make_omics, read_table

_PEAK = """
import sys
{hide}
from normball.data import read_table
table = read_table(sys.argv[1], "label")
print(next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM:")) * 1024)
"""
_HIDE = "sys.modules['pyarrow'] = None"


def peak(path: Path, hide: str) -> int:
    """Bytes at the peak of a process that reads `path`."""
    program = _PEAK.format(hide=hide)
    done = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=True)
    return int(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tables", description="Reading tables against pandas.")
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--features", type=int, default=20000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--plain", action="store_true", help="without pyarrow")
    options = parser.parse_args()
    hide = _HIDE if options.plain else ""
    if options.plain:
        from normball.data import _numbers

        _numbers.pyarrow = None
    print(this_machine())
    with tempfile.TemporaryDirectory() as folder:
        path, small = Path(folder) / "table.csv", Path(folder) / "small.csv"
        made = make_omics(options.samples, options.features)
        made.to_csv(path)
        make_omics(4, 20, 2).to_csv(small)
        print(f"{options.samples} x {options.features}, {path.stat().st_size / 1e6:.0f} MB of CSV")
        if not np.array_equal(read_table(path, "label").X, made.X):
            raise SystemExit("the numbers read are not those written")
        times: dict[tuple[str, str], list[float]] = defaultdict(list)
        for _ in range(options.rounds):
            for name, read in (("pandas", pd.read_csv), ("normball", lambda path: read_table(path, "label"))):
                start, busy = time.perf_counter(), time.process_time()
                read(path)
                times[name, "wall"].append(time.perf_counter() - start)
                times[name, "CPU"].append(time.process_time() - busy)
        for clock in ("wall", "CPU"):
            ours, theirs = median(times["normball", clock]), median(times["pandas", clock])
            print(f"{clock}: pandas {theirs:.2f} s, normball {ours:.2f} s: {theirs / ours:.1f} times as fast")
        extra = peak(path, hide) - peak(small, hide)
        print(f"peak of memory: {extra / made.X.nbytes:.2f} times the float32 table")


if __name__ == "__main__":
    main()
