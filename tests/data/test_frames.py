"""Data frames of pandas: the same table as from a file, and errors that name the column."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from normball.data import Table, TableError, make_omics, read_table
from normball.data._frames import array_of


def frame(**columns):
    made = {"TP53": [1.5, 0.5, 2.0, 1.0], "EGFR": [2.25, np.nan, 1.0, 3.0], "status": ["ill", "well", "ill", "well"]}
    made["patient"] = ["a", "a", "b", "b"]
    return pd.DataFrame(made | columns, index=["s1", "s2", "s3", "s4"])


KNOWN = {"target": "status", "group": "patient"}


def test_a_frame_and_a_file_of_it_are_the_same_table(tmp_path):
    made = make_omics(30, 12, 3, seed=1)
    made.X[3, 4] = np.nan
    made.X[:, 7] = 2.5  # constant: left out of both
    whole = pd.DataFrame(made.X, columns=made.feature_names, index=made.sample_ids).assign(kind=made.y)
    whole.loc[whole.index[2], "kind"] = None
    whole.to_csv(tmp_path / "made.csv", index_label="sample")
    one, other = Table.from_dataframe(whole, "kind", name="made.csv"), read_table(tmp_path / "made.csv", "kind")
    for part in ("X", "y", "feature_names", "sample_ids"):
        np.testing.assert_array_equal(getattr(one, part), getattr(other, part))
    assert repr(one) == repr(other)
    assert [note for note in other.notes if note in one.notes] == one.notes
    assert any("left out" in note for note in one.notes)


def test_which_columns_are_what():
    table = Table.from_dataframe(frame(), "status", group="patient")
    assert table.feature_names == ["TP53", "EGFR"]
    assert table.sample_ids == ["s1", "s2", "s3", "s4"]
    assert table.y.tolist() == ["ill", "well", "ill", "well"]
    assert table.groups.tolist() == ["a", "a", "b", "b"]
    assert (table.n_missing, table.name) == (1, "table")
    few = Table.from_dataframe(frame(), "status", features=["EGFR"], name="few")
    assert (few.feature_names, few.groups, few.name) == (["EGFR"], None, "few")
    bare = Table.from_dataframe(frame()[["EGFR", "TP53"]])
    assert (bare.feature_names, bare.y) == (["EGFR", "TP53"], None)
    numbered = pd.DataFrame([[1.0, 2.0, 0], [2.0, 1.0, 1], [1.5, 3.0, 1]])
    assert Table.from_dataframe(numbered, 2).feature_names == ["0", "1"]
    assert Table.from_dataframe(numbered, 2).classes == {"0": 1, "1": 2}


def test_the_frame_is_left_alone():
    numbers = frame()[["TP53", "EGFR"]].astype("float32")
    Table.from_dataframe(numbers).X[:] = 0.0
    assert numbers["TP53"].tolist() == [1.5, 0.5, 2.0, 1.0]


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([1, 0, None, 1], "Int64"),
        ([1.5, 0, None, 1], "Float64"),
        ([True, False, None, True], "boolean"),
        ([1.5, 0, None, 1], "object"),
        ([1.5, 0, pd.NA, 1], "object"),
        (["1.5", "0", None, "1"], "string"),
        ([1, 0, None, 1], "category"),
        ([1.5, 0.0, np.nan, 1], pd.SparseDtype("float64")),
        ([1.5, 0.0, np.nan, 1], "float64[pyarrow]"),
    ],
)
def test_gaps_of_every_dtype(values, dtype):
    if str(dtype).endswith("[pyarrow]"):
        pytest.importorskip("pyarrow")
    made = frame(TP53=pd.array(values, dtype=dtype))
    table = Table.from_dataframe(made, "status", group="patient")
    np.testing.assert_array_equal(table.X[:, 0], np.array([values[0], 0, np.nan, 1], np.float32))
    np.testing.assert_array_equal(array_of(made[["TP53"]])[:, 0], np.array([values[0], 0, np.nan, 1], np.float64))


def test_labels_of_every_dtype():
    for values, dtype in ((["x", "y", "x", None], "string"), (["x", "y", "x", None], "category")):
        table = Table.from_dataframe(frame(status=pd.array(values, dtype=dtype)), "status", group="patient")
        assert table.classes == {"x": 2, "y": 1}
        assert "1 samples without a label were left out" in table.notes[0]
    table = Table.from_dataframe(frame(status=pd.array([1, 2, 1, None], dtype="Int64")), "status", group="patient")
    assert table.classes == {"1": 2, "2": 1}


@pytest.mark.parametrize(
    ("columns", "options", "said"),
    [
        ({}, {"target": "statsu"}, "target 'statsu' is not a column; did you mean 'status'"),
        ({}, {"target": "status", "group": "pateint"}, "group 'pateint' is not a column; did you mean 'patient'"),
        ({}, {"target": "status", "features": ["TP35"]}, "feature 'TP35' is not a column; did you mean 'TP53'"),
        ({}, {"target": "status", "features": ["EGFR", "status"]}, "feature 'status' is the target or the group, too"),
        ({}, {"target": "status", "features": []}, "expected a column of numbers beside target and group, got none"),
        ({}, {"target": "status"}, "'table': expected numbers, got column 'patient' of dtype"),
        ({"TP53": pd.Timestamp("2020-01-01")}, KNOWN, "column 'TP53' of dtype datetime"),
        ({"TP53": 1j}, KNOWN, "column 'TP53' of dtype complex128"),
        ({"TP53": pd.Categorical(list("abab"))}, KNOWN, "dtype category, with 'a'"),
        ({"TP53": [1.0, 2.0, np.inf, 3.0]}, KNOWN, "row 3, 'TP53': infinite"),
        ({"TP53": [1.0, 2.0, 1e300, 3.0]}, KNOWN, "row 3, 'TP53': infinite, or beyond the range of float32"),
        ({"status": "ill"}, KNOWN, "one class only"),
    ],
)
def test_frames_that_are_refused(columns, options, said):
    with pytest.raises(TableError) as caught:
        Table.from_dataframe(frame(**columns), **options)
    assert said in str(caught.value)


def test_names_that_are_there_twice():
    twice = pd.concat([frame(), frame()[["TP53", "status"]]], axis=1)
    with pytest.raises(TableError, match="target 'status' is the name of 2 columns"):
        Table.from_dataframe(twice, "status", group="patient")
    with pytest.raises(TableError, match="feature 'TP53' is there 2 times"):
        Table.from_dataframe(twice.iloc[:, :5], "status", group="patient")
    with pytest.raises(TableError, match="sample id 's1' is there 2 times"):
        Table.from_dataframe(pd.concat([frame(), frame()]), "status", group="patient")


def test_what_is_no_frame():
    for thing in (np.ones((3, 3)), {"a": [1]}, sparse.csr_matrix(np.eye(3)), None):
        with pytest.raises(TypeError, match="frame: expected a DataFrame of pandas, got"):
            Table.from_dataframe(thing)
