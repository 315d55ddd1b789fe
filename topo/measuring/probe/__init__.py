"""Copies and reads that this host runs itself, so that guesses of its file are settled.

For GPUs it needs NVIDIA's driver and `cuda.bindings` (the extra `probe`); copies by cores and
reads of drives need neither.
"""
