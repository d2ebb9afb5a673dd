import html.parser
import json
import re
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

import normball.report
from normball.report import write_report
from tests.report.synthetic import make_study

FIGURES = {
    "methods",
    "latent",
    "path",
    "ranking",
    "heatmap",
    "boxes",
    "confusion",
    "roc",
    "calibration",
    "losses",
    "permutations",
}


class Parsed(html.parser.HTMLParser):
    """The elements of a page and the text in them, as a browser would see them."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.texts, self.last = [], {}, None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        self.last = dict(attributes).get("id")

    def handle_data(self, text):
        if self.last:
            self.texts[self.last] = self.texts.get(self.last, "") + text


@pytest.fixture(scope="module")
def pages(tame, nasty):
    return {name: path.read_text(encoding="utf-8") for name, (_, path) in (("tame", tame), ("nasty", nasty))}


@pytest.mark.parametrize("which", ["tame", "nasty"])
def test_the_page_asks_for_nothing_outside_itself(pages, which):
    page = Parsed(pages[which])
    for tag, attributes in page.elements:
        for key in ("src", "href", "srcset", "action", "data", "poster"):
            value = attributes.get(key)
            assert value is None or value.startswith(("data:", "#")), (tag, key, value[:80])
        assert not [key for key in attributes if key.startswith("on")], (tag, attributes)
    assert sum(tag == "script" for tag, _ in page.elements) == 3
    assert any("default-src 'none'" in a.get("content", "") for tag, a in page.elements if tag == "meta")


def test_names_are_text_whatever_they_say(nasty, pages):
    study, _ = nasty
    page = Parsed(pages["nasty"])
    assert not {"b", "u", "a", "i"} & {tag for tag, a in page.elements if "href" not in a}
    data = json.loads(page.texts["data"])
    assert data["features"]["feature"].count("x" * 10_000) == 1
    assert set(study.features["feature"]) - set(data["features"]["feature"]) <= {
        name for name in study.features["feature"] if re.search("[\x00\n\ud800]", name)
    }
    assert "{{ 7 * 7 }}" in str(data["features"]["feature"])


def test_all_figures_are_there_and_sound(tame, nasty):
    for study, path in (tame, nasty):
        wanted = FIGURES if study.permutations else FIGURES - {"permutations"}
        assert {p.name for p in (path.parent / "figures").iterdir()} == {
            f"{n}.{k}" for n in wanted for k in ("svg", "png")
        }
        for name in wanted:
            svg = (path.parent / "figures" / f"{name}.svg").read_bytes()
            elements = {element.tag.rpartition("}")[2] for element in ET.fromstring(svg).iter()}
            assert not elements & {"script", "a", "foreignObject"}
            assert (path.parent / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert not list(path.parent.rglob("*.part"))


def test_the_size_stays_within_bounds(tame):
    assert tame[1].stat().st_size < 8_000_000


def test_the_same_study_gives_the_same_bytes(tmp_path, monkeypatch):
    from normball.report import figures

    study = make_study(n=40, d=20)
    monkeypatch.setattr(figures, "FIGURES", {name: figures.FIGURES[name] for name in ("methods", "boxes")})
    first, second = (write_report(study, tmp_path / name) for name in ("a", "b"))
    for path in first.parent.rglob("*.*"):
        assert path.read_bytes() == (second.parent / path.relative_to(first.parent)).read_bytes(), path.name


def test_a_report_replaces_another_and_a_failed_one_leaves_it(tmp_path, monkeypatch):
    monkeypatch.setattr("normball.report.figures.FIGURES", {})  # figures are tested elsewhere
    study = make_study(n=40, d=20, permutations=5)
    path = write_report(study, tmp_path / "made" / "here")
    before = path.read_bytes()
    broken = replace(study, settings={**study.settings, "versions": None})
    with pytest.raises(AttributeError):
        write_report(broken, path.parent)
    assert path.read_bytes() == before
    write_report(replace(study, notes=["another note"]), path.parent)
    assert b"another note" in path.read_bytes()
    assert [p.name for p in path.parent.iterdir() if p.is_file()] == ["report.html"]


def test_figures_of_an_earlier_run_go_away(tmp_path, monkeypatch):
    from normball.report import figures

    monkeypatch.setattr(figures, "FIGURES", {"permutations": figures.FIGURES["permutations"]})
    study = make_study(n=40, d=20, permutations=5)
    write_report(study, tmp_path)
    assert (tmp_path / "figures" / "permutations.svg").exists()
    write_report(replace(study, permutations=[]), tmp_path)
    assert not (tmp_path / "figures" / "permutations.svg").exists()


def test_without_the_extra_it_says_which(tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("normball.report.page")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr(normball.report, "page", raising=False)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r"pip install normball\[report\]"):
        write_report(make_study(n=40, d=20), tmp_path)
