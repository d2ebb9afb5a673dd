"""The device kernels of the family, interpreted or on the GPU itself, against the core in double precision."""

import math

import numpy as np
import pytest
import torch

import normball

pytest.importorskip("triton")
from normball.backends import cuda
from normball.backends.cuda import launch

DEVICE = "cpu" if launch.INTERPRETED else "cuda"
if DEVICE == "cuda" and not torch.cuda.is_available():
    pytest.skip("needs Triton's interpreter or a GPU", allow_module_level=True)

# Triton's interpreter computes with NumPy, which warns of infinities and of what is no number; a GPU does not.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning:triton.runtime.interpreter")

VECTORS = ("project_l1", "project_simplex", "project_l2", "prox_l1", "prox_l2", "prox_linf")
GROUPS = ("project_l12", "project_linf1", "project_linf2", "bilevel_l1inf", "bilevel_l11", "prox_l1inf", "prox_l12")
DTYPES = (torch.float64, torch.float32, torch.bfloat16)
# The interpreter is slow: there, what takes the same way through the kernels is tried once.
DISTINCT = [*VECTORS, *GROUPS] if DEVICE == "cuda" else ["project_l1", "project_l12", "bilevel_l1inf", "bilevel_l11"]
PARTS = (0.0, 1e-3, 0.3, 2.0)


def values(kind, *shape):
    rng = np.random.default_rng(7)
    normal = rng.normal(size=shape)
    made = {
        "normal": normal,
        "ties": np.round(2 * normal),
        "zeros": normal * (rng.random(shape) < 0.3),
        "heavy": np.sign(normal) * np.exp(4 * np.abs(normal)),
    }
    return torch.from_numpy(made[kind])


def compare(name, Y, radius, members, batch, note):
    """One operator on the device, and the same of the same rounded values by the core."""
    X = torch.full_like(Y, math.nan, device=DEVICE)
    C = torch.as_tensor(radius, dtype=torch.float64, device=DEVICE)
    theta = cuda.operate(name, Y.to(DEVICE), X, C, members, batch)
    assert theta is not None, note
    options = {"axis": tuple(members), "return_info": True}
    if name in GROUPS:
        options["batch_axis"] = tuple(batch) or None
    elif not batch:
        options["axis"] = None
    wide = Y.double().numpy()
    expected, told = getattr(normball, name)(wide, np.asarray(radius), **options)
    X = X.cpu()
    scale = max(float(np.abs(wide).max()), 1e-30)
    eps = torch.finfo(Y.dtype).eps
    units = 16 if Y.dtype == torch.float64 else 4  # sums of doubles have no wider type to go to
    assert X.dtype == Y.dtype
    got = X.double().numpy()
    np.testing.assert_allclose(got, expected, rtol=0, atol=units * eps * scale, err_msg=str(note))
    near = (1e-12 if Y.dtype == torch.float64 else torch.finfo(torch.float32).eps) * scale
    np.testing.assert_allclose(theta.cpu().numpy(), told.theta, rtol=0, atol=near, err_msg=str(note))
    return X, expected


@pytest.mark.parametrize(
    ("name", "kind"),
    [(name, kind) for name in DISTINCT for kind in ("ties", "zeros", "heavy")]
    + [(name, "normal") for name in (*VECTORS, *GROUPS)],
)
def test_equals_the_core(name, kind):
    for dtype in DTYPES if kind == "normal" else [torch.float32]:
        Y = values(kind, 9, 14).to(dtype)
        size = float(Y.double().abs().sum()) / 9
        for part in PARTS if dtype == torch.float32 and name in DISTINCT else PARTS[2:3]:
            members, batch = ([0, 1], []) if name in VECTORS else ([0], [])
            compare(name, Y, part * size, members, batch, (name, kind, dtype, part))


@pytest.mark.parametrize("name", DISTINCT)
def test_layouts_and_batches(name):
    Y = values("normal", 5, 6, 7).float()
    cases = {True: [([2], [0, 1]), ([0], [1, 2])], False: [([1], []), ([0, 2], []), ([2], [0]), ([0], [1])]}
    for tensor in (Y, Y.permute(2, 0, 1)[::2])[DEVICE == "cpu" :]:
        for members, batch in cases[name in VECTORS]:
            radii = np.linspace(0.2, 3.0, math.prod(tensor.shape[a] for a in batch)).reshape(
                [tensor.shape[a] for a in batch]
            )
            compare(name, tensor, radii if batch else 1.7, members, batch, (name, tuple(tensor.shape), members, batch))


def test_sums_stay_inside_after_rounding():
    Y = torch.from_numpy(np.random.default_rng(0).random((64, 40)) + 1.0).float()
    for name, norm in (("project_l1", normball.norm_l1), ("project_l12", normball.norm_l12)):
        members, options = ([0, 1], {}) if name == "project_l1" else ([0], {"axis": 0})
        X, _ = compare(name, Y, 3.0, members, [], name)
        assert norm(X.double().numpy(), **options) <= 3.0 * (1 + 4 * torch.finfo(torch.float32).eps)


@pytest.mark.parametrize("name", DISTINCT)
def test_points_inside_keep_their_bits_and_nonsense_shows(name):
    Y = values("normal", 4, 5).float()
    Y[0, 0] = -0.0
    members = [0, 1] if name in VECTORS else [0]
    X = torch.empty_like(Y, device=DEVICE)
    free = 0.0 if name.startswith("prox") else 1e4
    if name not in ("project_simplex", "prox_linf", "prox_l1inf"):
        cuda.operate(name, Y.to(DEVICE), X, torch.tensor(free, device=DEVICE, dtype=torch.float64), members, [])
        assert X.cpu().numpy().tobytes() == Y.numpy().tobytes()
    for bad, radius in ((math.nan, 1.0), (math.inf, 1.0), (0.5, -1.0)):
        Z = Y.clone()
        Z[2, 2] = bad
        cuda.operate(name, Z.to(DEVICE), X, torch.tensor(radius, device=DEVICE, dtype=torch.float64), members, [])
        assert X[2, 2].isnan(), (bad, radius)


@pytest.mark.skipif(DEVICE == "cpu", reason="too much for the interpreter")
@pytest.mark.parametrize("name", [*VECTORS, *GROUPS])
def test_large(name):
    Y = values("normal", 1500, 3000).float()
    for members, part in (([0], 0.01), ([0], 0.2), ([1], 0.05)):
        if name in VECTORS:
            compare(name, Y, part * float(Y.abs().sum()) / 50, [0, 1], [], (name, part))
        else:
            compare(name, Y, part * float(Y.abs().amax(members).sum()), members, [], (name, members, part))


@pytest.mark.skipif(DEVICE == "cpu", reason="the interpreter has one thread")
def test_many_problems_side_by_side():
    Y = torch.from_numpy(np.random.default_rng(1).normal(size=(300, 60, 70))).float()
    expected = normball.project_l1inf(Y, 4.0, axis=1, batch_axis=0)
    for _ in range(20):
        torch.testing.assert_close(normball.project_l1inf(Y.cuda(), 4.0, axis=1, batch_axis=0).cpu(), expected)
