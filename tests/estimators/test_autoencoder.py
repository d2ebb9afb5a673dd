"""The estimator's own promises: descents, path, errors, files, checkpoints, streams."""

import json
import pickle

import numpy as np
import pytest
import torch
from sklearn.datasets import make_classification

from normball import norm_l1inf, project_l1inf
from normball.estimators import SupervisedAutoencoder
from normball.estimators._path import NORMS, ball_of, ranked, scores, threshold
from normball.estimators._selection import Fold, choose, grid


def data(samples=150, features=40, classes=2, seed=0):
    """Five features that matter, in front; the samples in random order."""
    X, y = make_classification(
        samples, features, n_informative=5, n_redundant=0, n_classes=classes, class_sep=2.0, shuffle=False,
        n_clusters_per_class=1, random_state=seed,
    )  # fmt: skip
    order = np.random.default_rng(seed).permutation(samples)
    return X[order], y[order]


@pytest.mark.parametrize("seed", range(5))
def test_the_path_is_that_of_the_projection(seed):
    W = np.random.default_rng(seed).normal(size=(7, 20)) ** 3
    order = ranked(scores(W, "l1inf"))
    for count in range(21):
        theta, radius = threshold(W, "l1inf", count)
        X, info = project_l1inf(W, radius, return_info=True)
        left = np.flatnonzero(np.abs(X).max(0) > 0)
        np.testing.assert_array_equal(left, np.sort(order[:count]))
        assert norm_l1inf(X) == pytest.approx(radius)
        if count < 20:
            assert float(info.theta) == pytest.approx(theta)


@pytest.mark.parametrize("norm", sorted(NORMS))
def test_the_path_of_every_norm(norm):
    W = np.random.default_rng(1).normal(size=(7, 20))
    order = ranked(scores(W, norm))
    for count in (1, 5, 19):
        left = np.abs(ball_of(norm, threshold(W, norm, count)[1]).project(W)).max(0) > 0
        np.testing.assert_array_equal(np.flatnonzero(left), np.sort(order[:count]))


@pytest.mark.parametrize("descent", ["refit", "double", "masked", "projected"])
def test_every_descent_finds_the_features(descent):
    X, y = data(samples=300)
    sae = SupervisedAutoencoder(5, descent=descent, head="network", random_state=0).fit(X[:200], y[:200])
    assert sae.support_.sum() == 5
    assert sae.support_[:5].sum() >= (4 if descent == "refit" else 3)  # Adam ranks worse
    assert sae.score(X[200:], y[200:]) > 0.85
    changed = X.copy()
    changed[:, ~sae.support_] += 100.0  # what is not selected has no say
    np.testing.assert_array_equal(sae.predict_proba(X), sae.predict_proba(changed))
    assert sae.feature_importances_[~sae.support_].sum() == 0.0
    assert sae.feature_importances_.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("norm", sorted(NORMS))
@pytest.mark.parametrize("descent", ["refit", "double", "projected"])
def test_every_norm(norm, descent):
    X, y = data()
    sae = SupervisedAutoencoder(6, norm=norm, descent=descent, head="network", random_state=0).fit(X, y)
    assert sae.support_.sum() == 6
    assert sae.score(X, y) > 0.8


def test_a_radius_a_fraction_and_no_projection():
    X, y = data()
    by_radius = SupervisedAutoencoder(radius=0.05, head="linear", random_state=0).fit(X, y)
    assert by_radius.radius_ == 0.05
    again = SupervisedAutoencoder(int(by_radius.support_.sum()), head="linear", random_state=0).fit(X, y)
    np.testing.assert_array_equal(by_radius.support_, again.support_)
    assert SupervisedAutoencoder(0.25, head="linear", random_state=0).fit(X, y).support_.sum() == 10
    every = SupervisedAutoencoder(norm=None, random_state=0).fit(X, y)
    assert every.support_.all()
    assert every.transform(X).shape == (len(X), 2)


def test_the_paper_s_recipe_and_what_it_leaves_to_the_user():
    X, y = data()
    paper = SupervisedAutoencoder(preset="paper", random_state=0, epochs=8).fit(X, y)
    assert (paper.head_, paper.radius_) == ("network", 0.1)
    assert SupervisedAutoencoder(3, preset="paper", random_state=0, epochs=8).fit(X, y).support_.sum() == 3
    explicit = SupervisedAutoencoder(
        radius=0.1, descent="double", head="network", epochs=8, batch_size=32, learning_rate=1e-3,
        reconstruction_weight=5e-5, random_state=0,
    ).fit(X, y)  # fmt: skip
    np.testing.assert_array_equal(paper.predict_proba(X), explicit.predict_proba(X))


def test_auto_takes_few_features_and_tells_its_path():
    X, y = data(samples=300, features=200)
    sae = SupervisedAutoencoder(random_state=0).fit(X, y)
    path = sae.feature_path_
    assert set(path) == {
        "n_features", "head", "accuracy", "standard_error", "log_likelihood", "theta", "radius",
    }  # fmt: skip
    assert sae.support_.sum() in path["n_features"]
    assert sae.support_.sum() <= 12
    quick = path["head"] == "gaussian"
    assert (np.diff(path["theta"][quick]) < 0).all()
    assert (np.diff(path["radius"][quick]) > 0).all()


def told(right, sure=0.9):
    """Log-probabilities of two classes, all samples being of class 1: right or wrong, and how sure."""
    p = np.where(right, sure, 1.0 - sure)
    return np.log(np.stack([1.0 - p, p], axis=1))


def picked(answers, counts, heads=("linear",), n=400, slow=()):
    """What is chosen where a head with so many features gives these answers."""
    tried = []

    def log_proba(head, count):
        tried.append((head, count))
        return answers(head, count)

    choice = choose([Fold(np.arange(n), log_proba)], counts, heads, np.ones(n, int), np.ones(n), slow=slow)
    return choice, tried


def test_the_rule_of_one_standard_error():
    rng = np.random.default_rng(0)
    n = 400
    base = rng.random(n) < 0.8
    worse = base & (rng.random(n) < 0.8)  # far below, always on the same samples
    swapped = base.copy()
    swapped[np.flatnonzero(base)[:5]] = False
    swapped[np.flatnonzero(~base)[:4]] = True  # one below, nine apart
    answers = {1: worse, 2: swapped, 3: swapped, 4: base, 8: base}

    def number(counts):
        return picked(lambda head, count: told(answers[count]), counts)[0].count

    assert number([1, 2, 3, 4, 8]) == 3  # 2 is judged together with 1
    assert number([2, 3, 4, 8]) == 2
    assert number([1, 4, 8]) == 8
    path = picked(lambda head, count: told(base if count < 4 else worse), [1, 2, 3, 4, 6, 8, 16, 64, 96])[0].path
    assert max(path["n_features"]) == 64  # three in a row and more are clearly worse: the path ends


def test_a_number_that_does_well_by_chance_is_passed_over():
    rng = np.random.default_rng(0)
    base = rng.random(400) < 0.8
    worse = base & (rng.random(400) < 0.8)
    better = base.copy()
    better[np.flatnonzero(~base)[:2]] = True  # hardly
    answers = {1: base, 2: base, 3: worse, 4: worse, 6: worse, 8: better, 12: better, 16: better}
    choice, _ = picked(lambda head, count: told(answers[count]), list(answers))
    assert choice.count == 12  # 1 and 2 are near the best, but what comes after them is not; 8 stands beside 6
    few = [1, 2, 8, 12, 16]
    assert picked(lambda head, count: told(answers[count]), few)[0].count == 1


def test_what_a_head_knows_counts_and_not_how_sure_it_is():
    rng = np.random.default_rng(1)
    right = rng.random(400) < 0.8
    surer = picked(lambda head, count: told(right, 0.6 if count == 1 else 0.8), [1, 2, 4])[0]
    assert surer.count == 1  # the same answers, only more timid
    # With as many right answers, the wrong ones less sure: this is knowledge.
    p = np.where(right, 0.9, 0.4)
    knows = np.log(np.stack([1.0 - p, p], axis=1))
    wiser = picked(lambda head, count: knows if count >= 2 else told(right), [1, 2, 3, 4, 6])[0]
    assert wiser.count == 3
    assert wiser.path["accuracy"][0] == wiser.path["accuracy"][1]
    assert wiser.path["log_likelihood"][0] < wiser.path["log_likelihood"][1]


def test_the_simple_head_stays_unless_another_is_clearly_better():
    rng = np.random.default_rng(2)
    base = rng.random(400) < 0.8
    a_little = base.copy()
    a_little[np.flatnonzero(~base)[:3]] = True
    a_little[np.flatnonzero(base)[:2]] = False
    clearly = base | (rng.random(400) < 0.3)
    for other, head in ((a_little, "linear"), (clearly, "gaussian")):
        choice, _ = picked(lambda h, k, o=other: told(base if h == "linear" else o), [1, 2, 4], ("linear", "gaussian"))
        assert choice.head == head


def test_the_slow_head_is_tried_where_the_others_stopped():
    right = np.ones(50, bool)
    wrong = np.arange(50) % 5 > 0
    answers = {"network": told(right), "linear": told(wrong)}
    choice, tried = picked(lambda head, count: answers[head], [1, 2, 4], tuple(answers)[::-1], 50, ("network",))
    assert (choice.count, choice.head) == (1, "network")
    assert [pair for pair in tried if pair[0] == "network"] == [("network", 1)]


def test_the_grid():
    assert grid(10) == [1, 2, 3, 4, 6, 8, 10]
    assert max(grid(10000)) == max(grid(1025)) == 512
    assert grid(700)[-2:] == [512, 700]


def test_the_decoder_learns_the_data():
    X, y = data(samples=300)
    sae = SupervisedAutoencoder(
        5, descent="double", head="network", reconstruction_weight=20.0, epochs=60, random_state=0
    ).fit(X, y)  # fmt: skip
    copy = sae.inverse_transform(sae.transform(X))
    there = np.square(copy - X)[:, :5].mean()
    assert there < 0.8 * X[:, :5].var(0).mean()
    with pytest.raises(ValueError, match="Z: expected a matrix of 2 columns"):
        sae.inverse_transform(np.zeros((3, 5)))


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"n_features_to_select": 41}, ValueError, "between 1 and the 40 features"),
        ({"n_features_to_select": 0}, ValueError, "between 1 and the 40"),
        ({"n_features_to_select": 1.5}, ValueError, "fraction between 0 and 1"),
        ({"n_features_to_select": "all"}, ValueError, "'auto'"),
        ({"radius": -1.0}, ValueError, "radius: expected a number > 0"),
        ({"norm": "l3"}, ValueError, "norm: expected one of"),
        ({"descent": "down"}, ValueError, "descent: expected one of"),
        ({"head": "svm"}, ValueError, "head: expected one of"),
        ({"activation": "tanh"}, ValueError, "activation: expected one of"),
        ({"hidden": ()}, ValueError, "hidden: expected a positive int"),
        ({"epochs": 0}, ValueError, "epochs: expected a positive int"),
        ({"learning_rate": 0.0}, ValueError, "learning_rate: expected"),
        ({"reconstruction_weight": -1}, ValueError, "reconstruction_weight: expected"),
        ({"expand": "all"}, ValueError, "expand: expected"),
        ({"expand": "associated", "descent": "double"}, ValueError, "expand: expected descent='refit'"),
        ({"preset": "thesis"}, ValueError, "preset: expected one of"),
        ({"device": "abacus"}, ValueError, "device: expected"),
        (
            {"n_features_to_select": 5, "radius": 0.02},
            ValueError,
            "radius, n_features_to_select: expected one of them at most, got both: 0.02 and 5",
        ),
        ({"n_features_to_select": 0.5, "radius": 0.02, "preset": "paper"}, ValueError, "got both"),
        ({"norm": None, "n_features_to_select": 5}, ValueError, "n_features_to_select: expected 'auto' with norm=None"),
        ({"norm": None, "radius": 0.02}, ValueError, "radius: expected None with norm=None"),
        ({"norm": None, "descent": "double"}, ValueError, "descent: expected None with norm=None"),
        ({"norm": None, "head": "linear"}, ValueError, "head: expected 'auto' or 'network' with norm=None"),
        ({"norm": None, "ranking": "grown"}, ValueError, "ranking: expected"),
        ({"norm": None, "expand": "associated"}, ValueError, "expand: expected"),
        ({"ranking": "grown", "radius": 0.02}, ValueError, "ranking: expected"),
        ({"ranking": "grown", "preset": "paper"}, ValueError, "ranking: expected"),
    ],
)
def test_bad_parameters(options, error, match):
    X, y = data()
    sae = SupervisedAutoencoder(**options)  # scikit-learn checks nothing before fit
    with pytest.raises(error, match=match):
        sae.fit(X, y)
    with pytest.raises(error, match=match):
        sae.partial_fit(X, y, classes=[0, 1])


def test_the_recipe_without_a_projection():
    X, y = data()
    sae = SupervisedAutoencoder(preset="paper", norm=None, epochs=2, random_state=0).fit(X, y)
    assert sae.support_.all()
    assert (sae.head_, sae.radius_) == ("network", None)


def test_bad_data():
    X, y = data()
    hole = X.copy()
    hole[3, 4] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        SupervisedAutoencoder().fit(hole, y)
    with pytest.raises(ValueError, match="at least two classes"):
        SupervisedAutoencoder().fit(X, np.zeros(len(y)))
    with pytest.raises(TypeError, match="y: expected labels of one type, got int, str"):
        SupervisedAutoencoder().fit(X, ["a", 1] * 75)
    with pytest.raises(ValueError, match="at least two samples"):
        SupervisedAutoencoder().fit(X[:4], ["a", "b", "c", "d"])
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="no GPU"):
            SupervisedAutoencoder(device="cuda").fit(X, y)


def test_constant_features_are_not_selected():
    X, y = data()
    X[:, 0], X[:, 7] = 3.3, 0.0
    sae = SupervisedAutoencoder(5, head="linear", random_state=0).fit(X, y)
    assert not sae.support_[[0, 7]].any()


@pytest.mark.parametrize("head", ["network", "linear", "gaussian"])
@pytest.mark.parametrize("labels", ["numbers", "words"])
def test_files_and_pickles_give_the_same_bits(tmp_path, head, labels):
    X, y = data(classes=3)
    y = y if labels == "numbers" else np.array(["x", "yy", "zzz"])[y]
    options = {"class_weight": dict.fromkeys(np.unique(y).tolist(), 1.0), "hidden": (20, 10)}
    sae = SupervisedAutoencoder(6, head=head, random_state=0, **options).fit(X, y)
    sae.save(tmp_path / "sae.safetensors")
    for other in (SupervisedAutoencoder.load(tmp_path / "sae.safetensors"), pickle.loads(pickle.dumps(sae))):
        np.testing.assert_array_equal(sae.predict_proba(X), other.predict_proba(X))
        np.testing.assert_array_equal(sae.transform(X), other.transform(X))
        np.testing.assert_array_equal(sae.inverse_transform(X[:, :3]), other.inverse_transform(X[:, :3]))
        np.testing.assert_array_equal(sae.predict(X), other.predict(X))
        np.testing.assert_array_equal(sae.feature_importances_, other.feature_importances_)
        assert other.get_params() == sae.get_params()
        assert other.fit(X, y).predict_proba(X).tobytes() == sae.predict_proba(X).tobytes()


def damaged(kind, good, path):
    """Make a file that is no model, out of one that is."""
    from safetensors import safe_open
    from safetensors.torch import save_file

    content = good.read_bytes()
    with safe_open(good, "pt") as file:
        told = json.loads(file.metadata()["normball"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    match kind:
        case "truncated":
            path.write_bytes(content[: len(content) // 2])
        case "cut in the header":
            path.write_bytes(content[:100])
        case "random":
            path.write_bytes(np.random.default_rng(0).bytes(1000))
        case "text":
            path.write_text("sample,label\n")
        case "empty":
            path.write_bytes(b"")
        case "a folder":
            path.mkdir()
        case "of something else":
            save_file({"a": torch.zeros(1)}, path)
        case "metadata that are no JSON":
            save_file(tensors, path, metadata={"normball": "{half a"})
        case "metadata of something else":
            save_file(tensors, path, metadata={"normball": "[1]"})
        case "without a tensor":
            del tensors["scale"]
            save_file(tensors, path, metadata={"normball": json.dumps(told)})
        case "of another shape":
            tensors["mean"] = tensors["mean"][:-1].clone()
            save_file(tensors, path, metadata={"normball": json.dumps(told)})
        case "with a strange head":
            tensors["head/coef"] = tensors["head/coef"][:, :-1].clone()
            save_file(tensors, path, metadata={"normball": json.dumps(told)})
        case "without a parameter":
            del told["params"]
            save_file(tensors, path, metadata={"normball": json.dumps(told)})
        case "of another version":
            save_file(tensors, path, metadata={"normball": json.dumps(told | {"format": 99})})


DAMAGES = ["truncated", "cut in the header", "random", "text", "empty", "a folder", "missing", "of something else"]
DAMAGES += ["metadata that are no JSON", "metadata of something else", "without a tensor", "of another shape"]
DAMAGES += ["with a strange head", "without a parameter", "of another version"]


@pytest.mark.parametrize("kind", DAMAGES)
def test_a_file_that_is_no_model(tmp_path, kind):
    X, y = data()
    good, bad = tmp_path / "good", tmp_path / "bad"
    SupervisedAutoencoder(5, head="linear", epochs=1, random_state=0).fit(X, y).save(good)
    damaged(kind, good, bad)
    with pytest.raises(ValueError, match=r"path: expected a file that SupervisedAutoencoder\.save .*, got '.*bad' \("):
        SupervisedAutoencoder.load(bad)


@pytest.mark.parametrize("kind", ["truncated", "random", "empty", "a folder", "of something else", "as it is"])
def test_a_checkpoint_that_is_none(tmp_path, kind):
    X, y = data()
    good, bad = tmp_path / "good", tmp_path / "bad"
    sae = SupervisedAutoencoder(5, head="linear", epochs=1, random_state=0).fit(X, y)
    sae.save(good)
    damaged(kind, good, bad)
    bad = good if kind == "as it is" else bad  # a model is no checkpoint
    with pytest.raises(ValueError, match=r"checkpoint: expected a file that an unfinished fit .* \(.*\); remove it"):
        sae.set_params(checkpoint=bad).fit(X, y)
    assert bad.exists()


class StoppedError(Exception):
    pass


@pytest.mark.parametrize("descent", ["refit", "double", "projected"])
@pytest.mark.parametrize("after", [1, 7, 30])
def test_a_fit_goes_on_from_its_checkpoint_to_the_same_bits(tmp_path, descent, after):
    X, y = data()
    options = {"descent": descent, "random_state": 3, "batch_size": 64, "epochs": 6, "cv": 2}
    events = []
    whole = SupervisedAutoencoder(callback=events.append, **options).fit(X, y)
    file = tmp_path / "checkpoint"
    seen = []

    def stop(event):
        seen.append(event)
        if len(seen) == after:
            raise StoppedError

    try:
        SupervisedAutoencoder(checkpoint=file, callback=stop, **options).fit(X, y)
    except StoppedError:
        assert file.exists()
    rest = []
    resumed = SupervisedAutoencoder(checkpoint=file, callback=rest.append, **options).fit(X, y)
    assert not file.exists()
    if len(seen) == after:
        assert seen + rest == events
    assert resumed.transform(X).tobytes() == whole.transform(X).tobytes()
    assert resumed.predict_proba(X).tobytes() == whole.predict_proba(X).tobytes()


def test_a_checkpoint_of_other_data_is_refused(tmp_path):
    X, y = data()
    file = tmp_path / "checkpoint"

    def stop(event):
        raise StoppedError

    with pytest.raises(StoppedError):
        SupervisedAutoencoder(3, random_state=0, checkpoint=file, callback=stop).fit(X, y)
    with pytest.raises(ValueError, match="checkpoint: expected one of the same parameters and data"):
        SupervisedAutoencoder(3, random_state=0, checkpoint=file).fit(X + 1.0, y)


def test_a_table_on_a_disk_is_read_batch_by_batch(tmp_path):
    X, y = data(samples=300)
    file = np.memmap(tmp_path / "table", dtype="float64", mode="w+", shape=X.shape)
    file[:] = X
    file.flush()
    there = np.memmap(tmp_path / "table", dtype="float64", mode="r", shape=X.shape)
    one, other = (SupervisedAutoencoder(5, random_state=0).fit(A, y) for A in (X, there))
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(there), rtol=1e-9)


def test_a_warm_start_goes_on():
    X, y = data(samples=400)
    sae = SupervisedAutoencoder(5, head="linear", warm_start=True, random_state=0).fit(X[:40], y[:40])
    before = sae._layer.copy()
    sae.fit(X[40:80], y[40:80])
    fresh = SupervisedAutoencoder(5, head="linear", random_state=0).fit(X[40:80], y[40:80])
    assert not np.array_equal(sae._layer, fresh._layer)
    assert np.abs(sae._layer - before).max() < np.abs(before).max() * 2
    for start in range(80, 400, 80):
        sae.fit(X[start : start + 80], y[start : start + 80])
    assert sae.support_[:5].sum() >= 4


def test_double_rewinds_and_masked_does_not():
    X, y = data()
    common = {"head": "network", "random_state": 0, "epochs": 1, "learning_rate": 1e-12}
    double = SupervisedAutoencoder(6, descent="double", **common).fit(X, y)
    masked = SupervisedAutoencoder(6, descent="masked", **common).fit(X, y)
    np.testing.assert_array_equal(double.support_, masked.support_)
    start = double._layer  # a first descent that hardly moved
    kept = start[:, double.support_]
    there = double.network_.first.weight.detach().numpy()
    np.testing.assert_allclose(there, np.where(there != 0, kept, 0.0), atol=1e-9)  # initial values
    projected = project_l1inf(start, masked.radius_)[:, masked.support_]
    np.testing.assert_allclose(masked.network_.first.weight.detach().numpy(), projected, atol=1e-9)
