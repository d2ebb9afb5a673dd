"""Where the result goes: a new array, `out`, the input itself, or something that overlaps it."""

import numpy as np
import pytest

from normball.backends import steps

from .data import LAYOUTS, matrix
from .judge import assert_close, assert_optimal
from .registry import CASES, L1INF

every_case = pytest.mark.parametrize("case", CASES, ids=str)

DTYPES = ("float64", "float32", "float16", "complex64", "complex128")
SHAPES = ((1, 1), (12, 19), (65, 33), (130, 260))
RADIUS_PARTS = (1e-3, 0.4, 2.0)  # the last is an interior point


def values(shape, dtype):
    Y = matrix("normal", shape).astype(dtype)
    return Y * np.exp(1j * matrix("uniform", shape)).astype(dtype) if Y.dtype.kind == "c" else Y


def skip_if_real_only(case, dtype):
    if "complex" in dtype and not case.of_a_norm:
        pytest.skip("real numbers only")


def parts_of(case, *parts):
    """Without the infinite radius, which no simplex has."""
    return [part for part in parts if case.of_a_norm or part < np.inf]


def writable_layouts():
    return [name for name in LAYOUTS if name != "read_only"]


@every_case
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_new_array_comes_back_and_the_input_stays(case, dtype):
    skip_if_real_only(case, dtype)
    for shape in SHAPES:
        Y = values(shape, dtype)
        before = Y.copy()
        for part in parts_of(case, 0.0, *RADIUS_PARTS, np.inf):
            radius = part * case.exact_norm(Y, 0)
            X = case.project(Y, radius)
            assert X is not Y
            assert not np.shares_memory(X, Y)
            assert X.flags.writeable
            assert X.shape == Y.shape
            assert X.dtype == Y.dtype
            assert type(X) is np.ndarray
            X[...] = 7
            assert Y.tobytes() == before.tobytes()


@every_case
@pytest.mark.parametrize("layout", writable_layouts())
@pytest.mark.parametrize("dtype", DTYPES)
def test_out_in_any_layout(case, dtype, layout):
    skip_if_real_only(case, dtype)
    for shape in SHAPES:
        Y = values(shape, dtype)
        for axis in (0, 1):
            for part in (0.0, *RADIUS_PARTS):
                radius = part * case.exact_norm(Y, axis)
                out = LAYOUTS[layout](np.full(shape, 77, dtype=dtype))
                assert case.project(Y, radius, axis=axis, out=out) is out
                expected = case.project(Y, radius, axis=axis)
                expected = expected.astype(np.result_type(dtype, np.float64))
                assert_close(case, out, expected, Y, axis, note=f"{shape} {axis} {part}")


@every_case
@pytest.mark.parametrize("layout", ["steps", "window", "mixed"])
def test_nothing_is_written_beside_out(case, layout):
    Y = values((31, 45), "float64")
    for axis in (0, 1):
        for part in RADIUS_PARTS:
            out = LAYOUTS[layout](np.zeros(Y.shape))
            around = out.base
            while around.base is not None:
                around = around.base
            case.project(Y, part * case.exact_norm(Y, axis), axis=axis, out=out)
            assert np.count_nonzero(~np.isnan(around)) == out.size


@every_case
@pytest.mark.parametrize("layout", writable_layouts())
@pytest.mark.parametrize("dtype", DTYPES)
def test_in_place(case, dtype, layout):
    skip_if_real_only(case, dtype)
    for shape in SHAPES:
        Y = values(shape, dtype)
        for axis in (0, 1):
            for part in (0.0, *RADIUS_PARTS):
                radius = part * case.exact_norm(Y, axis)
                expected = case.project(Y, radius, axis=axis).astype(np.result_type(dtype, np.float64))
                W = LAYOUTS[layout](Y)
                assert case.project(W, radius, axis=axis, out=W) is W
                assert_close(case, W, expected, Y, axis, note=f"{shape} {axis} {part}")
                if part > 0:
                    assert_optimal(case, Y, np.array(W), radius, axis)


@every_case
@pytest.mark.parametrize("dtype", DTYPES[:2])
def test_results_that_are_zeros_to_begin_with(case, dtype, monkeypatch):
    """As those are that come fresh from the system: what stays zero in them is not written, and all else is."""
    for shape in SHAPES[1:3]:
        for Y in (values(shape, dtype), values(shape[::-1], dtype).T, values(shape, dtype)[::-1]):
            for axis in (0, 1):
                for part in (0.0, 0.02, *RADIUS_PARTS):
                    radius = part * case.exact_norm(Y, axis)
                    expected = case.project(Y, radius, axis=axis)
                    with monkeypatch.context() as patch:
                        patch.setattr(steps, "FRESH_BYTES", 1)
                        X = case.project(Y, radius, axis=axis)
                    assert np.array_equal(X, expected), f"{shape} {axis} {part}"
                    assert X.strides == expected.strides


@pytest.mark.parametrize("case", [case for case in CASES if str(case) in ("l1inf-newton", "bilevel_l11")], ids=str)
@pytest.mark.parametrize("axis", [0, 1])
def test_results_that_go_past_the_cache(case, axis, monkeypatch):
    """They are written round it: to a new array of zeros, to one of anything else, and in place."""
    shape = (2049, 2048)
    Y = values(shape, "float32")
    radius = 1e-3 * case.exact_norm(Y, axis)
    out = np.full(shape, 77, dtype="float32")
    case.project(Y, radius, axis=axis, out=out)
    assert_optimal(case, Y, out, radius, axis)
    monkeypatch.setattr(steps, "FRESH_BYTES", 1)
    assert np.array_equal(case.project(Y, radius, axis=axis), out)
    assert np.array_equal(case.project(Y, radius, axis=axis, out=Y), out)


@every_case
@pytest.mark.parametrize("axis", [0, 1])
def test_results_of_more_than_one_large_page(case, axis):
    """Their pages are touched before they are written: no byte may be hit that is still to be read, or not of `out`."""
    shape = (620, 512)
    Y = values(shape, "float64")
    radius = 0.2 * case.exact_norm(Y, axis)
    X = case.project(Y, radius, axis=axis)
    assert_optimal(case, Y, X, radius, axis)
    around = np.full((2 * shape[0] + 2, shape[1] + 3), np.nan)
    places = {
        "window": around[1 : shape[0] + 1, :-3],
        "every other row": around[1 : 2 * shape[0] : 2, :-3],
        "rows reversed": np.full(shape, np.nan)[::-1],
        "transposed": np.full(shape[::-1], np.nan).T,
    }
    for name, out in places.items():
        around[...] = np.nan
        case.project(Y, radius, axis=axis, out=out)
        assert_close(case, out, X, Y, axis, note=name)
        assert np.isfinite(out.base).sum() == out.size, name
    both = np.concatenate([Y, np.full(shape, np.nan)])
    halves = both[: shape[0]], both[shape[0] :]
    case.project(halves[0], radius, axis=axis, out=halves[1])
    assert halves[0].tobytes() == Y.tobytes()
    assert_close(case, halves[1], X, Y, axis, note="second half")
    case.project(halves[0], radius, axis=axis, out=halves[0])
    assert_close(case, halves[0], X, Y, axis, note="in place")


@every_case
@pytest.mark.parametrize("axis", [0, 1])
def test_out_that_overlaps_the_input(case, axis):
    start = values((40, 40), "float64")
    buffer = np.zeros((43, 42))
    overlaps = {
        "rows reversed": lambda W: (W[:40, :40], W[:40, :40][::-1]),
        "columns reversed": lambda W: (W[:40, :40], W[:40, :40][:, ::-1]),
        "transposed": lambda W: (W[:40, :40], W[:40, :40].T),
        "shifted down": lambda W: (W[:40, :40], W[3:, :40]),
        "shifted up": lambda W: (W[3:, :40], W[:40, :40]),
        "shifted aside": lambda W: (W[:40, 2:], W[:40, :40]),
    }
    for part in RADIUS_PARTS:
        radius = part * case.exact_norm(start, axis)
        expected = case.project(start, radius, axis=axis)
        for name, pick in overlaps.items():
            W = buffer.copy()
            Y, out = pick(W)
            Y[...] = start
            assert case.project(Y, radius, axis=axis, out=out) is out
            assert_close(case, out, expected, start, axis, note=f"{name} {part}")


@every_case
def test_lists_integers_and_booleans_are_promoted(case):
    rows = [[3, -1, 4], [1, -5, 9]]
    expected, _ = case.oracle(np.array(rows, dtype=np.float64), 5.0, 0)
    for Y in (
        rows,
        tuple(map(tuple, rows)),
        *(np.array(rows, dtype=kind) for kind in ("int8", "int32", "int64", "i2")),
    ):
        X = case.project(Y, 5)
        assert X.dtype == np.float64
        assert_close(case, X, expected, expected * 0 + 9)
    flags = np.array([[True, False, True], [True, True, False]])
    expected, _ = case.oracle(flags.astype(np.float64), 0.5, 0)
    X = case.project(flags, 0.5)
    assert X.dtype == np.float64
    assert_close(case, X, expected, flags.astype(np.float64))
    unsigned = np.array([[200, 3], [7, 255]], dtype=np.uint8)
    assert_close(case, case.project(unsigned, 30.0), case.oracle(unsigned, 30.0, 0)[0], unsigned.astype(np.float64))
    counts = np.array([[2, -7], [3, 1]])
    out = np.empty((2, 2))
    assert case.project(counts, 3.0, out=out) is out
    assert_close(case, out, case.oracle(counts, 3.0, 0)[0], out * 0 + 7)


@pytest.mark.parametrize("case", L1INF, ids=str)
def test_one_dimension(case):
    """One group, whose cap is the radius; or as many groups as entries."""
    y = np.array([3.0, -1.0, 2.0, -5.0])
    assert_close(case, case.project(y, 2.5, axis=0), np.array([2.5, -1.0, 2.0, -2.5]), y)
    Y = np.array([[3.0, -1.0, 2.0, -5.0]])
    assert_close(case, case.project(Y, 2.0, axis=0), case.oracle(Y, 2.0, 0)[0], Y)


@every_case
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_by_modulus(case, dtype):
    skip_if_real_only(case, dtype)
    rng = np.random.default_rng(9)
    for shape in [(1, 1), (7, 5), (64, 33), (130, 70)]:
        phase = rng.uniform(-np.pi, np.pi, size=shape)
        Y = (rng.normal(size=shape) * np.exp(1j * phase)).astype(dtype)
        Y.flat[0] = 0
        for axis in (0, 1):
            for part in (1e-6, 0.1, 0.7):
                radius = part * case.exact_norm(Y, axis)
                X = case.project(Y, radius, axis=axis)
                assert_optimal(case, Y, X, radius, axis)
                if radius > 0:
                    assert_close(case, X, case.oracle(Y, radius, axis)[0], Y, axis)


@every_case
def test_foreign_byte_order_is_read_right_or_refused(case):
    Y = matrix("normal", (9, 8))
    foreign = Y.astype(Y.dtype.newbyteorder())
    try:
        X = case.project(foreign, 2.0)
    except TypeError:
        with pytest.raises(TypeError, match=r"\bY\b"):
            case.project(foreign, 2.0)
    else:
        assert_close(case, X.astype(np.float64), case.project(Y, 2.0), Y)
