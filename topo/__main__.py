"""`python -m topo` is the command `topo`."""

import sys

from topo.cli import main

if __name__ == "__main__":
    sys.exit(main())
