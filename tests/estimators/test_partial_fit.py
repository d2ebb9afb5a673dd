"""Data that come in chunks."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from normball import L1InfBall
from normball.estimators import SupervisedAutoencoder
from normball.nn import LinearSchedule, NGroups

from .test_autoencoder import data


def streamed(sae, X, y, size=50, **options):
    for start in range(0, len(y), size):
        sae.partial_fit(X[start : start + size], y[start : start + size], classes=np.unique(y), **options)
    return sae


def test_chunks_find_the_features_and_learn():
    X, y = data(samples=800)
    sae = streamed(SupervisedAutoencoder(5, random_state=0), X[:600], y[:600])
    assert sae.support_.sum() == 5
    assert sae.support_[:5].sum() >= 4
    assert sae.score(X[600:], y[600:]) > 0.9
    np.testing.assert_allclose(sae._mean, X[:600].mean(0), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(sae._scale, X[:600].std(0), rtol=1e-9)
    first = SupervisedAutoencoder(5, random_state=0).partial_fit(X[:50], y[:50], classes=[0, 1])
    late, early = (each.predict_log_proba(X[600:])[np.arange(200), y[600:]].mean() for each in (sae, first))
    assert late > early
    assert sae.inverse_transform(sae.transform(X)).shape == X.shape
    changed = X.copy()
    changed[:, ~sae.support_] += 100.0
    np.testing.assert_array_equal(sae.predict_proba(X), sae.predict_proba(changed))


def test_the_same_bits_again_through_a_pickle_and_from_sparse_chunks():
    X, y = data(samples=200)
    X[np.abs(X) < 0.3] = 0.0
    whole = streamed(SupervisedAutoencoder(5, random_state=0), X, y)
    half = streamed(SupervisedAutoencoder(5, random_state=0), X[:100], y[:100])
    again = streamed(pickle.loads(pickle.dumps(half)), X[100:], y[100:])
    assert whole.predict_proba(X).tobytes() == again.predict_proba(X).tobytes()
    thin = streamed(SupervisedAutoencoder(5, random_state=0), sparse.csr_matrix(X), y)
    np.testing.assert_allclose(thin.predict_proba(X), whole.predict_proba(X), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    "options",
    [
        {"n_features_to_select": 5, "constraints": {"encoder.2.weight": L1InfBall(LinearSchedule(3.0, 0.5, steps=9))}},
        {"n_features_to_select": "auto", "cv": 2, "epochs": 2, "hidden": (9, 8), "activation": "relu"},
        {"radius": 0.05, "learning_rate": 0.02, "standardize": False},
        {"norm": None},
    ],
)
def test_a_stream_goes_on_from_its_file_to_the_same_bits(tmp_path, options):
    X, y = data(samples=200)
    whole = streamed(SupervisedAutoencoder(random_state=0, **options), X, y)
    half = streamed(SupervisedAutoencoder(random_state=0, **options), X[:100], y[:100])
    half.save(tmp_path / "half")
    again = streamed(SupervisedAutoencoder.load(tmp_path / "half"), X[100:150], y[100:150])
    again.save(tmp_path / "more")
    again = SupervisedAutoencoder.load(tmp_path / "more").partial_fit(X[150:], y[150:])
    assert again.predict_proba(X).tobytes() == whole.predict_proba(X).tobytes()
    assert again.transform(X).tobytes() == whole.transform(X).tobytes()
    assert again.feature_importances_.tobytes() == whole.feature_importances_.tobytes()
    assert again._stream.written()[0] == whole._stream.written()[0]
    assert half.predict_proba(X).tobytes() != whole.predict_proba(X).tobytes()  # there was something left to learn


def test_a_fit_after_a_stream_leaves_no_stream_in_the_file(tmp_path):
    X, y = data(samples=100)
    sae = streamed(SupervisedAutoencoder(5, random_state=0), X, y).fit(X, y)
    sae.save(tmp_path / "file")
    assert not hasattr(SupervisedAutoencoder.load(tmp_path / "file"), "_stream")


def test_a_chunk_may_lack_classes_and_be_small():
    X, y = data(samples=300, classes=3)
    names = np.array(["a", "b", "c"])[y]
    order = np.argsort(y[:60], kind="stable")  # one class after the other, at first
    X[:60], names[:60] = X[:60][order], names[:60][order]
    sae = SupervisedAutoencoder(6, random_state=0)
    for start, stop in ((0, 1), (1, 20), (20, 60), (60, 300)):
        sae.partial_fit(X[start:stop], names[start:stop], classes=["c", "a", "b"] if start == 0 else None)
    assert sae.classes_.tolist() == ["a", "b", "c"]
    assert sae.predict_proba(X).shape == (300, 3)
    assert sae.score(X, names) > 0.6


def test_weights_constraints_radii_and_no_norm():
    X, y = data(samples=100)
    heavy = np.r_[np.ones(50), np.zeros(50)]
    one = SupervisedAutoencoder(5, random_state=0).partial_fit(X, y, [0, 1], sample_weight=heavy)
    other = SupervisedAutoencoder(5, random_state=0).partial_fit(X[:50], y[:50], [0, 1])
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), rtol=1e-9)
    balls = {"encoder.2.weight": L1InfBall(NGroups(7))}
    held = streamed(SupervisedAutoencoder(5, constraints=balls, random_state=0), X, y)
    assert int(held.network_.encoder[2].weight.any(0).sum()) == 7
    assert streamed(SupervisedAutoencoder(radius=0.05, random_state=0), X, y).radius_ == 0.05
    assert streamed(SupervisedAutoencoder(norm=None, random_state=0), X, y).support_.all()
    auto = streamed(SupervisedAutoencoder(cv=2, epochs=2, random_state=0), X, y)
    assert auto.support_.sum() in auto.feature_path_["n_features"]
    before = auto._layer.copy()
    auto.fit(X, y)  # which begins anew
    fresh = SupervisedAutoencoder(cv=2, epochs=2, random_state=0).fit(X, y)
    np.testing.assert_array_equal(auto.predict_proba(X), fresh.predict_proba(X))
    assert not np.array_equal(before, auto.partial_fit(X[:50], y[:50])._layer)


def test_refusals():
    X, y = data(samples=60)
    sae = SupervisedAutoencoder(5, random_state=0)
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        sae.partial_fit(X, y)
    fitted = clone(sae).partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match=r"among the classes \[0, 1\], got \[2\]"):
        fitted.partial_fit(X, np.full(60, 2))
    with pytest.raises(ValueError, match="not the same as on last call"):
        fitted.partial_fit(X, y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="39 features"):
        fitted.partial_fit(X[:, :39], y)
    with pytest.raises(ValueError, match="at least two"):
        clone(sae).partial_fit(X, np.zeros(60), classes=[0])
    with pytest.raises(ValueError, match="of weight > 0, by its class"):
        clone(sae).set_params(class_weight={0: 0.0, 1: 0.0}).partial_fit(X, y, [0, 1])
    for options, name in (
        ({"head": "linear"}, "head"),
        ({"expand": "associated"}, "expand"),
        ({"class_weight": "balanced"}, "class_weight"),
    ):
        with pytest.raises(ValueError, match=f"{name}: expected .* with partial_fit"):
            SupervisedAutoencoder(5, **options).partial_fit(X, y, classes=[0, 1])
