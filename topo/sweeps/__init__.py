"""Sweeps run: by whom their designs are answered, and where the rows are kept meanwhile."""
