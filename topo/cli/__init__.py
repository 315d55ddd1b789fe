"""The command line: one file a verb, imported when it is called."""

import gc

# A command is over before there is garbage worth collecting, and collecting while modules load
# takes a tenth of the time that a short verb has.
gc.set_threshold(100_000, 50, 50)

from topo.cli.program import main  # noqa: E402  (the threshold is for what this loads)

__all__ = ["main"]
