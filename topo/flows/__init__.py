"""Workloads to demands, and demands to the use matrix that the solvers take."""
