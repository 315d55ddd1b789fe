"""The named ways of moving data between storage and GPU, as lists of moves, and their counts."""

from topo.datapaths.count import Counts, count, is_ram
from topo.datapaths.load import built_in, data_path, data_paths
from topo.description.vocabulary import BUILT_IN

__all__ = [
    "BUILT_IN",
    "Counts",
    "built_in",
    "count",
    "data_path",
    "data_paths",
    "is_ram",
]
