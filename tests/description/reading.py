"""What the tests of reading share: texts in, findings or a plain form out."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import pytest

from topo.description.loading import describe
from topo.document.nodes import Report
from topo.document.parse import parse
from topo.errors import TopoError

# Example files beside the project. Named here, not globbed: an empty set of parameters is an error.
SHARED = Path(__file__).resolve().parents[3] / "shared" / "examples"
EXAMPLES = (
    "custom",
    "dgx-a100",
    "dgx-h100",
    "gb200-tray",
    "l40s",
    "mi300x",
    "pod",
    "workstation",
)
needs_examples = pytest.mark.skipif(
    not SHARED.is_dir(), reason="NO EXAMPLES: ../shared/examples is not beside this checkout"
)

BOX = """\
topo: 1
name: box
devices:
  storage: nvme-of-target
  slot[1-2]: connectx-7-dual-port
  cpu[0-1]: {part: xeon-8480c, numa: [0-3, 4-7]}
  ram[0-1]: {part: ddr5-4800, channels: 8}
  gpu[0-7]: h100-sxm-80gb
  nvme[0-3]: nvme-gen5-4tb
"""
# What joins them.
CABLED = """\
links:
  - storage -- slot: 2x infiniband ndr
  - slot -- cpu: pcie 5 x16
  - ram -- cpu: memory-bus
  - cpu0 -- cpu1: 4x upi 16 GT/s
  - gpu -- cpu in blocks: pcie 5 x16
  - nvme -- cpu in blocks: pcie 5 x4
"""


def read(text, **options):
    """Return what a text says, read up to physics, which is tested elsewhere."""
    document = parse(text, name="<text>")
    return describe(document, Report(document), **options)


def findings_of(text, **options):
    """Return what is wrong with a text."""
    try:
        return read(text, **options).findings
    except TopoError as error:
        return error.findings


def only(text, **options):
    """Return the one thing that is wrong with a text."""
    found = findings_of(text, **options)
    assert len(found) == 1, found
    return found[0]


def links_of(*lines):
    """Return the pairs of ends that lines under `links:` make in the box."""
    text = BOX + "links:\n" + "".join(f"  - {line}\n" for line in lines)
    return [(str(link.a), str(link.b)) for link in read(text).links]


def link_finding(line):
    """Return the one thing that is wrong with a line under `links:` in the box."""
    return only(f"{BOX}links:\n  - {line}\n")


def plain(value):
    """Return a value without places and without where things were said."""
    if dataclasses.is_dataclass(value):
        own = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        hidden = {"place", "places", "sources", "comment", "file", "findings", "likes"}
        hidden |= {"document", "overrides", "origin", "folded"}  # what it was read from
        if type(value).__name__ not in {"Measurement", "Move"}:
            hidden.add("source")
        kept = {name: plain(inner) for name, inner in own.items() if name not in hidden}
        return {"": type(value).__name__, **kept}
    if isinstance(value, Mapping):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, tuple | list):
        return [plain(inner) for inner in value]
    return value
