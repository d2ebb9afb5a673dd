"""Arrays that nobody thought of."""

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from .judge import assert_close, assert_optimal, rounding
from .registry import CASES, EUCLIDEAN, NORM_BALLS

every_case = pytest.mark.parametrize("case", CASES, ids=str)

ordinary = st.floats(-1e6, 1e6, allow_subnormal=False)
few_values = st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 1e-9, 1e9])
parts = st.one_of(st.floats(1e-9, 1.5), st.sampled_from([1e-12, 0.5, 1.0]))


def matrices(elements, width=64, most=12):
    dtype = np.dtype(f"float{width}")
    return hnp.arrays(dtype, hnp.array_shapes(min_dims=2, max_dims=2, max_side=most), elements=elements)


@st.composite
def arrays_with_axes(draw, max_dims=4):
    shape = draw(hnp.array_shapes(min_dims=1, max_dims=max_dims, min_side=0, max_side=6))
    Y = draw(hnp.arrays(np.float64, shape, elements=st.one_of(ordinary, few_values)))
    order = draw(st.permutations(range(len(shape))))
    count = draw(st.integers(1, len(shape)))
    batches = draw(st.integers(0, len(shape) - count))
    signed = [a - len(shape) if draw(st.booleans()) else a for a in order]
    steps = tuple(slice(None, None, draw(st.sampled_from([1, 1, -1, 2]))) for _ in shape)
    Y = np.transpose(Y, draw(st.permutations(range(len(shape)))))[steps]
    return Y, tuple(signed[:count]), tuple(sorted(a % len(shape) for a in signed[count : count + batches]))


@every_case
@given(Y=st.one_of(matrices(ordinary), matrices(few_values)), part=parts)
def test_equals_the_oracle(case, Y, part):
    radius = part * case.exact_norm(Y, 0)
    X = case.project(Y, radius)
    expected, _ = case.oracle(Y, radius, 0)
    assert_close(case, X, expected, Y)
    if radius > 0:
        assert_optimal(case, Y, X, radius)


@every_case
@given(Y=matrices(st.floats(-1e4, 1e4, width=32), width=32), part=parts)
def test_single_precision(case, Y, part):
    radius = part * case.exact_norm(Y, 0)
    X = case.project(Y, radius)
    assert_close(case, X, case.oracle(Y, radius, 0)[0], Y)
    if radius > 0:
        assert_optimal(case, Y, X, radius)


@every_case
@given(Y=matrices(st.floats(-6e4, 6e4, width=16), width=16), part=parts)
def test_half_precision(case, Y, part):
    radius = part * case.exact_norm(Y, 0)
    assume(case.of_a_norm or radius <= 65504.0)  # an entry may be as large
    X = case.project(Y, radius)
    assert_close(case, X, case.oracle(Y, radius, 0)[0], Y)
    if radius > 0:
        assert_optimal(case, Y, X, radius)


@pytest.mark.parametrize("case", NORM_BALLS, ids=str)
@given(Y=matrices(st.floats(allow_nan=False, allow_infinity=False), most=6), exponent=st.floats(-323, 308))
@example(Y=np.ones((1, 4)), exponent=-323.0)  # caps of which a double holds nothing
def test_the_whole_range_of_floats(case, Y, exponent):
    radius = 10.0**exponent
    X = case.project(Y, radius)
    expected, _ = case.oracle(Y, radius, 0)
    assert np.isfinite(X).all()
    scale = float(np.abs(Y).max())
    with np.errstate(over="ignore"):
        worst = float(np.abs(X - expected).max())
    assert worst <= scale * rounding(Y.dtype, Y.shape[0]) + 5e-324
    bound = np.longdouble(radius) * (1 + 4 * np.finfo(float).eps)
    assert case.wide_norm(X, 0) <= bound + np.longdouble(5e-324)


@every_case
@given(drawn=arrays_with_axes(), part=parts)
def test_any_axes_batches_and_strides(case, drawn, part):
    Y, axis, batch_axis = drawn
    before = Y.copy()
    ndim = Y.ndim
    batch_shape = tuple(Y.shape[a] for a in batch_axis)
    first = np.moveaxis(Y, batch_axis, range(len(batch_axis)))
    inner = tuple(sorted(a % ndim - sum(b < a % ndim for b in batch_axis) for a in axis))
    radii = np.array([part * case.exact_norm(np.array(first[i]), inner) for i in np.ndindex(batch_shape)])
    radii = radii.reshape(batch_shape)
    X = case.project(Y, radii if batch_axis else float(radii), axis=axis, batch_axis=batch_axis or None)
    assert X.shape == Y.shape
    assert np.array_equal(Y, before)
    got = np.moveaxis(X, batch_axis, range(len(batch_axis)))
    for i in np.ndindex(batch_shape):
        one = np.array(first[i])
        if one.size:
            expected = case.oracle(one, float(radii[i]), inner)[0]
            assert_close(case, np.array(got[i]), expected, one, inner, note=f"problem {i}")


@pytest.mark.parametrize("case", EUCLIDEAN, ids=str)
@given(Y=matrices(ordinary), shift=ordinary, part=st.floats(1e-6, 1.2))
def test_nearer_inputs_give_nearer_results(case, Y, shift, part):
    radius = part * case.exact_norm(Y, 0)
    Q = Y.copy()
    Q.flat[0] += shift
    P = case.project(Y, radius) - case.project(Q, radius)
    slack = 64 * rounding(Y.dtype, Y.shape[0]) * max(np.abs(Y).max(), np.abs(Q).max()) * np.sqrt(Y.size)
    assert np.linalg.norm(P) <= np.linalg.norm(Y - Q) + slack
