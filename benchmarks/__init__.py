"""How long a projection takes, as a ratio to a copy of the same matrix. Run with ``python -m benchmarks.run``."""
