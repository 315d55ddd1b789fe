"""The command line: one file a verb, imported when it is called."""

from topo.cli.program import main

__all__ = ["main"]
