"""``python -m normball`` is the ``normball`` command."""

from normball.cli import main

main()
