"""The command line: one file for each command, and the only code that prints.

Needs typer and rich: ``pip install normball[cli]``.
"""

import sys


def main() -> None:
    """Run the ``normball`` command."""
    try:
        from normball.cli.app import app
    except ImportError as error:
        sys.exit(f"normball: the command line needs an extra: pip install normball[cli]  ({error})")
    except KeyboardInterrupt:
        sys.exit(130)
    app()
