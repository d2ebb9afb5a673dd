"""Two studies that the tests look at: a large tame one, and one in which every name is meant to do harm."""

import pytest

from normball.report import write_report
from tests.report.synthetic import make_study

NASTY = [
    "<script>window.harmed=1</script>",
    "</script><script>window.harmed=1</script>",
    '<img src=x onerror="window.harmed=1">',
    '<a href="javascript:window.harmed=1">click</a>',
    '"><b>bold</b>',
    "=cmd|' /C calc'!A0",
    "@SUM(1+1)*cmd",
    "-2+3",
    " +1",
    "שלום עולם",
    "\u202egnp.exe",
    "x" * 10_000,
    "$\\frac{1}{2}$ and $",
    "%{x} {{ 7 * 7 }} {% raw %} ${1}",
    "&lt;b&gt; &amp;",
    "line\nend\ttab",
    "_hidden",
    "nul\x00",
    " ",
    "half \ud800",
    "Ünï-漢字-😀",
    "--><!-- ]]>",
    "a<br>b",
    "a,b;c\"d'e",
]
LONG = "x" * 10_000


@pytest.fixture(scope="session")
def tame(tmp_path_factory):
    study = make_study(
        n=90, d=20_000, classes=("control", "tumour", "third"), shift=2.0, n_selected=30, permutations=20
    )
    folder = tmp_path_factory.mktemp("tame")
    return study, write_report(study, folder)


@pytest.fixture(scope="session")
def nasty(tmp_path_factory):
    names = NASTY + [f"{name} again" for name in NASTY]
    study = make_study(
        n=len(names), d=len(names), classes=('<b onclick="window.harmed=1">ill</b>', "y" * 10_000), names=names,
        samples=[f"{name}." for name in names], n_selected=len(names), table="<img src=x onerror=window.harmed=1>.csv",
        shift=0.5,
    )  # fmt: skip
    study.settings["target"] = '"><script>window.harmed=1</script>'
    study.settings["<i>key</i>"] = {"half \ud800": "<i>value</i>"}
    study.notes.append("2 features left out: \u202eabc, def")
    study.notes.append("<u>3</u> features left out: " + ", ".join(names))
    folder = tmp_path_factory.mktemp("nasty")
    return study, write_report(study, folder)
