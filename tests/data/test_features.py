"""Only the wanted features are read: whatever else a table holds does not matter, and nothing more is left out."""

import numpy as np
import pandas as pd
import pytest

from normball._spelling import as_options
from normball.data import TableError, read_table

TEXT = """id,dx,site,a,date,b,,c
s1,x,Rome,1,2021-05-01,5,?!,7
s2,,Oslo,2,unknown,5,,8
s3,x,Rome,3,2021-07-09,NA,,oops
"""


@pytest.mark.usefixtures("engine")
class TestText:
    def test_other_columns_are_left_aside(self, write):
        table = read_table(write(TEXT), "dx", features=["b", "a", "absent"])
        assert table.feature_names == ["a", "b"]
        np.testing.assert_array_equal(table.X, np.float32([[1, 5], [2, 5], [3, np.nan]]))
        assert table.sample_ids == ["s1", "s2", "s3"]
        assert table.aside == ["site", "date", "", "c"]

    def test_nothing_more_is_left_out(self, write):
        table = read_table(write(TEXT), "dx", features=["b"])
        assert table.feature_names == ["b"]  # though it is constant
        assert table.y.tolist() == ["x", "", "x"]  # one class, and a sample without a label
        assert table.classes == {"x": 2}

    def test_text_in_a_wanted_feature_is_an_error(self, write):
        with pytest.raises(TableError, match=r"'table.csv', line 4, column 8 \('c'\): 'oops'; .*missing=\['oops'\]"):
            read_table(write(TEXT), features=["a", "c"])
        said = pytest.raises(TableError, match=r"feature: --drop c; if .* value: --missing oops$")
        with as_options(["drop", "missing"]), said:
            read_table(write(TEXT), features=["a", "c"])

    def test_none_is_there(self, write):
        with pytest.raises(TableError, match=r"none of the 2 features that are wanted .* If so, transpose=True"):
            read_table(write(TEXT), features=["g1", "g2"])
        with pytest.raises(TableError, match=r"none of the 1 features that are wanted .*; there are 'g3' \(1 in"):
            read_table(write("gene,s1,s2\ng3,1,2\n"), features=["probe"], transpose=True)

    def test_names_that_are_there_twice(self, write):
        text = "id,note,note,a\ns1,3,4,1\ns2,5,6,2\n"
        assert read_table(write(text), features=["a"]).X.tolist() == [[1], [2]]
        with pytest.raises(TableError, match="feature 'note' is there 2 times"):
            read_table(write(text), features=["a", "note"])

    def test_a_wanted_feature_is_no_column_of_ids(self, write):
        assert read_table(write("id,a\n1,5\n2,6\n"), features=["id", "a"]).feature_names == ["id", "a"]
        with pytest.raises(TableError, match="index 'id' is the target"):
            read_table(write("id,a\n1,5\n2,6\n"), features=["id", "a"], index="id")

    def test_among_many_columns(self, write):
        names = [f"g{j}" for j in range(400)]
        lines = [",".join([f"s{i}", *("text" if j % 3 else str(i + j) for j in range(400))]) for i in range(3)]
        table = read_table(write("\n".join([",".join(["id", *names]), *lines, ""])), features=["g9", "g300"])
        assert table.X.tolist() == [[9, 300], [10, 301], [11, 302]]
        assert len(table.aside) == 398

    def test_samples_in_columns(self, write):
        text = "gene,s1,s2,s3\nsite,Rome,Oslo,Rome\ng1,1,2,3\ndx,u,,u\ng2,low,5,7\ng3,9,9,9\n"
        table = read_table(write(text), "dx", transpose=True, features=["g3", "g1"])
        assert table.feature_names == ["g1", "g3"]
        assert table.X.tolist() == [[1, 9], [2, 9], [3, 9]]
        assert table.y.tolist() == ["u", "", "u"]
        assert table.aside == ["site", "g2"]
        with pytest.raises(TableError, match=r"line 5, column 2 \('s1'\): 'low'"):
            read_table(write(text), "dx", transpose=True, features=["g2"])


def test_a_list_is_expected(write):
    with pytest.raises(TableError, match="features: expected a list of names, got 'ab'"):
        read_table(write(TEXT), features="ab")


@pytest.mark.parametrize("kind", ["parquet", "xlsx"])
def test_files_of_columns(tmp_path, kind):
    pytest.importorskip({"parquet": "pyarrow", "xlsx": "openpyxl"}[kind])
    path = tmp_path / f"a.{kind}"
    frame = pd.DataFrame({"site": ["Rome", "Oslo"], "a": [1.0, 2.0], "c": ["x", "1"], "b": [5.0, 5.0]})
    (frame.to_parquet if kind == "parquet" else frame.to_excel)(path, index=False)
    table = read_table(path, features=["b"], index=False)
    assert (table.feature_names, table.X.tolist(), table.aside) == (["b"], [[5], [5]], ["site", "a", "c"])
    with pytest.raises(TableError, match="none of the 1 features that are wanted is there"):
        read_table(path, features=["z"])
    with pytest.raises(TableError, match=r"'c'\)?: 'x'; .*drop=\['c'\]"):
        read_table(path, features=["c"])


@pytest.mark.parametrize("kind", ["h5ad", "npz"])
def test_files_of_arrays(tmp_path, kind):
    path, X = tmp_path / f"a.{kind}", np.float32([[1, 5], [2, 5]])
    if kind == "npz":
        np.savez(path, X=X, feature_names=["a", "b"])
    else:
        data = pytest.importorskip("anndata").AnnData(X)
        data.var_names = ["a", "b"]
        data.write_h5ad(path)
    table = read_table(path, features=["b"])
    assert (table.feature_names, table.X.tolist(), table.aside) == (["b"], [[5], [5]], ["a"])
    with pytest.raises(TableError, match="none of the 1 features that are wanted is there"):
        read_table(path, features=["z"])
