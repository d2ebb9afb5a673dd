"""What keeps the documentation true; exits with 1 and says why where it is not. Run by ``make examples``.

- every public name has a docstring and stands in docs/api.md;
- the examples in the README and in docs/*.md give what they show;
- the tree pictured in docs/architecture.md is the tree on disk.
"""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PUBLIC = ("normball", "normball.nn", "normball.reference", "normball.estimators", "normball.omics")
PUBLIC += ("normball.data", "normball.selection", "normball.report")
PICTURED = ("cpp", "src/normball")  # every file there must be in the picture


def undocumented() -> list[str]:
    """Public names without a docstring, or missing from the API page."""
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\.\. (?:autofunction|autoclass|py:data):: (\S+)", page, re.MULTILINE))
    faults = []
    for module in map(importlib.import_module, PUBLIC):
        for name in module.__all__:
            full, thing = f"{module.__name__}.{name}", getattr(module, name)
            if full not in listed:
                faults.append(f"{full} is public, but not in docs/api.md")
            if not (inspect.isclass(thing) or inspect.isfunction(thing)):
                continue
            members = vars(thing).items() if inspect.isclass(thing) else ()
            for path, each in ((full, thing), *((f"{full}.{n}", m) for n, m in members if not n.startswith("_"))):
                documentable = inspect.isclass(each) or inspect.isfunction(each) or isinstance(each, property)
                if documentable and not inspect.getdoc(each):
                    faults.append(f"{path} is public, but has no docstring")
    return faults


def examples(path: Path) -> list[str]:
    """Run the ``>>>`` examples in the fenced blocks of a page, in order, as one session."""
    text = path.read_text(encoding="utf-8")
    fences = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    # Everything else becomes blank lines, so that failures tell the right line.
    blank, at = "", 0
    for fence in fences.finditer(text):
        blank += "\n" * text.count("\n", at, fence.start(1)) + fence.group(1)
        at = fence.end(1)
    name = path.relative_to(ROOT).as_posix()
    test = doctest.DocTestParser().get_doctest(blank, {}, name, name, 0)
    failed = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test).failed
    return [f"{name}: {failed} examples failed"] if failed else []


def wrong_picture() -> list[str]:
    """Compare the tree in docs/architecture.md with the one on disk."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    lines = page.split("```text\n")[1].split("```")[0].splitlines()
    folders: list[str] = []
    named: set[str] = set()
    for line in lines:
        depth = (len(line) - len(line.lstrip())) // 2
        names = re.split(r"\s{2,}", line.strip())[0].split()
        folders[depth:] = []
        named.update("/".join([*folders, name.rstrip("/")]) for name in names)
        folders.append(names[0].rstrip("/"))
    faults = [
        f"docs/architecture.md names {name}, which does not exist" for name in named if not (ROOT / name).exists()
    ]
    opened = {str(Path(name).parent.as_posix()) for name in named}  # folders whose content is spelt out
    for top in PICTURED:
        for path in (ROOT / top).rglob("*.*"):
            relative = path.relative_to(ROOT)
            hidden = path.name in ("__init__.py", "py.typed") or path.suffix not in (".cpp", ".hpp", ".py", ".pyi")
            if not hidden and relative.parent.as_posix() in opened and relative.as_posix() not in named:
                faults.append(f"{relative} is not in the picture of docs/architecture.md")
    return faults


def main() -> int:
    """Check all, report all."""
    faults = undocumented() + wrong_picture()
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    for page in pages:
        faults += examples(page)
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
