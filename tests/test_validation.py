"""Each bad argument is refused by name, and nothing is written before it is."""

import math

import numpy as np
import pytest

import normball
from normball import _validate
from normball.reference import METHODS

Y = np.arange(12.0).reshape(3, 4) - 5.0
BATCH = np.arange(24.0).reshape(2, 3, 4)
_, INFO = normball.project_l1inf(Y, 2.0, return_info=True)


def with_entry(value, dtype=np.float64):
    array = Y.astype(dtype)
    array[1, 2] = value
    return array


BAD_VALUES = {
    "negative radius": (dict(radius=-1.0), "radius"),
    "least negative radius": (dict(radius=-5e-324), "radius"),
    "minus infinite radius": (dict(radius=-math.inf), "radius"),
    "nan radius": (dict(radius=math.nan), "radius"),
    "radius array without a batch": (dict(radius=np.ones(4)), "radius"),
    "radius array of the wrong shape": (dict(Y=BATCH, radius=np.ones(3), axis=1, batch_axis=0), "radius"),
    "radius of too many axes": (dict(Y=BATCH, radius=np.ones((1, 2)), axis=1, batch_axis=0), "radius"),
    "one negative radius of a batch": (dict(Y=BATCH, radius=[1.0, -1.0], axis=1, batch_axis=0), "radius"),
    "one nan radius of a batch": (dict(Y=BATCH, radius=[math.nan, 1.0], axis=1, batch_axis=0), "radius"),
    "nan entry": (dict(Y=with_entry(math.nan)), "Y"),
    "infinite entry": (dict(Y=with_entry(math.inf)), "Y"),
    "minus infinite entry": (dict(Y=with_entry(-math.inf)), "Y"),
    "float32 nan entry": (dict(Y=with_entry(math.nan, np.float32)), "Y"),
    "float16 infinite entry": (dict(Y=with_entry(math.inf, np.float16)), "Y"),
    "complex nan entry": (dict(Y=with_entry(complex(0, math.nan), np.complex128)), "Y"),
    "complex infinite entry": (dict(Y=with_entry(complex(math.inf, 0), np.complex64)), "Y"),
    "nan entry and radius 0": (dict(Y=with_entry(math.nan), radius=0.0), "Y"),
    "nan entry and infinite radius": (dict(Y=with_entry(math.nan), radius=math.inf), "Y"),
    "no axes in Y": (dict(Y=np.float64(3.0)), "Y"),
    "axis beyond the last": (dict(axis=2), "axis"),
    "axis before the first": (dict(axis=-3), "axis"),
    "axis beyond the last in a tuple": (dict(axis=(0, 5)), "axis"),
    "repeated axis": (dict(axis=(0, 0)), "axis"),
    "repeated axis under two names": (dict(axis=(1, -1)), "axis"),
    "no axis": (dict(axis=()), "axis"),
    "batch_axis beyond the last": (dict(Y=BATCH, axis=1, batch_axis=3), "batch_axis"),
    "repeated batch_axis": (dict(Y=BATCH, axis=1, batch_axis=(0, 0)), "batch_axis"),
    "batch_axis that is an axis": (dict(Y=BATCH, axis=1, batch_axis=1), "batch_axis"),
    "batch_axis that is an axis from the end": (dict(Y=BATCH, axis=(0, 2), batch_axis=(1, -1)), "batch_axis"),
    "out of the wrong shape": (dict(out=np.empty((4, 3))), "out"),
    "out of too few axes": (dict(out=np.empty(12)), "out"),
    "read-only out": (dict(out=np.broadcast_to(np.zeros(4), (3, 4))), "out"),
    "unknown method": (dict(method="bisection"), "method"),
    "no threads": (dict(threads=0), "threads"),
    "negative threads": (dict(threads=-2), "threads"),
    "radius beyond all floats": (dict(radius=10**400), "radius"),
    "out of one row for all": (dict(out=np.lib.stride_tricks.as_strided(np.empty(4), (3, 4), (0, 8))), "out"),
    "out of rows that overlap": (dict(out=np.lib.stride_tricks.as_strided(np.empty(6), (3, 4), (8, 8))), "out"),
    "warm_start of another shape": (dict(Y=np.ones((3, 5)), warm_start=INFO), "warm_start"),
    "warm_start of another axis": (dict(axis=1, warm_start=INFO), "warm_start"),
}

BAD_TYPES = {
    "object entries": (dict(Y=Y.astype(object)), "Y"),
    "strings": (dict(Y=np.array([["a", "b"]])), "Y"),
    "dates": (dict(Y=np.array([["2020-01-01"]], dtype="datetime64[D]")), "Y"),
    "records": (dict(Y=np.zeros((2, 2), dtype=[("a", float), ("b", float)])), "Y"),
    "radius that is a string": (dict(radius="1"), "radius"),
    "no radius": (dict(radius=None), "radius"),
    "complex radius": (dict(radius=1 + 0j), "radius"),
    "out of another dtype": (dict(out=np.empty((3, 4), dtype=np.float32)), "out"),
    "out of integers": (dict(Y=np.ones((3, 4), dtype=int), out=np.empty((3, 4), dtype=int)), "out"),
    "out with a mask": (dict(out=np.ma.zeros((3, 4))), "out"),
    "out that is a list": (dict(out=[[0.0] * 4] * 3), "out"),
    "warm_start that is a number": (dict(warm_start=1.0), "warm_start"),
    "warm_start that is a dict": (dict(warm_start={"theta": 1.0}), "warm_start"),
}


def call(arguments):
    arguments = {"Y": Y, "radius": 1.0} | arguments
    return normball.project_l1inf(arguments.pop("Y"), arguments.pop("radius"), **arguments)


def test_the_good_call_passes():
    assert call({}).shape == Y.shape


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", BAD_VALUES)
def test_bad_values(name, method):
    arguments, word = BAD_VALUES[name]
    with pytest.raises(ValueError, match=rf"\b{word}\b"):
        call({"method": method} | arguments)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", BAD_TYPES)
def test_bad_types(name, method):
    arguments, word = BAD_TYPES[name]
    with pytest.raises(TypeError, match=rf"\b{word}\b"):
        call({"method": method} | arguments)


def test_messages_stay_short():
    with pytest.raises(ValueError, match="radius") as error:
        call({"radius": -(10**4000)})
    assert len(str(error.value)) < 200


@pytest.mark.parametrize("wanted", [1, 0, np.True_, np.False_])
def test_check_finite_is_anything_true_or_false(wanted):
    array = with_entry(math.nan)
    if wanted:
        with pytest.raises(ValueError, match=r"\bY\b"):
            call({"Y": array, "check_finite": wanted})
    else:
        X, info = call({"Y": array, "check_finite": wanted, "return_info": True})
        assert np.isnan(X).all()
        assert info.n_nonzero == 4


@pytest.mark.parametrize("value", ["0", "-1", "1.5", "many"])
def test_the_environment_is_checked(value, monkeypatch):
    _validate._default_threads.cache_clear()
    with monkeypatch.context() as patch:
        patch.setenv("NORMBALL_NUM_THREADS", value)
        with pytest.raises(ValueError, match="NORMBALL_NUM_THREADS"):
            call({})
        patch.setenv("NORMBALL_NUM_THREADS", "9" * 30)
        assert _validate.thread_count(None) == _validate.thread_count(10**9)
    _validate._default_threads.cache_clear()


@pytest.mark.parametrize("value", [[[1.0]], np.arange(4).reshape(2, 2)])
def test_what_cannot_be_written_in_place(value):
    with pytest.raises(TypeError, match=r"\bY\b"):
        normball.project_l1inf_(value, 1.0)


@pytest.mark.parametrize("threads", [1.5, "2", [2]])
def test_threads_must_be_an_integer(threads):
    with pytest.raises((TypeError, ValueError), match=r"\bthreads\b"):
        call({"threads": threads})


@pytest.mark.parametrize("axis", [0.5, "0", None, (0.5,)])
def test_axis_must_be_an_integer(axis):
    with pytest.raises((TypeError, ValueError), match=r"\baxis\b"):
        call({"axis": axis})


@pytest.mark.parametrize("nothing", [None, {}, object(), [[1.0, 2.0], [3.0]]])
def test_what_is_no_array(nothing):
    with pytest.raises((TypeError, ValueError), match=r"\bY\b"):
        call({"Y": nothing})


def test_an_unknown_method_is_told_the_known():
    with pytest.raises(ValueError, match="method") as error:
        call({"method": "bisection"})
    assert all(method in str(error.value) for method in (*METHODS, "bisection"))


def test_errors_say_what_came():
    with pytest.raises(ValueError, match="-1"):
        call({"radius": -1.0})
    with pytest.raises(ValueError, match=r"\(4, 3\)"):
        call({"out": np.empty((4, 3))})
    with pytest.raises(TypeError, match="float32"):
        call({"out": np.empty((3, 4), dtype=np.float32)})
    with pytest.raises(TypeError, match="object"):
        call({"Y": Y.astype(object)})


@pytest.mark.parametrize("name", [name for name, (bad, _) in (BAD_VALUES | BAD_TYPES).items() if "out" not in bad])
def test_out_is_untouched_by_an_error(name):
    arguments, _ = (BAD_VALUES | BAD_TYPES)[name]
    values = np.asarray(arguments.get("Y", Y))
    kind = values.dtype if values.dtype.kind in "fc" else np.dtype(np.float64)
    out = np.full(values.shape, 77, dtype=kind)
    with pytest.raises((TypeError, ValueError)):
        call(arguments | {"out": out})
    assert np.all(out == 77)


@pytest.mark.parametrize("method", METHODS)
def test_a_bad_value_leaves_an_in_place_matrix_as_it_was(method):
    W = np.random.default_rng(0).normal(size=(400, 300))
    W[-1, -1] = math.nan
    before = W.copy()
    with pytest.raises(ValueError, match=r"\bY\b"):
        normball.project_l1inf(W, 3.0, out=W, method=method)
    assert W.tobytes() == before.tobytes()


def test_read_only_out_in_place():
    W = Y.copy()
    W.flags.writeable = False
    with pytest.raises(ValueError, match=r"\bout\b"):
        normball.project_l1inf(W, 1.0, out=W)


def test_numpy_scalars_and_integers_are_radii():
    X = normball.project_l1inf(Y, 2.0)
    for radius in (2, np.float32(2), np.int64(2), np.array(2.0), np.float16(2)):
        assert np.array_equal(normball.project_l1inf(Y, radius), X)
    assert np.array_equal(normball.project_l1inf(Y, 2.0, axis=np.int64(0)), X)
    assert np.array_equal(normball.project_l1inf(Y, 2.0, threads=np.int64(1)), X)


@pytest.mark.parametrize("norm", [normball.norm_l1inf, normball.norm_linf1])
def test_the_norms_refuse_alike(norm):
    for axis in (2, -3, (0, 0)):
        with pytest.raises(ValueError, match=r"\baxis\b"):
            norm(Y, axis=axis)
    with pytest.raises(TypeError, match=r"\bY\b"):
        norm(Y.astype(object))
    with pytest.raises(ValueError, match=r"\bY\b"):
        norm(3.0)
