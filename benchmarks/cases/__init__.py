"""One file per case, each with a ``TITLE`` and a function ``run(bench)`` that emits records."""
