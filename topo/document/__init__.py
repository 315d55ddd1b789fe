"""YAML text into a tree that knows line and column.

>>> from topo.document import parse
>>> document = parse("topo: 1", name="box.yaml")
>>> str(document.root.get("topo").place)
'box.yaml:1:7'
"""

from topo.document.nodes import Document, Mapping, Node, Scalar, Sequence
from topo.document.parse import parse
from topo.document.report import Report

__all__ = ["Document", "Mapping", "Node", "Report", "Scalar", "Sequence", "parse"]
