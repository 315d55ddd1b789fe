"""`python -m topo` is the command `topo`."""

import gc
import os
import sys


def run() -> None:
    """Run the command line and leave the process."""
    # A command is over before there is garbage worth collecting, and collecting while modules load
    # takes a tenth of the time that a short verb has.
    gc.set_threshold(100_000, 50, 50)
    try:
        from topo.cli.program import main

        code = main()
    except KeyboardInterrupt:  # while modules load; later `main` sees to it
        os._exit(130)
    if sys.stderr is not None:
        sys.stderr.flush()
    # All is written. Taking two hundred modules apart, which Python would do now, takes as long as
    # starting it: the operating system is quicker.
    os._exit(code)


if __name__ == "__main__":
    run()
