"""Machines discovered: what tools and operating systems say of one becomes a topology file.

An importer turns bytes into a `Machine`; from there all go the same way: YAML text, read by the
same rules as everybody's, so that an imported machine is a topology like any other.
"""
