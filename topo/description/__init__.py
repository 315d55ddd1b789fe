"""A description of a machine: what a file says, read from YAML, validated and frozen."""
