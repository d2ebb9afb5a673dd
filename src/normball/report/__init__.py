"""The report of a study: one page that works offline, and the figures as files.

Needs Jinja2, plotly and matplotlib: ``pip install normball[report]``.
"""

import os
from pathlib import Path

from normball.report.summary import summarise
from normball.selection.files import write_bytes
from normball.selection.results import Study

__all__ = ["write_report"]


def write_report(study: Study, folder: str | os.PathLike[str]) -> Path:
    """Write ``report.html`` and ``figures/*.svg`` and ``*.png`` into a folder, which is made if it is not there.

    The page holds all it needs: it opens by a double click, without a network. Each file appears whole or not at all,
    and the same study gives the same bytes.

    Parameters
    ----------
    study : normball.selection.results.Study
        What the selection found.
    folder : path
        Where to write.

    Returns
    -------
    Path
        Of the page.
    """
    try:
        from normball.report.figures import FIGURES, draw, image
        from normball.report.page import page
        from normball.report.payload import payload
    except ImportError as error:
        raise ImportError(f"the report needs an extra: pip install normball[report]  ({error})") from error
    summary = summarise(study)
    data = payload(study, summary)
    figures = Path(folder) / "figures"
    figures.mkdir(parents=True, exist_ok=True)
    stills: dict[str, bytes] = {}
    for name in FIGURES:
        figure = draw(name, data)
        for kind in ("svg", "png"):
            path = figures / f"{name}.{kind}"
            if figure is None:
                path.unlink(missing_ok=True)  # left by an earlier run with other options
                continue
            made = image(figure, kind)
            write_bytes(path, made)
            if kind == "svg":
                stills[name] = made
    path = Path(folder) / "report.html"
    write_bytes(path, page(study, summary, data, stills).encode("utf-8"))
    return path
