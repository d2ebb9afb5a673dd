"""The house rules on imports: a light front door, and rooms that look only to their left."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "normball"

HEAVY = ("torch", "sklearn", "scipy", "pandas", "matplotlib")

# Leaves stand beside the line and import nothing of the house but what is named here.
LEAVES = {"_version": set(), "_info": set(), "_spelling": set(), "_validate": {"_info"}, "reference": set()}
LEAVES["data"] = {"_spelling"}
# Each room may import the rooms before it; those on one step do not see each other.
LINE = [
    {"_core"},
    {"backends"},
    {"_dispatch"},
    {"balls"},
    {"nn"},
    {"estimators"},
    {"selection", "omics"},
    {"report"},
    {"experiments"},
    {"cli"},
]
USES_THE_PUBLIC_NAMES = {"cli", "experiments", "__main__"}


def allowed(room):
    if room in LEAVES:
        return LEAVES[room]
    if room in ("__init__", "__main__"):
        return set().union(*LINE) | set(LEAVES)
    step = next(i for i, rooms in enumerate(LINE) if room in rooms)
    return set().union(*LINE[:step]) | set(LEAVES)


def room_of(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".pyi").removesuffix(".py")


def imports_of(path):
    """Each imported module as dotted names, relative ones made absolute; `from normball import x` gives normball.x."""
    package = ["normball", *path.relative_to(SOURCE).parts[:-1]]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{base}.{alias.name}" if base == "normball" else base for alias in node.names)


FILES = sorted(path for path in SOURCE.rglob("*.py*") if path.suffix in (".py", ".pyi"))


def test_the_house_is_found():
    assert SOURCE / "__init__.py" in FILES
    assert any(room_of(path) == "reference" for path in FILES)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_imports_point_one_way(path):
    room = room_of(path)
    known = set(LEAVES) | set().union(*LINE) | {"__init__", "__main__"}
    assert room in known, f"a new room, {room}: say in this test where it stands"
    for name in imports_of(path):
        parts = name.split(".")
        if parts[0] != "normball":
            continue
        target = parts[1] if len(parts) > 1 else "__init__"
        if target not in known:  # a name of the package itself, such as `from normball import project_l1inf`
            target = "__init__"
        if target == "__init__":
            assert room in USES_THE_PUBLIC_NAMES, f"{room} imports from the front door: {name}"
        elif target != room:
            assert target in allowed(room), f"{room} must not import {name}"


@pytest.mark.parametrize("path", [p for p in FILES if room_of(p) == "reference"], ids=lambda path: path.name)
def test_the_references_need_numpy_alone(path):
    for name in imports_of(path):
        top = name.split(".")[0]
        assert top == "numpy" or top in sys.stdlib_module_names or name.startswith("normball.reference"), name


def test_the_front_door_is_light():
    program = f"import sys, normball; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_the_front_door_shows_what_it_has():
    import normball

    wanted = {"project_l1inf", "norm_l1inf", "norm_linf1", "prox_linf1", "L1InfBall", "ProjectionInfo"}
    assert wanted <= set(normball.__all__)
    for name in normball.__all__:
        assert getattr(normball, name).__doc__ or name.startswith("__"), f"{name} has no docstring"
