"""Other files, other layouts, and labels elsewhere: all give the same table."""

import sys

import numpy as np
import pytest

from normball.data import TableError, make_omics, read_table

from .conftest import same

pd = pytest.importorskip("pandas")


@pytest.fixture
def frame(made):
    frame = pd.DataFrame(made.X, columns=made.feature_names, index=made.sample_ids)
    frame.insert(3, "dx", made.y)
    return frame


class TestParquet:
    @pytest.fixture(autouse=True)
    def needs(self):
        pytest.importorskip("pyarrow")

    def test_round_trip(self, frame, made, tmp_path):
        frame.to_parquet(tmp_path / "a.parquet")
        assert same(read_table(tmp_path / "a.parquet", "dx"), made)
        frame.reset_index(names="sample").to_parquet(tmp_path / "b.parquet", index=False)
        assert same(read_table(tmp_path / "b.parquet", "dx"), made)
        frame.astype({"dx": "category"}).to_parquet(tmp_path / "c.bin")
        assert same(read_table(tmp_path / "c.bin", "dx"), made)

    def test_a_few_columns_at_a_time(self, frame, made, tmp_path, monkeypatch):
        monkeypatch.setattr("normball.data._parquet._STEP", 100)
        frame.to_parquet(tmp_path / "a.parquet", row_group_size=7)
        assert same(read_table(tmp_path / "a.parquet", "dx"), made)

    def test_samples_in_columns(self, frame, made, tmp_path):
        frame.T.astype(str).to_parquet(tmp_path / "t.parquet")
        assert same(read_table(tmp_path / "t.parquet", "dx", transpose=True), made)

    def test_types(self, tmp_path):
        pd.DataFrame(
            {"y": [1.0, 2.0, 1.0], "a": [True, False, None], "b": [1, 2, 3], "c": ["1.5", "NA", "2"]}
        ).to_parquet(tmp_path / "a.parquet")  # fmt: skip
        table = read_table(tmp_path / "a.parquet", "y")
        np.testing.assert_array_equal(table.X, np.float32([[1, 1, 1.5], [0, 2, np.nan], [np.nan, 3, 2]]))
        assert table.y.tolist() == ["1", "2", "1"]

    def test_faults(self, frame, tmp_path):
        path = tmp_path / "a.parquet"
        frame.to_parquet(path)
        with pytest.raises(TableError, match=r"row 1, column 'dx': '\w+'; if it is no feature: drop=\['dx'\]"):
            read_table(path)
        pd.DataFrame({"a": [1.0, 1e39], "b": [1.0, 2.0]}).to_parquet(path)
        with pytest.raises(TableError, match="row 2, 'a': infinite, or beyond the range of float32"):
            read_table(path)
        content = path.read_bytes()
        path.write_bytes(content[:-20])
        with pytest.raises(TableError, match=r"'a.parquet': the Parquet file is cut"):
            read_table(path)


class TestXlsx:
    @pytest.fixture(autouse=True)
    def needs(self):
        pytest.importorskip("openpyxl")

    def test_round_trip(self, frame, made, tmp_path):
        with pd.ExcelWriter(tmp_path / "a.xlsx") as book:
            frame.iloc[:3, :2].to_excel(book, sheet_name="first")
            frame.to_excel(book, sheet_name="second")
            frame.T.to_excel(book, sheet_name="turned")
        for sheet in ("second", 2, "2"):
            assert same(read_table(tmp_path / "a.xlsx", "dx", sheet=sheet), made)
        assert same(read_table(tmp_path / "a.xlsx", "dx", sheet="turned", transpose=True), made)
        with pytest.raises(TableError, match=r"sheet 'secnd' is not a column; did you mean 'second'\?"):
            read_table(tmp_path / "a.xlsx", "dx", sheet="secnd")
        assert "sheet: 'first' of 3" in read_table(tmp_path / "a.xlsx").notes

    def test_cells(self, tmp_path):
        import datetime

        import openpyxl

        book = openpyxl.Workbook()
        for row in [
            ["My study"], [], ["id", "y", "a", datetime.datetime(2024, 3, 1), None],
            ["s1", 1, 0.5, "#N/A"], ["s2", 2.0, None, 2], ["s3", 1, 1e-5, "1.5"],
        ]:  # fmt: skip
            book.active.append(row)
        book.save(tmp_path / "a.xlsx")
        table = read_table(tmp_path / "a.xlsx", "y")
        np.testing.assert_array_equal(table.X, np.float32([[0.5, np.nan], [np.nan, 2], [1e-5, 1.5]]))
        assert table.y.tolist() == ["1", "2", "1"]
        assert any("changed gene names" in note for note in table.notes)
        content = (tmp_path / "a.xlsx").read_bytes()
        (tmp_path / "b.xlsx").write_bytes(content[: len(content) // 2])
        with pytest.raises(TableError, match="cut or damaged"):
            read_table(tmp_path / "b.xlsx")


class TestH5ad:
    @pytest.mark.parametrize("layout", ["dense", "csr", "csc"])
    def test_round_trip(self, made, tmp_path, layout):
        anndata = pytest.importorskip("anndata")
        from scipy import sparse

        X = {"dense": np.array, "csr": sparse.csr_matrix, "csc": sparse.csc_matrix}[layout](made.X)
        data = anndata.AnnData(X, layers={"twice": X * 2})
        data.obs_names, data.var_names = made.sample_ids, made.feature_names
        data.obs["dx"] = pd.Categorical(made.y)
        data.obs["who"] = [f"p{i // 2}" for i in range(len(made.y))]
        path = tmp_path / "a.h5ad"
        data.write_h5ad(path)
        table = read_table(path, "dx", group="who")
        assert same(table, made)
        assert table.groups.tolist() == data.obs["who"].tolist()
        np.testing.assert_array_equal(read_table(path, layer="twice").X, 2 * made.X)
        fewer = read_table(path, "dx", drop=[made.feature_names[0], "who"])
        assert fewer.feature_names == made.feature_names[1:]
        for options, message in [
            ({"layer": "twin"}, r"layer 'twin' is not there; did you mean 'twice'\?"),
            ({"target": "DX2"}, r"target 'DX2' is not in obs; did you mean 'dx'\?"),
            ({"transpose": True}, "samples in rows"),
            ({"drop": ["nothing"]}, "drop 'nothing' is not a feature"),
        ]:
            with pytest.raises(TableError, match=message):
                read_table(path, **options)
        content = path.read_bytes()
        path.write_bytes(content[: len(content) // 2])
        with pytest.raises(TableError, match="the h5ad file is cut"):
            read_table(path)


class TestNpz:
    def test_round_trip(self, made, tmp_path):
        path = tmp_path / "a.npz"
        np.savez_compressed(
            path, X=made.X.astype(np.float64), dx=made.y.astype(str),
            feature_names=made.feature_names, sample_ids=made.sample_ids,
        )  # fmt: skip
        assert same(read_table(path, "dx"), made)
        np.savez(path, X=made.X.T, dx=made.y.astype(str), features=made.feature_names, samples=made.sample_ids)
        assert same(read_table(path, "dx", transpose=True), made)

    def test_faults(self, tmp_path):
        path = tmp_path / "a.npz"
        X = np.arange(6.0).reshape(3, 2)
        np.savez(path, X=X, y=[1, 2, 1], short=[1])
        assert read_table(path, "y").feature_names == ["feature 1", "feature 2"]
        with pytest.raises(TableError, match="target 'short' has shape"):
            read_table(path, "short")
        with pytest.raises(TableError, match="target 'z' is not an array"):
            read_table(path, "z")
        np.savez(path, a=X, b=X)
        with pytest.raises(TableError, match="expected an array X of two dimensions, got 'a'"):
            read_table(path)
        np.savez(path, X=np.array([[object(), 1]]))
        with pytest.raises(TableError, match="npz file is cut, damaged or of an unknown kind"):
            read_table(path)
        np.savez(path, X=X * 1j)
        with pytest.raises(TableError, match="complex128; expected real numbers"):
            read_table(path)


@pytest.mark.parametrize(
    ("name", "module"), [("a.parquet", "pyarrow"), ("a.xlsx", "openpyxl"), ("a.h5ad", "anndata")]
)  # fmt: skip
def test_missing_extras_are_named(frame, made, tmp_path, monkeypatch, name, module):
    pytest.importorskip(module)
    path = tmp_path / name
    if module == "anndata":
        __import__("anndata").AnnData(made.X).write_h5ad(path)
    else:
        getattr(frame, {"pyarrow": "to_parquet", "openpyxl": "to_excel"}[module])(path)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"need {module}: pip install normball\[omics\]"):
        read_table(path)


class TestSamplesInColumns:
    def test_every_way_to_name_the_labels(self, frame, made, tmp_path):
        turned = pd.concat([frame[["dx"]], frame.drop(columns="dx")], axis=1).T
        path = tmp_path / "t.csv"
        turned.to_csv(path)
        for options in (
            {"target": "dx", "transpose": True}, {"target": 2, "transpose": True}, {"target": "2", "transpose": True},
            {"label_row": 2}, {"label_row": "2"}, {"label_row": "dx"},
        ):  # fmt: skip
            assert same(read_table(path, **options), made)
        frame.assign(dx2=frame.pop("dx")).T.to_csv(path)  # as the last line
        assert same(read_table(path, "dx2", transpose=True), made)

    def test_labels_in_the_line_of_names(self, write, made):
        table = read_table(write("gene,ALL,AML,ALL\nid,s1,s2,s3\ng1,1,2,3\ng2,4,5,7\n"), label_row=1)
        assert table.y.tolist() == ["ALL", "AML", "ALL"]
        assert table.sample_ids == ["s1", "s2", "s3"]
        assert table.X.tolist() == [[1, 4], [2, 5], [3, 7]]
        table = read_table(write("gene,ALL,AML,ALL\ng1,1,2,3\ng2,4,5,7\n"), label_row=1)
        assert table.sample_ids == ["1", "2", "3"]

    def test_group_and_drop(self, write):
        text = "gene,note,s1,s2,s3\nbatch,,A,B,A\ng1,x,1,2,3\nwho,,p,p,q\ng2,y,4,5,7\ndx,,u,v,u\n"
        table = read_table(write(text), "dx", transpose=True, group="who", drop=["batch", "note"])
        assert table.feature_names == ["g1", "g2"]
        assert table.groups.tolist() == ["p", "p", "q"]
        assert table.y.tolist() == ["u", "v", "u"]

    def test_hints(self, write):
        path = write("gene,s1,s2,s3\ndx,u,v,u\ng1,1,2,3\ng2,4,5,7\n")
        with pytest.raises(TableError, match=r"'dx' is not a column; but it is the name of a line.*transpose=True"):
            read_table(path, "dx")
        with pytest.raises(TableError, match=r"all in line 2.*transpose=True"):
            read_table(path)
        for text in ("Name,s1,s2\nLabel,1,2\ng1,3,4\n", "Gene_ID,s1,s2\ng1,1,2\ng2,3,4\n"):
            assert any("looks transposed" in note for note in read_table(write(text, "turned.csv")).notes)
        notes = read_table(write(text, "turned.csv"), transpose=True).notes
        assert not any("looks transposed" in note for note in notes)
        with pytest.raises(TableError, match="index: expected the column of feature names, got False"):
            read_table(path, "dx", transpose=True, index=False)
        with pytest.raises(TableError, match="all in line 2: if it holds the labels: its name as target"):
            read_table(path, "dz", transpose=True)
        with pytest.raises(TableError, match=r"target 'class' is not the name of a line; did you mean 'Class'\?"):
            read_table(write("gene,s1,s2,s3\nClass,1,2,1\ng1,1,2,3\n"), "class", transpose=True)
        with pytest.raises(TableError, match="target 's1' is not the name of a line; but it is the name of a column"):
            read_table(path, "s1", label_row=None, transpose=True)


class TestSecondFile:
    def test_joined_by_id(self, frame, made, tmp_path):
        table, labels = tmp_path / "x.csv", tmp_path / "labels.tsv"
        frame.drop(columns="dx").to_csv(table)
        more = pd.DataFrame({"age": range(31), "barcode": [*made.sample_ids, "other"], "dx": [*made.y, "case"]})
        more["who"] = [f"p{i // 3}" for i in range(31)]
        more.sample(frac=1, random_state=0).to_csv(labels, sep="\t", index=False)
        found = read_table(table, "dx", labels=labels, group="who")
        assert same(found, made)
        assert found.groups[3] == "p1"
        assert "1 samples of 'labels.tsv' are not in the table" in found.notes
        more[["barcode", "dx"]].to_csv(labels, index=False, encoding="utf-16")
        assert same(read_table(table, labels=labels), made)
        more[["dx", "barcode"]].to_excel(tmp_path / "labels.xlsx", index=False)
        assert same(read_table(table, labels=tmp_path / "labels.xlsx"), made)
        frame.drop(columns="dx").T.to_csv(table)
        assert same(read_table(table, labels=labels, transpose=True), made)
        with pytest.raises(TableError, match=r"no sample id of 'x.csv', such as .* names of features.*transpose=True"):
            read_table(table, labels=labels)

    def test_partly(self, write):
        table = write("id,a,b\ns1,1,2\ns2,2,3\ns3,3,5\n")
        found = read_table(table, labels=write("s,dx\ns1,u\ns3,v\n", "l.csv"))
        assert found.sample_ids == ["s1", "s3"]
        assert any("1 samples without a label were left out: 's2'" in note for note in found.notes)

    def test_faults(self, write):
        table = write("id,a,b\ns1,1,2\ns2,2,3\ns3,3,5\n")
        for text, options, message in [
            ("s,dx\nx1,u\nx2,v\n", {}, "no sample id of 'table.csv', such as 's1', is there"),
            ("s,dx,z\ns1,u,1\ns2,v,2\n", {}, "target is not given, and there are 'dx', 'z'"),
            ("s,dx\ns1,u\ns1,v\ns2,v\n", {}, "sample 's1' is there twice, with different labels"),
            ("s,dx\ns1,u\ns2,v\n", {"target": "dx2"}, r"target 'dx2' is not a column; did you mean 'dx'\?"),
            ("s,dx\ns1,u\ns2,v,3\n", {}, "record 3: expected 2 fields as in the line of names, got 3"),
        ]:
            with pytest.raises(TableError, match=message):
                read_table(table, labels=write(text, "l.csv"), **options)
        bare = write("a,b\n1,2\n2,3\n", "bare.csv")
        with pytest.raises(TableError, match="no column holds sample ids"):
            read_table(bare, labels=write("s,dx\ns1,u\n", "l.csv"))


class TestReal:
    @pytest.mark.parametrize(
        ("name", "options", "shape", "counts"),
        [
            ("alon.csv.gz", {"target": "label"}, (62, 2000), {"n": 22, "t": 40}),
            ("golub.csv.gz", {"target": 2}, (72, 7129), {"ALL": 47, "AML": 25}),
            ("khan.csv.gz", {"target": "label"}, (83, 2308), {"1": 11, "2": 29, "3": 18, "4": 25}),
            ("gc_breast.csv", {"label_row": 2}, (271, 162), {"1": 67, "2": 204}),
        ],
    )
    def test_text(self, real, name, options, shape, counts):
        table = read_table(real / name, **options)
        assert table.X.shape == shape
        assert table.classes == counts
        assert np.isfinite(table.X).all()
        turned = bool(options.get("label_row"))
        with (real / name).open("rb") as file:
            how = {"sep": ";"} if turned else {"compression": "gzip"}
            frame = pd.read_csv(file, index_col=0, **how)
        wanted = frame.T.iloc[:, 1:] if turned else frame.iloc[:, 1:]
        np.testing.assert_array_equal(table.X, wanted.to_numpy(np.float64).astype(np.float32))
        assert table.sample_ids == wanted.index.tolist()
        assert table.feature_names == wanted.columns.tolist()

    def test_h5ad(self, real):
        pytest.importorskip("anndata")
        table = read_table(real / "pbmc68k_reduced.h5ad", "bulk_labels", layer="raw", folds=5)
        assert table.X.shape == (700, 765)
        assert table.X.min() == 0  # raw.X, not the scaled X
        assert min(table.classes.values()) == 8


def test_made_up_tables(tmp_path):
    table = make_omics(200, 300, 6, classes=("a", "b", "c"), seed=5)
    assert same(table, make_omics(200, 300, 6, classes=("a", "b", "c"), seed=5))
    assert (table.X > 0).all()
    told = table.notes[0].split(": ")[1].split(", ")
    logs = np.log(table.X)
    means = np.array([logs[table.y == each].mean(0) for each in "abc"])
    spread = np.ptp(means, axis=0) / logs.std(0)
    found = {table.feature_names[j] for j in np.argsort(-spread)[:6]}
    assert found == set(told)
    neighbours = np.corrcoef(logs[:, 0], logs[:, 30])[0, 1]
    assert neighbours > 0.15  # one pathway
    assert make_omics(40, 50, 0, missing=0.2).n_missing == pytest.approx(400, abs=1)
    table.to_csv(tmp_path / "made.csv")
    assert same(read_table(tmp_path / "made.csv", "label"), table)
    for options in ({"n_samples": 1}, {"n_informative": 2000}, {"classes": ("a",)}, {"missing": 1.0}):
        with pytest.raises(ValueError, match=next(iter(options))):
            make_omics(**options)
