"""What the package does, on data that this script makes itself.

First one projection: what comes out, a picture of it, and what it costs next to a copy. Then a table like one of gene
expression, from which ``normball select`` finds the few features that matter, and writes a report.

Run with ``make demo``, or ``python examples/demo.py [folder]``.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from statistics import median

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import normball
from normball.data import make_omics

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "0.55"


def planted(members: int, groups: int, informative: int, seed: int = 0) -> np.ndarray:
    """Noise everywhere, and smooth bumps in a few columns: the groups worth keeping."""
    rng = np.random.default_rng(seed)
    Y = 0.15 * rng.standard_normal((members, groups))
    for column in rng.choice(groups, informative, replace=False):
        centre, width, height = rng.uniform(0, members), rng.uniform(0.15, 0.4) * members, rng.uniform(0.8, 2.0)
        Y[:, column] += height * np.exp(-0.5 * ((np.arange(members) - centre) / width) ** 2)
    return Y


def cap_sum(Y: np.ndarray, thetas: np.ndarray) -> np.ndarray:
    """g(theta), the sum of the caps, from the sorted columns: plain, and slow."""
    S = np.cumsum(-np.sort(-np.abs(Y), axis=0), axis=0)
    k = np.arange(1, len(Y) + 1)[:, None]
    return np.array([np.maximum(((S - theta) / k).max(axis=0), 0).sum() for theta in thetas])


def picture(Y: np.ndarray, X: np.ndarray, info: normball.ProjectionInfo, radius: float, path: Path) -> None:
    """Before, after, the caps, and the one equation that decides them."""
    plt.rcParams |= {"font.size": 10, "axes.spines.top": False, "axes.spines.right": False}
    figure = plt.figure(figsize=(11, 7), layout="constrained")
    grid = figure.add_gridspec(2, 2, height_ratios=(1, 0.9))
    before, after = figure.add_subplot(grid[0, 0]), figure.add_subplot(grid[0, 1])
    titles = (
        f"$|Y|$: norm {normball.norm_l1inf(Y):.1f}",
        f"$|X|$, its projection: norm {normball.norm_l1inf(X):.1f}, {info.n_nonzero} of {Y.shape[1]} groups left",
    )
    colours = plt.get_cmap("cividis").with_extremes(bad="white")
    for panel, values, title in zip((before, after), (Y, X), titles, strict=True):
        shown = np.ma.masked_equal(np.abs(values), 0.0)
        image = panel.imshow(shown, aspect="auto", cmap=colours, vmin=0, vmax=np.abs(Y).max(), interpolation="nearest")
        panel.set_title(title, loc="left", fontsize=11)
        panel.set_xlabel("group")
    before.set_ylabel("member")
    after.set_yticks([])
    figure.colorbar(image, ax=after, label="magnitude (white: exactly zero)", pad=0.02)

    caps = figure.add_subplot(grid[1, 0])
    groups = np.arange(Y.shape[1])
    caps.vlines(groups, 0, np.abs(Y).max(axis=0), color="0.82", linewidth=1.6, label=r"$\max_i |Y_{ij}|$")
    caps.vlines(groups, 0, info.mu, color=BLUE, linewidth=1.6, label=r"cap $\mu_j$ (they sum to the radius)")
    caps.set(xlabel="group $j$", ylabel="largest magnitude", xlim=(-1, Y.shape[1]), ylim=(0, 1.2 * np.abs(Y).max()))
    caps.set_title("Every group is clipped at a cap of its own, most at zero", loc="left", fontsize=11)
    caps.legend(frameon=True, framealpha=0.9, edgecolor="none", loc="upper right", ncols=2)

    curve = figure.add_subplot(grid[1, 1])
    thetas = np.linspace(0, 1.15 * normball.norm_linf1(Y), 300)
    curve.plot(thetas, cap_sum(Y, thetas), color=BLUE, linewidth=2)
    curve.axhline(radius, color=GREY, linewidth=1, linestyle=(0, (4, 2)))
    curve.axvline(info.theta, color=GREY, linewidth=1, linestyle=(0, (4, 2)))
    curve.plot([info.theta], [radius], "o", color=ORANGE, markersize=8, zorder=3)
    curve.annotate(f"radius {radius:.1f}", (thetas[-1], radius), (0, 4), textcoords="offset points", ha="right")
    curve.annotate(
        rf"$\theta$ = {info.theta:.2f}", (info.theta, normball.norm_l1inf(Y)), (6, -8), textcoords="offset points"
    )
    curve.set(xlabel=r"$\theta$: what each group left alive loses in l1 norm", ylabel=r"$g(\theta) = \sum_j \mu_j$")
    curve.set(xlim=(0, None), ylim=(0, None))
    curve.set_title(r"One number decides all the caps: $g(\theta)$ = radius", loc="left", fontsize=11)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


def milliseconds(repeats: int, *actions: object) -> list[float]:
    """Time the actions by turns and return their medians."""
    times: list[list[float]] = [[] for _ in actions]
    for _ in range(repeats):
        for values, action in zip(times, actions, strict=True):
            start = time.perf_counter()
            action()  # type: ignore[operator]
            values.append(1e3 * (time.perf_counter() - start))
    return [median(values) for values in times]


def projection(folder: Path) -> None:
    """Project, draw, time, and say so."""
    Y = planted(60, 150, informative=22)
    radius = 0.2 * normball.norm_l1inf(Y)
    X, info = normball.project_l1inf(Y, radius, return_info=True)
    path = folder / "projection.png"
    picture(Y, X, info, radius, path)
    print(f"Projected a 60 x 150 matrix onto the l1,inf ball of radius {radius:.2f}.")
    print(f"  norm before {normball.norm_l1inf(Y):.2f}, after {normball.norm_l1inf(X):.2f};", end=" ")
    print(f"{info.n_nonzero} of 150 groups are not zero")
    print(f"  picture: {path}")

    big = np.random.default_rng(0).standard_normal((2000, 2000))
    out = np.empty_like(big)
    print("One thread, a 2000 x 2000 matrix in double precision, its columns as groups, into an array that exists:")
    for part in (0.0001, 0.3):
        radius = part * normball.norm_l1inf(big)

        def project(method: str, radius: float = radius) -> object:
            return normball.project_l1inf(big, radius, method=method, out=out, threads=1)

        project("newton")
        zeros = 100 * np.mean(np.abs(out).max(axis=0) == 0)
        copy, ours = milliseconds(9, lambda: np.copyto(out, big), lambda: project("newton"))
        (paper,) = milliseconds(1, lambda: project("inverse_total_order"))
        print(f"  {zeros:3.0f} % of the groups become zero: copy {copy:.1f} ms, projection {ours:.1f} ms", end="")
        print(f" ({ours / copy:.1f} copies); the paper's algorithm takes {paper / ours:.1f} times as long")


def selection(folder: Path, samples: int = 120, features: int = 1000, *options: str) -> None:
    """Make a table, run the command on it, and say which of its features are the planted ones."""
    from normball.cli.app import app

    table = make_omics(samples, features, 12, missing=0.02)
    path = folder / "expression.csv"
    folder.mkdir(parents=True, exist_ok=True)
    table.to_csv(path)
    results = folder / "results"
    command = ["select", str(path), "--target", "label", "--out", str(results), "--force", *options]
    print(f"\n{table!r}")
    print(f"  {table.notes[0]}")
    print(f"$ normball {' '.join(command)}", flush=True)
    start = time.perf_counter()
    if code := app(command, standalone_mode=False):
        sys.exit(code)
    print(f"{time.perf_counter() - start:.0f} s in all. Open the report in a browser: {results / 'report.html'}")


def main() -> None:
    """Show both."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("demo")
    projection(folder)
    selection(folder)


if __name__ == "__main__":
    main()
