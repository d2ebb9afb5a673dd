"""What reaches the docs: full runs alone, never the user's tables, and other machines under their own names."""

import importlib.util
import json
from pathlib import Path

import pytest

from normball.experiments.registry import experiments

SCRIPT = Path(__file__).resolve().parents[2] / "docs" / "publish_reproduction.py"


@pytest.fixture
def publish(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("publish_reproduction", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
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
