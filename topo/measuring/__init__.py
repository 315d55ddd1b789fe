"""Measured rates of other programs, laid over a topology."""
