"""Demands on shared resources: fair rates, the largest total, completion times, certificates."""
