"""Locality as others see it: NCCL's path types and bandwidths, the GDS driver's distances."""

from topo.topology.rules.gds import gds_ranking
from topo.topology.rules.nccl import nccl_graph, nccl_matrix

__all__ = ["gds_ranking", "nccl_graph", "nccl_matrix"]
