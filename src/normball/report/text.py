"""Names from a table as text that nothing can mistake for code, markup or a formula.

Names are data of strangers. In HTML they are escaped by Jinja, or set as the text of a node; in scripts they travel as
JSON; in figures they are shortened and never read as mathematics.
"""

import json
import unicodedata
from typing import Any

__all__ = ["clean", "percent", "script_json", "short"]

_BROKEN = "\N{REPLACEMENT CHARACTER}"
_TURNING = {"R", "AL", "RLE", "LRE", "RLO", "LRO", "PDF", "RLI", "LRI", "FSI", "PDI"}


def clean(text: Any) -> str:
    r"""Return text without control characters and lone halves of characters, which no page and no SVG may hold.

    Line ends and tabs become spaces.

    Examples
    --------
    >>> from normball.report.text import clean
    >>> clean("TP53\x00")
    'TP53�'
    """
    whole = str(text)
    if whole.isascii() and whole.isprintable():  # the usual name, quickly
        return whole
    return "".join(" " if c in "\t\r\n" else _BROKEN if unicodedata.category(c) in ("Cc", "Cs") else c for c in whole)


def short(text: Any, limit: int = 40) -> str:
    """Return the beginning of a long text, with an ellipsis; a name for what has none.

    Text that turns the direction of writing is closed in itself, so that it cannot turn the sentence around it.

    Examples
    --------
    >>> from normball.report.text import short
    >>> short("interleukin 6 receptor", 12)
    'interleukin…'
    """
    kept = clean(text)
    if not kept.strip():
        return "(no name)"
    kept = kept if len(kept) <= limit else kept[: limit - 1].rstrip() + "…"
    turns = any(unicodedata.bidirectional(c) in _TURNING for c in kept)
    return f"\N{FIRST STRONG ISOLATE}{kept}\N{POP DIRECTIONAL ISOLATE}" if turns else kept


def percent(share: float) -> str:
    r"""Write a share in per cent, with one digit behind the point.

    Examples
    --------
    >>> from normball.report.text import percent
    >>> percent(0.9123)
    '91.2\xa0%'
    """
    return f"{100.0 * share:.1f}\N{NO-BREAK SPACE}%"


def script_json(data: Any) -> str:
    r"""Return JSON in pure ASCII that can stand inside a ``<script>`` element, whatever its strings say.

    Examples
    --------
    >>> from normball.report.text import script_json
    >>> print(script_json({"name": "</script>"}))
    {"name":"\u003c/script\u003e"}
    """
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
