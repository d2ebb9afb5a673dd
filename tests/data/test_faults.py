"""Bad tables: the message names the file, the place, the value, and what to do."""

import numpy as np
import pytest

from normball.data import TableError, _memory, read_table

from .conftest import same

GOOD = "id,dx,a,b\n" + "".join(f"s{i},{'xy'[i % 2]},{i},{i * i}\n" for i in range(8))


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", {}, "the file is empty"),
        ("\n \n\n", {}, "the file is empty"),
        ("id,dx,a\n", {}, "no line below the line of names"),
        ("just some words\nand more of them\n", {}, "not a table: no delimiter"),
        ("id;a\ns1;2\ns2;3\n", {"delimiter": ","}, "not a table: one column only"),
        (GOOD, {"target": "dxx"}, r"target 'dxx' is not a column; did you mean 'dx'\?"),
        (GOOD, {"target": 9}, "target 9 is not a column; expected a name, or a number 1 to 4"),
        (GOOD, {"target": 0}, "target 0 is not a column"),
        (GOOD, {"target": "dx", "drop": "dx"}, "target 'dx' is in drop, too"),
        (GOOD, {"target": "dx", "drop": ["c"]}, "drop 'c' is not a column"),
        (GOOD, {"target": "dx", "index": "dx"}, "index 'dx' is the target"),
        (GOOD, {"target": "dx", "drop": ["a", "b"]}, "no column is left as a feature"),
        (GOOD, {"target": "a", "drop": "dx"}, "target 'a' has another value in each of 8 samples"),
        (GOOD, {"target": "dx", "folds": 5}, "has 4 samples, fewer than the 5 folds; so have 1 more classes"),
        (GOOD, {"target": "dx", "layer": "raw"}, "layer: expected an h5ad file"),
        (GOOD, {"target": "dx", "sheet": 1}, "sheet: expected an xlsx file"),
        (GOOD, {"target": "dx", "encoding": "utf-9"}, "encoding: expected one that Python knows"),
        (GOOD, {"target": "dx", "label_row": 2}, "target and label_row: expected one of them"),
        (GOOD, {"decimal": ";"}, "decimal: expected"),
        (GOOD, {"delimiter": "ab"}, "delimiter: expected one character"),
        (GOOD, {"folds": 1}, "folds: expected an int >= 2"),
        (GOOD.replace(",y,", ",x,"), {"target": "dx"}, "one class only, 'x'"),
        (GOOD.replace(",y,", ",,").replace(",x,", ",NA,"), {"target": "dx"}, "target 'dx' is empty in every sample"),
        (GOOD, {}, r"line 2, column 2 \('dx'\): 'x'; .*and 5 more; if this is no feature: drop=\['dx'\]"),
        (GOOD.replace("s3,y,3,9", "s3,y,low,9"), {"target": "dx"}, r"line 5, column 3 \('a'\): 'low'; .*missing"),
        (GOOD.replace("s3,y,3,9", "s3,y,3,1e39"), {"target": "dx"}, r"line 5, column 4 \('b'\): '1e39' is beyond"),
        (GOOD.replace("s3,y,3,9", "s3,y,3,-Inf"), {"target": "dx"}, r"line 5, column 4 \('b'\): '-Inf' is beyond"),
        (GOOD.replace("s3,y,3,9", "s3,y,3"), {"target": "dx"}, r"line 5: expected 4 fields as .*, got 3$"),
        (GOOD.replace("s3,y,3,9", "s3,y,3,9,1"), {"target": "dx"}, "line 5: expected 4 fields.* got 5"),
        (GOOD[:-4], {"target": "dx"}, "line 9: .* got 3; it is the last line and has no end: the file seems to be cut"),
        (GOOD.replace("s3", "s2"), {"target": "dx"}, r"sample id 's2' is there 2 times \(line 4, line 5\)"),
        (GOOD.replace(",b", ",a", 1), {"target": "dx"}, r"feature 'a' is there 2 times \(feature 1, feature 2\)"),
        (GOOD.replace("a,b", "dx,b", 1), {"target": "dx"}, "target 'dx' is the name of 2 columns; give its number"),
        (GOOD.replace(",b", ",", 1), {"target": "dx"}, "line 2: column 4 has no name, but holds '0'"),
        (GOOD.replace("s3,y", '"s3,y', 1), {"target": "dx"}, "line 5: a quote is wrong or is never closed"),
        (GOOD.replace("s3,y", 's3,"y"z', 1), {"target": "dx"}, "line 5: a quote is wrong"),
        (GOOD.replace("s3,y", "s3,\0y", 1), {"target": "dx"}, "binary"),
        ("id,dx,a\ns1,x,1\ns2,y,1\n", {"target": "dx"}, "every feature is constant or missing"),
        ("id,who,a\ns1,p,1\ns2,,3\n", {"group": "who"}, "line 3: no group; 1 samples lack one"),
        ("1,2,3\n4,5,6\n" * 3, {}, "line 1: numbers only, such as '1'; expected the names"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("engine")
def test_text(write, text, options, message):
    with pytest.raises(TableError, match=message) as caught:
        read_table(write(text), **options)
    assert "table.csv" in str(caught.value) or next(reversed(options)) in str(caught.value)


def test_line_numbers_count_the_lines_inside_quotes(write):
    text = 'id,dx,"a\nname"\n"s\n1",x,1\ns2,y,2\n\ns3,x,bad\n'
    with pytest.raises(TableError, match=r"line 7, column 3 \('a\\nname'\): 'bad'"):
        read_table(write(text), "dx")


def test_far_down(write, monkeypatch):
    monkeypatch.setattr("normball.data._body._BATCH", 10_000)
    text = "id,dx,a\n" + "".join(f"s{i},{'xy'[i % 2]},{i}.5\n" for i in range(20_000)) + "last,x,oops\n"
    with pytest.raises(TableError, match=r"line 20002, column 3 \('a'\): 'oops'"):
        read_table(write(text), "dx")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (bytes(range(256)) * 20, "binary"),
        (b"\x89PNG\r\n\x1a\n", "a picture"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "old Excel file.*save it as xlsx"),
        (b"<!DOCTYPE html><html>", "a web page"),
        (b"PK\x03\x04 and no more", "zip archive is cut or damaged"),
        (b"\x1f\x8b", "cut or damaged"),
        (b"PAR1", "Parquet file is cut"),
        (b"\x89HDF\r\n\x1a\n", "h5ad file is cut"),
        (b"\xff\xfea\x00,\x00b\x00\n\x00\xd8", "not valid utf-16"),
    ],
)
def test_not_text(write, content, message):
    with pytest.raises(TableError, match=f"'table.csv': .*{message}"):
        read_table(write(content))


def test_not_what_its_name_says(write):
    with pytest.raises(TableError, match="no gzip file in spite of its name"):
        read_table(write(GOOD, "a.csv.gz"))
    with pytest.raises(TableError, match="no xlsx file in spite of its name"):
        read_table(write(GOOD, "a.xlsx"))


def test_not_a_file(tmp_path):
    with pytest.raises(TableError, match="expected a file, got a folder"):
        read_table(tmp_path)
    with pytest.raises(FileNotFoundError):
        read_table(tmp_path / "none.csv")


def test_what_is_left_out_is_said(write):
    text = "id,dx,a,same,b,gone\ns1,x,1,5,2,NA\ns2,y,2,5,,NA\ns3,,3,5,1,NA\ns4,x,4,5,7,?\n"
    table = read_table(write(text), "dx")
    assert table.feature_names == ["a", "b"]
    assert table.sample_ids == ["s1", "s2", "s4"]
    assert table.n_missing == 1
    said = "\n".join(table.notes)
    assert "1 feature is missing in all samples, left out: 'gone'" in said
    assert "1 feature is constant, left out: 'same'" in said
    assert "1 samples without a label were left out: 's3'" in said
    assert "1 values are missing (17 %)" in said
    assert "1 missing" in repr(table)


def test_signs_are_labels(write):
    table = read_table(write("id,ER,a\ns1,+,1\ns2,-,2\ns3,none,4\n" * 1 + "s4,-,5\n"), "ER")
    assert table.y.tolist() == ["+", "-", "none", "-"]


def test_near_the_largest_float(write):
    largest = float(np.finfo(np.float32).max)
    table = read_table(write(f"id,a\ns1,{largest!r}\ns2,-3.4028235e38\ns3,1e-60\n"))
    assert table.X[:, 0].tolist() == [largest, -largest, 0]


class TestMemory:
    def test_refused_with_numbers_before_it_is_read(self, write, monkeypatch):
        text = "id,dx," + ",".join(f"f{j}" for j in range(200)) + "\n"
        text += "".join(f"s{i},{'xy'[i % 2]}," + ",".join(["1.25"] * 200) + "\n" for i in range(2000))
        path = write(text)
        monkeypatch.setattr("normball.data._body.Body.read", lambda *_: pytest.fail("it was read"))
        with pytest.raises(TableError, match=r"too large.*1.9 MB on disk, about \d,\d+ x 200 values") as caught:
            read_table(path, "dx", memory_limit="1MB")
        guessed = int(str(caught.value).split("about ")[1].split(" x")[0].replace(",", ""))
        assert guessed == pytest.approx(2000, rel=0.05)
        monkeypatch.setattr(_memory, "free_memory", lambda: 1_000_000)
        with pytest.raises(TableError, match="too large"):
            read_table(path, "dx")

    @pytest.mark.parametrize(("limit", "size"), [(1000, 1000), ("1k", 1024), ("1.5 MB", 3 << 19), ("2GiB", 2 << 30)])
    def test_limits(self, limit, size):
        assert _memory.memory_of(limit) == size

    @pytest.mark.parametrize("limit", ["much", "", 0, -1, True])
    def test_bad_limits(self, limit):
        with pytest.raises(ValueError, match="memory_limit: expected"):
            _memory.memory_of(limit)

    def test_free(self):
        free = _memory.free_memory()
        assert free is None or free > 1 << 20

    def test_a_wrong_guess_of_the_rows_does_no_harm(self, write):
        lines = [f"s{i},{i % 7}.{'0' * 200},{'xy'[i % 2]}\n" for i in range(200)]
        lines += [f"t{i},{i % 5},{'xy'[i % 2]}\n" for i in range(20_000)]
        table = read_table(write("id,a,dx\n" + "".join(lines)), "dx")
        assert len(table.X) == 20_200
        assert table.X[-1, 0] == 19_999 % 5


@pytest.mark.parametrize("kind", ["csv", "gz", "xz", "zip", "npz", "parquet", "xlsx", "h5ad"])
def test_damage_gives_a_clear_error_or_a_table(made, tmp_path, kind, monkeypatch):
    """Cut and flipped bytes: a table or a `TableError`, never the complaint of a library."""
    monkeypatch.setattr(_memory, "free_memory", lambda: 1 << 28)
    import gzip
    import lzma
    import zipfile

    path = tmp_path / f"a.{kind}"
    made.to_csv(tmp_path / "plain")
    plain = (tmp_path / "plain").read_bytes()
    if kind in ("csv", "gz", "xz"):
        path.write_bytes({"csv": bytes, "gz": gzip.compress, "xz": lzma.compress}[kind](plain))
    elif kind == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a.csv", plain)
    elif kind == "npz":
        np.savez_compressed(path, X=made.X, label=made.y.astype(str))
    elif kind == "h5ad":
        anndata = pytest.importorskip("anndata")
        data = anndata.AnnData(made.X)
        data.obs["label"] = made.y.astype(str)
        data.write_h5ad(path)
    else:
        pytest.importorskip({"parquet": "pyarrow", "xlsx": "openpyxl"}[kind])
        frame = __import__("pandas").DataFrame(made.X, columns=made.feature_names)
        frame.insert(0, "label", made.y)
        (frame.to_parquet if kind == "parquet" else frame.to_excel)(path, index=False)
    good = path.read_bytes()
    assert read_table(path, "label").X.shape == made.X.shape
    random = np.random.default_rng(7)
    messages = []
    for trial in range(12 if kind in ("h5ad", "xlsx") else 40):
        content = bytearray(good)
        if trial % 3 == 0:
            content = content[: random.integers(len(good))]
        else:
            for at in random.integers(len(content), size=1 + trial % 5):
                content[at] = random.integers(256)
        path.write_bytes(bytes(content))
        try:
            read_table(path, "label")
        except TableError as error:
            messages.append(str(error))
    assert messages
    assert all(path.name in message for message in messages)


def test_a_table_without_a_target_is_read_as_it_is(write, made, tmp_path):
    made.to_csv(tmp_path / "a.csv")
    table = read_table(tmp_path / "a.csv", drop="label")
    assert table.y is None
    assert table.classes == {}
    np.testing.assert_array_equal(table.X, made.X)
    assert same(read_table(tmp_path / "a.csv", "label"), made)
