"""Tables like small biological ones, with large test sets: ``python -m benchmarks.selection.simulated [--seeds N]``.

The rules of "auto" were settled on these, so that the real tables need not be looked at: a test set of 1500 samples
tells half a point, where ten folds of sixty samples do not. Each gene follows one of some factors; a few of the factors
shift with the class, so that genes come in blocks that say the same thing.
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from benchmarks.selection.methods import METHODS, Method, _of_sae, _sae

TESTED = 1500


@dataclass(frozen=True)
class Blocks:
    samples: int
    features: int
    classes: tuple[int, ...]  # their sizes, up to a factor
    factors: int
    active: int  # factors that shift with the class
    shift: float
    share: float  # of the genes that follow an active factor
    freedom: int  # of the noise, which is Student's
    own: float = 0.4  # part of a gene's variance that is its own

    def tables(self, seed: int) -> tuple[Any, Any, Any, Any]:
        """Return a training and a test table, with their classes."""
        rng = np.random.default_rng(seed)
        follows = rng.integers(self.active, self.factors, size=self.features)
        on = rng.random(self.features) < self.share
        follows[on] = rng.integers(0, self.active, size=on.sum())
        loading = rng.normal(size=self.features) * np.sqrt(1.0 - self.own)
        k = len(self.classes)
        centres = self.shift * rng.normal(size=(k, self.active))
        if k == 2:
            apart = rng.normal(size=self.active)
            centres = np.outer([-1.0, 1.0], apart * self.shift / np.linalg.norm(apart))

        def drawn(count: int) -> tuple[Any, Any]:
            y = rng.choice(k, size=count, p=np.array(self.classes) / sum(self.classes))
            y[: 4 * k] = np.repeat(np.arange(k), 4)
            F = rng.normal(size=(count, self.factors))
            F[:, : self.active] += centres[y]
            noise = rng.standard_t(self.freedom, size=(count, self.features))
            return F[:, follows] * loading + noise * np.sqrt(self.own), y

        return *drawn(self.samples), *drawn(TESTED)


CASES = {
    "50 x 2000, hard": Blocks(50, 2000, (22, 40), 25, 5, 1.25, 0.15, 4),
    "58 x 4000, easy": Blocks(58, 4000, (47, 25), 40, 12, 2.6, 0.25, 5),
    "82 x 6000": Blocks(82, 6000, (1, 1), 40, 6, 1.7, 0.05, 4),
    "66 x 2308, four classes": Blocks(66, 2308, (11, 29, 18, 25), 40, 15, 1.6, 0.3, 8),
    "217 x 162": Blocks(217, 162, (67, 204), 25, 8, 1.35, 0.3, 5),
}
COMPARED = {
    "normball, default": METHODS["normball, default"],
    "normball, grown": Method(_sae(ranking="grown"), _of_sae),
    "16 features of the layer": Method(_sae(n_features_to_select=16, ranking="layer", head="linear"), _of_sae),
    "16 features, grown": Method(_sae(n_features_to_select=16, ranking="grown", head="linear"), _of_sae),
    "L1 logistic": METHODS["L1 logistic"],
    "L2 logistic": METHODS["L2 logistic"],
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.selection.simulated", description="Large test sets.")
    parser.add_argument("--seeds", type=int, default=8)
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    threadpool_limits(1)
    print("| table | method | accuracy % | features | CPU s |\n|---|---|---|---|---|")
    for case, made in CASES.items():
        rows: dict[str, list[tuple[float, int, float]]] = {name: [] for name in COMPARED}
        for seed in range(options.seeds):
            X, y, Z, z = made.tables(seed)
            for name, method in COMPARED.items():
                started = time.process_time()
                model = method.make(True).fit(X, y)
                spent = time.process_time() - started
                right = 100 * float((model.predict(Z) == z).mean())
                rows[name].append((right, int(method.support(model).sum()), spent))
        for name, seen in rows.items():
            accuracy, features, seconds = np.array(seen).T
            error = accuracy.std(ddof=1) / np.sqrt(len(accuracy)) if len(accuracy) > 1 else np.nan
            print(
                f"| {case} | {name} | {accuracy.mean():.1f} ± {error:.1f} | {np.median(features):g} | "
                f"{np.median(seconds):.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
