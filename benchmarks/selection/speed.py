"""Where the time of one fit goes: ``python -m benchmarks.selection.speed [--quick]``.

CPU seconds of one thread, for 750 training samples of the stated synthetic table: in the passes of the networks, in the
projections, and in all the rest.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

from benchmarks.machine import this_machine
from benchmarks.selection.data import Synthetic
from normball import L1InfBall
from normball.estimators import SupervisedAutoencoder
from normball.estimators._network import Autoencoder

FITS: dict[str, dict[str, Any]] = {
    "default": {},
    "default, grown": {"ranking": "grown"},
    "projected, 32 features": {"n_features_to_select": 32, "descent": "projected", "head": "network"},
    "paper": {"preset": "paper"},
}


@contextmanager
def timed(owner: Any, name: str, seconds: list[float]) -> Iterator[None]:
    """Add up the CPU seconds that are spent in a method."""
    plain = getattr(owner, name)

    def wrapped(*args: Any, **options: Any) -> Any:
        started = time.process_time()
        try:
            return plain(*args, **options)
        finally:
            seconds.append(time.process_time() - started)

    setattr(owner, name, wrapped)
    try:
        yield
    finally:
        setattr(owner, name, plain)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.selection.speed", description="Where the time goes.")
    parser.add_argument("--quick", action="store_true", help="1000 features, one fit; not for quoting")
    parser.add_argument("--fits", type=int, default=3, help="of each kind; the table has the medians")
    options = parser.parse_args()
    torch.set_num_threads(1)
    threadpool_limits(1)
    print(this_machine())
    data = Synthetic(1000 if options.quick else 10000, 0.8, 1).table(0)
    train, _ = next(StratifiedKFold(4, shuffle=True, random_state=0).split(data.X, data.y))
    X, y = data.X[train], data.y[train]
    SupervisedAutoencoder(8, random_state=0).fit(X[:, :100], y)  # what only the first fit of a process pays for
    print("| fit | CPU s | forward and backward | projection | all else | projection, % of all |")
    print("|---|---|---|---|---|---|")
    for name, chosen in FITS.items():
        rows = []
        for _ in range(1 if options.quick else options.fits):
            forward, backward, projection = [], [], []  # type: ignore[var-annotated]
            with (
                timed(Autoencoder, "forward", forward),
                timed(torch.Tensor, "backward", backward),
                timed(L1InfBall, "project", projection),
            ):
                started = time.process_time()
                SupervisedAutoencoder(random_state=0, **chosen).fit(X, y)
                total = time.process_time() - started
            rows.append((total, sum(forward) + sum(backward), sum(projection)))
        total, passes, projecting = np.median(rows, axis=0)
        print(
            f"| {name} | {total:.2f} | {passes:.2f} | {projecting:.3f} | {total - passes - projecting:.2f} | "
            f"{100 * projecting / total:.2f} |"
        )


if __name__ == "__main__":
    main()
