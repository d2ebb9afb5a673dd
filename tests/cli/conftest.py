import pytest

from normball.data import make_omics
from normball.selection import rivals

from ..one_thread import one_thread  # noqa: F401


@pytest.fixture(scope="session")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("tables") / "expression.csv"
    make_omics(48, 60, 4, effect=3.0, missing=0.02).to_csv(path)
    return path


@pytest.fixture
def few_trees(monkeypatch):
    monkeypatch.setattr(rivals, "TREES", 80)  # with fewer, some samples would be in all the bags
    monkeypatch.setattr(rivals, "COUNTS", (2, 8))


@pytest.fixture
def no_page(monkeypatch):
    """The page takes longer than the rest of a small run; other tests look at it."""
    monkeypatch.setattr("normball.report.write_report", lambda study, folder: folder / "report.html")
