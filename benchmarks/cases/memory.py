"""Extra memory at its peak during one call, the first in a process of its own; Linux only.

The kernel's high-water mark is reset before the call. glibc is told to hand every large block back at once, so that
blocks freed earlier do not hide what the call takes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

import normball
from benchmarks.harness import Bench
from benchmarks.matrices import DTYPES, LAYOUTS, POINTS, SIZES, laid_out, make, radii

TITLE = "extra memory at the peak of a call, normal data"

ALLOCATOR = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}


def run(bench: Bench) -> None:
    if not Path("/proc/self/clear_refs").exists():
        return
    for members, groups in ((1000, 1000),) if bench.quick else SIZES:
        radius_at = radii(make("normal", members, groups), POINTS)
        for layout in LAYOUTS:
            for dtype in DTYPES:
                for point, radius in radius_at.items():
                    bench.progress(f"{members}x{groups} {dtype} {layout} {point} memory")
                    spec = json.dumps([members, groups, dtype, layout, str(point), radius])
                    done = subprocess.run(
                        [sys.executable, "-m", "benchmarks.cases.memory", spec],
                        env=os.environ | ALLOCATOR, stdout=subprocess.PIPE, text=True, check=True,
                    )  # fmt: skip
                    bench.emit(json.loads(done.stdout))


def measure_here(members: int, groups: int, dtype: str, layout: str, point: str, radius: float) -> None:
    """Print a record."""
    Y = laid_out(make("normal", members, groups), dtype, layout)
    X = Y.copy(order="K")  # every page touched
    visit_code(dtype, layout)
    normball.project_l1inf(Y, 2.0 * normball.norm_l1inf(Y), out=X, threads=1)  # nothing is searched for
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before = status("VmRSS")
    normball.project_l1inf(Y, radius, out=X, threads=1)
    extra = max(status("VmHWM") - before, 0)
    record = {
        "kind": "memory", "case": "memory", "method": "newton", "members": members, "groups": groups,
        "dtype": dtype, "layout": layout, "distribution": "normal", "point": point,
        "extra_bytes": extra, "extra_share": extra / Y.nbytes, "bytes_per_group": extra / groups,
        "zero_share": 1.0 - np.count_nonzero(np.abs(X).max(axis=0)) / groups,
    }  # fmt: skip
    print(json.dumps(record))


def visit_code(dtype: str, layout: str) -> None:
    """Have the code in memory, which comes when it is first needed, and is not what is measured."""
    base = make("normal", 64, 600)
    Y = laid_out(base, dtype, layout)
    for radius in radii(base, POINTS).values():
        normball.project_l1inf(Y, radius, threads=1)


def status(name: str) -> int:
    """Return a number of bytes that the kernel tells of this process."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(name + ":"):
            return 1024 * int(line.split()[1])
    raise OSError(f"/proc/self/status has no {name}")


if __name__ == "__main__":
    measure_here(*json.loads(sys.argv[1]))
