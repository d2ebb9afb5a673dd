"""What a cell says: a number, nothing, or text."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

__all__ = ["MISSING", "UNLABELLED", "Cells", "looks"]

MISSING = frozenset(
    {"", "NA", "N/A", "n/a", "na", "NaN", "nan", "NAN", "-nan", "-NaN", "null", "NULL", "Null", "None", "none", "nil"}
    | {"#N/A", "#NA", "#N/A N/A", "#NUM!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NULL!", "<NA>", "NaT"}
    | {"?", "-", "--", "---", ".", "..", "missing", "Missing"}
)
# In a label, "-" is the opposite of "+", and "none" may be a treatment.
UNLABELLED = frozenset(("", "NA", "N/A", "#N/A", "NaN", "nan", "null", "NULL", "<NA>", "NaT", "?"))

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?inf(inity)?", re.IGNORECASE | re.ASCII)
_GROUPED = {
    ".": re.compile(r"[+-]?[1-9]\d{0,2}(?P<mark>[,'\u00a0\u202f ])\d{3}((?P=mark)\d{3})*(\.\d*)?", re.ASCII),
    ",": re.compile(r"[+-]?[1-9]\d{0,2}(?P<mark>[.'\u00a0\u202f ])\d{3}((?P=mark)\d{3})*(,\d*)?", re.ASCII),
}


def looks(text: str, decimal: str) -> str:
    """Return ``"plain"`` for a number, ``"grouped"`` for one with thousands marks, or ``""``."""
    text = text.strip()
    swapped = text if decimal == "." else text.replace(".", "x").replace(",", ".")
    if _NUMBER.fullmatch(swapped):
        return "plain"
    return "grouped" if _GROUPED[decimal].fullmatch(text) else ""


@dataclass
class Cells:
    """How the cells of one file are read. Numbers with thousands marks count only where `grouping` allows them."""

    decimal: str = "."
    grouping: bool = False
    missing: frozenset[str] = MISSING
    grouped: list[str] = field(default_factory=list)  # the first few that were read so

    def number(self, text: str) -> float | None:
        """Return the number in `text`, NaN where it says that there is none, None where it is text."""
        text = text.strip().replace("\u2212", "-")
        if text in self.missing:
            return math.nan
        kind = looks(text, self.decimal)
        if kind == "plain":
            return float(text.replace(",", "."))
        if kind == "grouped" and self.grouping:
            if len(self.grouped) < 3:
                self.grouped.append(text)
            return float(re.sub(f"[^-+0-9{self.decimal}]", "", text).replace(",", "."))
        return None
