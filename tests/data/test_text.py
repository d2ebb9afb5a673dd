"""Text files as programs write them."""

import bz2
import csv
import gzip
import io
import lzma
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from normball.data import Table, TableError, read_table

from .conftest import same

PLAIN = "id,dx,a,b\ns1,x,1.5,2\ns2,y,-3e2,NA\ns3,x,.5,7\n"


def check_plain(table):
    np.testing.assert_array_equal(table.X, np.float32([[1.5, 2], [-300, np.nan], [0.5, 7]]))
    assert table.feature_names == ["a", "b"]
    assert table.sample_ids == ["s1", "s2", "s3"]
    assert table.y is None or table.y.tolist() == ["x", "y", "x"]


@pytest.mark.parametrize(
    ("change", "options"),
    [
        (lambda t: t, {}),
        (lambda t: t.replace(",", "\t"), {}),
        (lambda t: t.replace(",", "|"), {}),
        (lambda t: t.replace(",", " "), {"delimiter": " "}),
        (lambda t: t.replace(",", ";"), {}),
        (lambda t: t.replace(",", ";").replace(".", ","), {}),
        (lambda t: t.replace("\n", "\r\n"), {}),
        (lambda t: t.replace("\n", "\r"), {}),
        (lambda t: t.rstrip("\n"), {}),
        (lambda t: t.replace("\n", ",\n"), {}),
        (lambda t: t.replace("\n", ",\n").replace("b,\n", "b\n", 1), {}),
        (lambda t: t + "\n\n,,,\n", {}),
        (lambda t: "A title\n\n" + t, {}),
        (lambda t: t.replace("id,", ",", 1), {}),
        (lambda t: t.replace("id,", "", 1), {}),
        (lambda t: t.replace("id", "who", 1), {}),
        (lambda t: t.replace("NA", ""), {}),
        (lambda t: t.replace("NA", " ? "), {}),
        (lambda t: t.replace("NA", "#N/A"), {}),
        (lambda t: t.replace("NA", "<LOD"), {"missing": "<LOD"}),
        (lambda t: t.replace("NA", "-99.0"), {"missing": [-99]}),
        (lambda t: t.replace("1.5", " 1.5 "), {}),
        (lambda t: t.replace("-3e2", "\u2212300"), {}),
        (lambda t: t.replace("-3e2", "+-300").replace("+-", "-"), {}),
        (lambda t: t.replace("7", "+7"), {}),
        (lambda t: "\n".join(",".join(f'"{f}"' for f in line.split(",")) for line in t.split("\n") if line), {}),
    ],
)
@pytest.mark.usefixtures("engine")
def test_habits_of_programs(write, change, options):
    path = write(change(PLAIN))
    check_plain(read_table(path, "dx", **options))
    check_plain(read_table(path, 2, **options))
    check_plain(read_table(path, "2", **options))
    check_plain(read_table(path, drop=["dx"], **options))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "latin-1"])
def test_encodings(write, encoding):
    text = "id,größe,µ-opioid\nä,groß,1\nö,klein,2\nü,klein,4\n"
    for options in ({}, {"encoding": encoding}):
        table = read_table(write(text, encoding=encoding), "größe", **options)
        assert table.feature_names == ["µ-opioid"]
        assert table.sample_ids == ["ä", "ö", "ü"]
    assert any("latin-1" in note for note in table.notes) == (encoding == "latin-1")


@pytest.mark.parametrize("pack", ["gz", "bz2", "xz", "zip"])
def test_packed(write, pack):
    def zipped(data):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("inner.csv", data)
        return buffer.getvalue()

    content = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "zip": zipped}[pack](PLAIN.encode())
    check_plain(read_table(write(content, f"table.csv.{pack}"), "dx"))
    check_plain(read_table(write(content, "table.csv"), "dx"))  # told by its content
    random = np.random.default_rng(0).normal(size=(400, 5))
    long = "id,a,b,c,d,e\n" + "".join(f"s{i},{','.join(map(str, row))}\n" for i, row in enumerate(random))
    content = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "zip": zipped}[pack](long.encode())
    for part in (0.3, 0.7, 0.95):
        with pytest.raises(TableError, match=r"cut|damaged"):
            read_table(write(content[: int(len(content) * part)], f"table.csv.{pack}"))


def test_zip_of_two(tmp_path):
    with zipfile.ZipFile(tmp_path / "two.zip", "w") as archive:
        archive.writestr("a.csv", PLAIN)
        archive.writestr("b.csv", PLAIN)
    with pytest.raises(TableError, match=r"'two.zip': expected one file in the zip archive, got 'a.csv', 'b.csv'"):
        read_table(tmp_path / "two.zip")


@pytest.mark.usefixtures("engine")
class TestDecimals:
    def test_european_thousands(self, write):
        table = read_table(write("id;y;a\ns1;p;1.234,5\ns2;q;12.345.678\ns3;q;3,25\n"), "y")
        assert table.X[:, 0].tolist() == [1234.5, 12345678.0, 3.25]
        assert any("thousands" in note and "1.234,5" in note for note in table.notes)
        assert "decimal mark: comma" in table.notes

    def test_english_thousands(self, write):
        table = read_table(write('id,y,a\ns1,p,"1,234.5"\ns2,q,"12,345"\ns3,q,3.25\n'), "y")
        assert table.X[:, 0].tolist() == [1234.5, 12345.0, 3.25]

    def test_either_is_a_fraction_between_semicolons_and_a_thousand_between_commas(self, write):
        assert read_table(write("id;y;a\ns1;p;1,234\ns2;q;2,345\n"), "y").X[:, 0].tolist() == [
            np.float32(1.234), np.float32(2.345)]  # fmt: skip
        assert read_table(write('id,y,a\ns1,p,"1,234"\ns2,q,"2,345"\n'), "y").X[:, 0].tolist() == [1234.0, 2345.0]

    def test_given(self, write):
        path = write("id;y;a\ns1;p;1.234\ns2;q;2.345\n")
        assert read_table(path, "y").X[0, 0] == np.float32(1.234)
        assert read_table(path, "y", decimal=",").X[0, 0] == 1234

    def test_both_is_refused(self, write):
        with pytest.raises(TableError, match=r"both '1,5' and '2.5'.*decimal"):
            read_table(write("id;y;a\ns1;p;1,5\ns2;q;2.5\n"), "y")

    def test_a_late_comma_is_refused_with_advice(self, write):
        text = "id;y;a\n" + "".join(f"s{i};{'pq'[i % 2]};{i}\n" for i in range(300)) + "last;p;1,5\n"
        with pytest.raises(TableError, match=r"line 302, column 3 \('a'\): '1,5'; if these are numbers: decimal=','"):
            read_table(write(text), "y")


NASTY = [
    "<script>alert(1)</script>", '"quoted"', "it's", "=cmd|' /C calc'!A0", "@SUM(1)", "שלום \u202eabc", "a,b;c\td|e",
    "line\nbreak", "line\r\nbreak", "lone\rreturn", "x" * 10_000, "名前", "🧬", "nan", "1.5", "\\", "%s{0}", " spaced ",
    "a\x01b", "a\x1fb", "a\u2028b", "a\x0cb",
]  # fmt: skip


@pytest.mark.usefixtures("engine")
def test_hostile_names_survive(tmp_path):
    n = len(NASTY)
    made = Table(
        np.random.default_rng(0).normal(size=(n, n)).astype(np.float32), NASTY, [each.strip() for each in NASTY],
        np.array(["=1+1", "<b>"] * n, dtype=object)[:n],
    )  # fmt: skip
    path = tmp_path / "=cmd <b>'x'.csv"
    made.to_csv(path)
    table = read_table(path, "label")
    assert same(table, made)
    assert table.name == path.name
    assert len(repr(table)) < 300


values = st.one_of(st.floats(width=32, allow_nan=False, allow_infinity=False), st.integers(-(10**6), 10**6), st.none())


@pytest.mark.usefixtures("engine")
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_whatever_is_written_is_read(tmp_path, data):
    rows, columns = data.draw(st.integers(2, 6)), data.draw(st.integers(1, 5))
    delimiter, decimal = data.draw(st.sampled_from([(",", "."), ("\t", "."), (";", "."), (";", ","), ("|", ",")]))
    text = st.text(st.characters(codec="utf-8", exclude_characters="\0\r", exclude_categories=("Cs",)), max_size=8)
    names = data.draw(st.lists(text.filter(str.strip), min_size=columns, max_size=columns, unique_by=str.strip))
    cells = [[data.draw(values) for _ in range(columns)] for _ in range(rows)]
    buffer = io.StringIO(newline="")
    writer = csv.writer(
        buffer, delimiter=delimiter, lineterminator=data.draw(st.sampled_from(["\n", "\r\n"])),
        quoting=data.draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])),
    )  # fmt: skip
    writer.writerow(["the sample", "the label", *names])
    for i, row in enumerate(cells):
        shown = ["" if value is None else repr(value).replace(".", decimal) for value in row]
        writer.writerow([f"s{i}", "pq"[i % 2], *shown])
    path = tmp_path / "drawn.csv"
    path.write_text(buffer.getvalue(), encoding="utf-8", newline="")
    with np.errstate(over="ignore"):
        wanted = np.array([[np.nan if value is None else value for value in row] for row in cells]).astype(np.float32)
    options = {"delimiter": delimiter, "decimal": decimal, "index": 1, "encoding": "utf-8"}
    varies = [j for j in range(columns) if len(set(wanted[~np.isnan(wanted[:, j]), j])) > 1]
    if not varies:
        with pytest.raises(TableError, match="every feature is constant or missing"):
            read_table(path, 2, **options)
        return
    table = read_table(path, 2, **options)
    np.testing.assert_array_equal(table.X, wanted[:, varies])
    assert table.feature_names == [names[j] for j in varies]


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(st.sampled_from(["1", "-2.5", "NA", "", " 3", "+4", "1e-3", "1e39", "inf", "x", "1_0", "?"]),
                         min_size=2, max_size=2), min_size=2, max_size=8))  # fmt: skip
def test_both_engines_agree(tmp_path, monkeypatch, rows):
    from normball.data import _numbers

    path = tmp_path / "agree.csv"
    path.write_text("id,a,b\n" + "".join(f"s{i},{','.join(row)}\n" for i, row in enumerate(rows)), encoding="utf-8")

    def outcome():
        try:
            return read_table(path, decimal=".").X.tolist()
        except TableError as error:
            return str(error)

    first = outcome()
    with monkeypatch.context() as patch:
        patch.setattr(_numbers, "pyarrow", None)
        second = outcome()
    np.testing.assert_equal(first, second)


def test_batches(tmp_path, monkeypatch, engine):
    """Small batches give what one large one gives, wherever the text columns stand."""
    from normball.data import _body

    random = np.random.default_rng(1)
    X = random.normal(size=(50, 7)).astype(np.float32)
    X[random.random(X.shape) < 0.1] = np.nan
    for places in ([0, 1], [0, 8], [3, 5], [7, 8], [4, 0]):
        path = tmp_path / "order.csv"
        with path.open("w", encoding="utf-8") as file:
            order = [None] * 9
            order[places[0]], order[places[1]] = "key", "dx"
            free = iter(range(7))
            order = [next(free) if each is None else each for each in order]
            file.write(",".join(f"f{each}" if isinstance(each, int) else each for each in order) + "\n")
            for i, row in enumerate(X):
                special = {"key": f"s{i}", "dx": "ab"[i % 2]}
                file.write(",".join(special[e] if isinstance(e, str) else str(row[e]) for e in order) + "\n")
        whole = read_table(path, "dx", index="key")
        monkeypatch.setattr(_body, "_BATCH", 200)
        parts = read_table(path, "dx", index="key")
        monkeypatch.undo()
        if engine == "plain":
            monkeypatch.setattr("normball.data._numbers.pyarrow", None)
        assert same(whole, parts)
        np.testing.assert_array_equal(whole.X, X)
        assert whole.sample_ids[:2] == ["s0", "s1"]
