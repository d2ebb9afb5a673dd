"""One file per solver, each with a ``SOLVER``."""
