"""One palette for pages and figures: colours after Okabe and Ito, which colour-blind people tell apart; symbols."""

__all__ = ["COLOURS", "MATPLOTLIB_SYMBOLS", "SYMBOLS"]

COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6D00", "#777777"]
SYMBOLS = ["circle", "square", "diamond", "triangle-up", "triangle-down", "pentagon", "star", "hexagon"]
MATPLOTLIB_SYMBOLS = ["o", "s", "D", "^", "v", "p", "*", "h"]
