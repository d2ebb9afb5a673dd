"""Balls on other layers than the first, and the projected descent that starts from its last theta."""

import json

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from normball import BilevelBall, L1InfBall, L12Ball
from normball.balls import BALLS
from normball.balls.sparsity import SPARSIFYING
from normball.estimators import SupervisedAutoencoder
from normball.estimators._written import constraints_of, told
from normball.nn import CosineSchedule, CubicSchedule, LinearSchedule, NGroups

from .test_autoencoder import StoppedError, data


@pytest.mark.parametrize("descent", ["refit", "double", "masked", "projected", None])
def test_balls_on_other_layers_hold(descent):
    X, y = data()
    balls = {"encoder.2.weight": L1InfBall(NGroups(7)), r"decoder\.2\..*ight": L12Ball(0.4, axis=1)}
    options = {"norm": None} if descent is None else {"n_features_to_select": 6, "descent": descent}
    sae = SupervisedAutoencoder(head="network", epochs=5, constraints=balls, random_state=0, **options).fit(X, y)
    neurons = sae.network_.encoder[2].weight.detach()
    assert int(neurons.any(0).sum()) == 7
    assert balls[r"decoder\.2\..*ight"].contains(sae.network_.decoder[2].weight.detach())
    free = SupervisedAutoencoder(head="network", epochs=5, random_state=0, **options).fit(X, y)
    assert free.network_.encoder[2].weight.detach().any(0).all()


def test_constraints_that_cannot_be():
    X, y = data()
    ball = L1InfBall(1.0)
    for asked, error, match in [
        ({"encoder.1.weight": ball}, ValueError, r"constraints: .*near names: .*encoder\.2\.weight"),
        ({"encoder.0.weight": ball}, ValueError, "constraints: expected other weights than encoder"),
        ({(torch.nn.Linear, "weight"): ball}, ValueError, "constraints: expected other weights"),
        ({"encoder.2.weight": 0.3}, TypeError, r"constraints: expected a ball for encoder\.2\.weight, got 0\.3"),
        ({"encoder.2.weight": L1InfBall(1.0, axis=2)}, ValueError, r"constraints: encoder\.2\.weight: axis: "),
        ([ball], TypeError, "constraints: expected a mapping"),
    ]:
        with pytest.raises(error, match=match):
            SupervisedAutoencoder(constraints=asked).fit(X, y)


RADII = st.one_of(
    st.floats(0.0, 1e300), st.floats(0.1, 5.0).map(np.float32), st.integers(1, 9).map(np.int64),
    st.builds(LinearSchedule, st.floats(1.0, 9.0), st.floats(0.1, 1.0), st.integers(0, 99)),
    st.builds(CosineSchedule, st.floats(1.0, 9.0), st.just(0.5), st.just(10)),
)  # fmt: skip
GROUPS = st.sampled_from([NGroups(7), NGroups(0.25), NGroups(CubicSchedule(90, 3, steps=7))])


@given(st.sampled_from(sorted(BALLS)), RADII | GROUPS, st.sampled_from([0, 1, -1, (0, 1)]))
def test_every_ball_comes_back_from_json(name, radius, axis):
    if isinstance(radius, NGroups):
        assume(name in SPARSIFYING)
    balls = {
        "encoder.2.weight": BALLS[name](radius, axis=axis),
        (torch.nn.Linear, "bias"): BALLS[name](2),
        "decoder.0.weight": (name, radius),
    }
    again = constraints_of(json.loads(json.dumps(told(balls))))
    assert again == balls
    assert list(map(repr, again)) == list(map(repr, balls))


def test_constraints_come_back_from_a_file(tmp_path):
    X, y = data()
    balls = {"encoder.2.weight": ("l1inf", NGroups(0.07)), r"decoder\.2\..*ight": BilevelBall(0.4, axis=1, inner="l2")}
    sae = SupervisedAutoencoder(6, head="network", epochs=3, constraints=balls, random_state=0).fit(X, y)
    sae.save(tmp_path / "file")
    assert int(sae.network_.encoder[2].weight.any(0).sum()) == 7
    again = SupervisedAutoencoder.load(tmp_path / "file")
    assert again.get_params() == sae.get_params()
    assert again.predict_proba(X).tobytes() == sae.predict_proba(X).tobytes()
    assert again.fit(X, y).transform(X).tobytes() == sae.transform(X).tobytes()


def test_constraints_that_no_file_can_hold(tmp_path):
    class Mine(L1InfBall):
        pass

    class Layer(torch.nn.Linear):
        pass

    X, y = data()
    sae = SupervisedAutoencoder(6, head="linear", epochs=1, random_state=0).fit(X, y)
    for asked, match in [
        ({"encoder.2.weight": Mine(1.0)}, r"save: expected constraints that are balls of normball.*Mine"),
        ({"encoder.2.weight": L1InfBall(np.ones(3))}, r"save: .*number or a rule.*array"),
        ({(Layer, "bias"): L1InfBall(1.0)}, r"save: expected constraints on modules of torch\.nn, got Layer"),
    ]:
        with pytest.raises(TypeError, match=match):
            sae.set_params(constraints=asked).save(tmp_path / "file")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("after", [3, 8])
def test_constraints_and_warm_starts_go_on_from_a_checkpoint(tmp_path, after):
    X, y = data()
    options = {
        "descent": "projected", "head": "network", "batch_size": 64, "epochs": 6, "random_state": 3,
        "constraints": {"encoder.2.weight": L1InfBall(LinearSchedule(3.0, 0.5, steps=12))},
    }  # fmt: skip
    whole = SupervisedAutoencoder(6, **options).fit(X, y)
    seen = []

    def stop(event):
        seen.append(event)
        if len(seen) == after:
            raise StoppedError

    with pytest.raises(StoppedError):
        SupervisedAutoencoder(6, checkpoint=tmp_path / "file", callback=stop, **options).fit(X, y)
    with pytest.raises(ValueError, match="checkpoint: expected one of the same parameters"):
        SupervisedAutoencoder(6, checkpoint=tmp_path / "file", **options | {"constraints": None}).fit(X, y)
    resumed = SupervisedAutoencoder(6, checkpoint=tmp_path / "file", **options).fit(X, y)
    assert resumed.transform(X).tobytes() == whole.transform(X).tobytes()


def test_the_projected_descent_starts_from_its_last_theta(monkeypatch):
    from normball.nn.constrain import L1InfBall as Ball

    starts = []
    project = Ball.project

    def watched(self, Y, **options):
        if Y.is_meta:  # a trial of the shape
            return project(self, Y, **options)
        starts.append(options.get("warm_start"))
        X, info = project(self, Y, **options)
        starts.append(info)
        return X, info

    X, y = data()
    plain = SupervisedAutoencoder(6, descent="projected", head="network", epochs=4, random_state=0).fit(X, y)
    monkeypatch.setattr(Ball, "project", watched)
    sae = SupervisedAutoencoder(6, descent="projected", head="network", epochs=4, random_state=0).fit(X, y)
    assert starts[0] is None
    assert starts[2::2] == starts[1:-1:2]  # each from the one before
    assert len(starts) == 8
    np.testing.assert_array_equal(plain.transform(X), sae.transform(X))
    assert sae.support_.sum() == 6
