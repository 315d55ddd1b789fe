"""What the rooms below read with: a user's parts and media, cables, single figures."""

from topo.catalogue.cables import cable_rate, parse_cable, read_cable
from topo.catalogue.caps import read_caps
from topo.catalogue.figures import Origin, read_figure, rejoin
from topo.catalogue.media import read_media, read_medium
from topo.catalogue.memory import memory_bus_rate, memory_headline_rate
from topo.catalogue.parts import UserParts, find_part, read_part, read_parts, vary_part

__all__ = [
    "Origin",
    "UserParts",
    "cable_rate",
    "find_part",
    "memory_bus_rate",
    "memory_headline_rate",
    "parse_cable",
    "read_cable",
    "read_caps",
    "read_figure",
    "read_media",
    "read_medium",
    "read_part",
    "read_parts",
    "rejoin",
    "vary_part",
]
