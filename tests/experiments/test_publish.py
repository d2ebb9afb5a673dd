"""What reaches the docs: full runs alone, never the user's tables, and other machines under their own names."""

import importlib.util
import io
import json
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from matplotlib.path import Path as Outline

from normball.experiments.registry import experiments
from normball.experiments.style import log_axes, panels, styled

SCRIPT = Path(__file__).resolve().parents[2] / "docs" / "publish_reproduction.py"


@pytest.fixture
def script():
    spec = importlib.util.spec_from_file_location("publish_reproduction", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def publish(script, tmp_path, monkeypatch):
    module = script
    root = tmp_path / "root"
    (root / "docs" / "images").mkdir(parents=True)
    (root / "README.md").write_text(f"before\n{module.BEGIN}\nold\n{module.END}\nafter\n")
    monkeypatch.setattr(module, "ROOT", root)

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["publish", *map(str, arguments)])
        return module.main()

    return root, run


def written(folder, *, quick=False, busy=0.0, cpu="This CPU", without=(), unmeasured=()):
    folder.mkdir()
    packages = {"numpy": "2", "torch": "2"}
    environment = {"cpu": cpu, "cpus": 2, "instruction_set": "avx2", "gpu": None, "python": "3", "normball": "0"}
    environment |= {"packages": packages, "quick": quick, "others_cpus": busy}
    (folder / "environment.json").write_text(json.dumps(environment))
    verdicts = []
    for each in experiments().values():
        if each.id in without:
            continue
        outcome = "not measured" if each.id in unmeasured else "does not hold"
        told = {"id": each.id, "title": each.title, "place": each.place, "claim": each.claim, "rule": each.rule}
        told |= {"says": "", "outcome": outcome, "here": f"here {each.id}", "default": "", "remedy": "", "table": None}
        if each.id.startswith("table"):
            told["table"] = {"columns": ["a", "b"], "data": [["x", 1]]}
        verdicts.append(told)
        if outcome != "not measured":
            text = f"<svg><metadata>\nx</metadata><path d='M 1.23456 2'/>{cpu}</svg>"
            (folder / f"{each.stem}.svg").write_text(text)
    (folder / "verdicts.json").write_text(json.dumps(verdicts))
    return folder


def test_a_full_run_is_published(publish, tmp_path):
    root, run = publish
    assert run(written(tmp_path / "paper", unmeasured=["fig:gpu"])) == 0
    page = (root / "docs" / "reproduction_numbers.md").read_text()
    assert "This CPU, 2 CPUs, avx2" in page
    assert "| [Sparsity against the radius](#sparsity-against-the-radius) |" in page
    assert "images/paper-fig-radius.svg" in page
    assert "images/paper-fig-gpu.svg" not in page
    assert "| x | 1 |" in page
    assert (root / "docs" / "images" / "paper-fig-radius.svg").read_text() == "<svg><path d='M 1.23 2'/>This CPU</svg>"
    readme = (root / "README.md").read_text()
    assert readme.startswith("before\n")
    assert readme.endswith("\nafter\n")
    assert "old" not in readme
    assert "docs/images/paper-fig-sparsity.svg" in readme


def logarithmic_figure():
    """A picture as the experiments draw them: small numbers on logarithmic axes, a marker that is scaled, a title."""
    with styled("test"):
        figure, [axes] = panels(1)
        x = np.geomspace(0.0003, 20.0, 9)
        axes.plot(x, 1 / x, marker="o", label="0.12345")
        axes.plot(x, x, marker=Outline([(0.0001234, 0.0), (1.0, 0.5), (0.0, 1.0)]))
        log_axes(axes, "xy")
        axes.set_title("1000 x 500, x > 0.0625 & 0.00390625 < 1")
        axes.set_xlabel('d="0.00123" x="0.00456" here')
        axes.legend()
        text = io.StringIO()
        figure.savefig(text, format="svg")
    return text.getvalue()


def test_only_coordinates_lose_digits(script):
    before = logarithmic_figure()
    after = script.slim(before)
    assert len(after) < 0.95 * len(before)
    assert "<metadata" not in after
    old, new = (ET.fromstring(svg) for svg in (before, after))
    old.remove(old.find("{*}metadata"))
    for mine, yours in zip(old.iter(), new.iter(), strict=True):
        assert (mine.tag, mine.text, mine.tail) == (yours.tag, yours.text, yours.tail) or mine is old
        assert list(mine.attrib) == list(yours.attrib)
        for name, value in mine.attrib.items():
            if name not in ("d", "x", "y", "width", "height"):
                assert yours.attrib[name] == value, name
    texts = [each.text for each in new.findall(".//{*}text")]
    assert {"0.001", "0.01", "0.12345", "1000 x 500, x > 0.0625 & 0.00390625 < 1"} <= set(texts)
    assert 'd="0.00123" x="0.00456" here' in texts
    assert all(len(use.get("x").partition(".")[2]) <= 2 for use in new.findall(".//{*}use"))


def test_tables_of_the_user_stay_with_the_user(publish, tmp_path):
    root, run = publish
    assert run(written(tmp_path / "paper")) == 0
    page = (root / "docs" / "reproduction_numbers.md").read_text()
    assert "Biological tables" not in page
    assert "table:biology" not in page
    assert not list((root / "docs" / "images").glob("*biology*"))


def test_another_machine_fills_in_under_its_own_name(publish, tmp_path):
    root, run = publish
    first = written(tmp_path / "paper", unmeasured=["fig:gpu"])
    assert run(first, written(tmp_path / "other", cpu="Other CPU")) == 0
    page = (root / "docs" / "reproduction_numbers.md").read_text()
    assert page.count("Other CPU") == 1
    assert "Other CPU" in (root / "docs" / "images" / "paper-fig-gpu.svg").read_text()
    assert "This CPU" in (root / "docs" / "images" / "paper-fig-radius.svg").read_text()


@pytest.mark.parametrize(
    ("run_of", "said"),
    [({"quick": True}, "a quick run"), ({"without": ["fig:J"]}, "without fig:J"), ({"busy": 0.9}, "busy")],
)
def test_what_must_not_be_quoted_is_refused(publish, tmp_path, capsys, run_of, said):
    root, run = publish
    assert run(written(tmp_path / "paper", **run_of)) == 1
    assert said in capsys.readouterr().err
    assert not list((root / "docs").glob("*.md"))
    assert run(tmp_path / "paper", "--force") == (0 if "busy" in run_of else 1)
