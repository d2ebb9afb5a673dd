from pathlib import Path

import numpy as np
import pytest

from normball.data import _numbers, make_omics


@pytest.fixture
def write(tmp_path):
    """Write text or bytes to a file and return its path."""

    def write(content, name="table.csv", encoding="utf-8"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode(encoding))
        return path

    return write


@pytest.fixture(params=["pyarrow", "plain"])
def engine(request, monkeypatch):
    """Both ways to turn text into numbers."""
    if request.param == "plain":
        monkeypatch.setattr(_numbers, "pyarrow", None)
    elif _numbers.pyarrow is None:
        pytest.skip("pyarrow is not installed")
    return request.param


@pytest.fixture
def made():
    return make_omics(30, 20, 3, missing=0.05, seed=3)


@pytest.fixture
def real():
    """The folder of real tables, beside the repository or, in a worktree of it, further up."""
    here = Path(__file__).resolve()
    for parent in here.parents[2:]:
        if (parent / "shared" / "data" / "PROVENANCE.md").is_file():
            return parent / "shared" / "data"
    return pytest.skip("the real tables are not here")


def same(table, other):
    np.testing.assert_array_equal(table.X, other.X)
    assert table.X.dtype == np.float32
    assert table.X.flags.c_contiguous
    assert table.feature_names == other.feature_names
    assert table.sample_ids == other.sample_ids
    assert (table.y is None) == (other.y is None)
    assert table.y is None or table.y.tolist() == other.y.tolist()
    return True
