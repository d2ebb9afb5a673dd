"""One palette for pages and figures: colours after Okabe and Ito, which colour-blind people tell apart; symbols.

Beyond eight classes the colours come again with other symbols: `turn` says with which.
"""

__all__ = ["COLOURS", "MATPLOTLIB_SYMBOLS", "SYMBOLS", "turn"]

COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6D00", "#777777"]
SYMBOLS = ["circle", "square", "diamond", "triangle-up", "triangle-down", "pentagon", "star", "hexagon"]
MATPLOTLIB_SYMBOLS = ["o", "s", "D", "^", "v", "p", "*", "h"]


def turn(i: int) -> int:
    """Return the place of the symbol of class ``i``: one further for each time that the colours begin again."""
    return (i + i // len(COLOURS)) % len(SYMBOLS)
