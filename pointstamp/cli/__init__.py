"""The command line: motifs, triangles and cliques of a graph."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; what `pointstamp` calls. Ends the process with its status."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        # Nothing is imported for this, so that it answers at once.
        from pointstamp import __version__

        print(f"pointstamp {__version__}")
        return
    from pointstamp.cli.app import app

    app()
