"""Studies made up for tests: real scores of a simple classifier on made data, so that all parts fit together."""

import numpy as np
import pandas as pd

from normball.selection.results import Study

SCORES = ["method", "repeat", "fold", "accuracy", "balanced_accuracy", "auc", "n_features", "seconds"]


def make_study(
    n=120, d=300, classes=("control", "tumour"), shift=1.0, seed=0, names=None, samples=None, permutations=0, repeats=2,
    folds=5, n_selected=None, table="expression.csv",
):  # fmt: skip
    """Classes are apart by ``shift`` on the first features; a nearest-mean rule stands for every method."""
    rng = np.random.default_rng(seed)
    classes = list(classes)
    k = len(classes)
    y = np.arange(n) % k
    informative = min(12, d)
    X = rng.normal(size=(n, d)) + 6.0
    pattern = rng.choice([-1.0, 1.0], size=(k, informative))
    pattern[1] = -pattern[0]
    X[:, :informative] += 0.5 * shift * pattern[y]
    names = list(names) if names is not None else [f"GENE{j}" for j in range(d)]
    samples = list(samples) if samples is not None else [f"patient {i:03d}" for i in range(n)]
    kept = n_selected or informative

    def scores_of(train, test, columns):
        means = np.array([X[np.ix_(train[y[train] == c], columns)].mean(0) for c in range(k)])
        return -((X[test][:, None, columns] - means) ** 2).sum(-1)

    rows, p, chosen = [], np.zeros((n, k)), np.zeros(d)
    for repeat in range(repeats):
        order = rng.permutation(n)
        for fold in range(folds):
            test = order[fold::folds]
            train = np.setdiff1d(order, test)
            for method, width in (("normball", kept), ("L1 logistic", 2 * kept), ("random forest", d)):
                spread = X[train].std(0) + 1e-9
                gap = np.ptp([X[train][y[train] == c].mean(0) for c in range(k)], axis=0) / spread
                columns = np.sort(np.argsort(-gap)[: min(width, d)])
                z = scores_of(train, test, columns)
                right = z.argmax(1) == y[test]
                if method == "normball":
                    soft = np.exp((z - z.max(1, keepdims=True)) / 4)
                    p[test] += soft / soft.sum(1, keepdims=True) / repeats
                    chosen[columns] += 1 / (repeats * folds)
                each = [right[y[test] == c].mean() for c in range(k) if (y[test] == c).any()]
                rows.append((method, repeat, fold, right.mean(), np.mean(each), np.nan, len(columns), 0.1))
    label = np.array(classes, dtype=object)[y]
    predicted = np.array(classes, dtype=object)[p.argmax(1)]
    spread = X.std(0) + 1e-9
    means = np.array([X[y == c].mean(0) for c in range(k)])
    importance = np.where(chosen > 0, np.ptp(means, axis=0) / spread, 0.0)
    rank = np.lexsort((-importance, -chosen))
    p_value = np.exp(-0.2 * n * (np.ptp(means, axis=0) / spread) ** 2)
    features = pd.DataFrame({
        "feature": names, "rank": 0, "selected": False, "frequency": chosen, "importance": importance,
        "direction": np.array(classes, dtype=object)[means.argmax(0)], "effect": (means[-1] - means[0]) / spread,
        "p_value": p_value, "q_value": np.minimum(1, p_value * 10),
        **{f"importance:{c}": importance / k for c in classes},
        **{f"mean:{c}": means[i] for i, c in enumerate(classes)},
    }).iloc[rank].reset_index(drop=True)  # fmt: skip
    features["rank"] = np.arange(1, d + 1)
    features.loc[: kept - 1, "selected"] = True
    shown = rank[: min(kept, 200)]
    everything = np.arange(n)
    z = scores_of(everything, everything, np.sort(rank[:kept])) / 10
    latent = pd.DataFrame({"sample": samples, "label": label, "predicted": predicted})
    for i in range(k):
        latent[f"z{i}"] = z[:, i]
    sizes = np.array([m for m in (1, 2, 4, 8, 12, 16, 32, 64, 128) if m <= d])
    accuracy = 1 - 0.5 * np.exp(-sizes / 6.0) - 0.0005 * sizes
    path = pd.DataFrame({
        "n_features": sizes, "radius": 0.05 * sizes**0.8, "theta": 1.0 / sizes, "accuracy": accuracy,
        "error": 0.02, "chosen": sizes == sizes[np.abs(sizes - kept).argmin()],
    })  # fmt: skip
    epochs = np.arange(1, 21)
    losses = pd.concat([
        pd.DataFrame({"stage": stage, "epoch": epochs, "loss": start * np.exp(-epochs / 6.0) + 0.1,
                      "validation": start * np.exp(-epochs / 7.0) + 0.15})
        for stage, start in (("ranking", 0.7), ("refit", 0.5))
    ])  # fmt: skip
    return Study(
        settings={
            "table": table, "target": "diagnosis", "seeds": 2, "random_state": 0, "versions": {"normball": "0.1.0"}
        },
        n_samples=n,
        n_features=d,
        classes=classes,
        notes=["2 constant features left out", "delimiter: comma", "log=auto: logarithms to base 2 taken"],
        scores=pd.DataFrame(rows, columns=SCORES),
        predictions=pd.DataFrame({"sample": samples, "label": label, "predicted": predicted, "confidence": p.max(1),
                                  **{f"p:{c}": p[:, i] for i, c in enumerate(classes)}}),
        features=features,
        path=path,
        latent=latent,
        losses=losses,
        values=pd.DataFrame(X[:, shown], index=samples, columns=[names[j] for j in shown]),
        stability={"index": 0.62, "low": 0.55, "high": 0.69},
        permutations=list(rng.normal(1 / k, 0.05, size=permutations)),
        seconds={"reading": 0.1, "training": 12.0},
    )  # fmt: skip
