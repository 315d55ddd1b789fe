"""Formatting: one layout, nothing lost, and the second time changes nothing."""

from __future__ import annotations

import random
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topo.description.format import format_text, spaced
from topo.description.loading import loads
from topo.document.nodes import Mapping, Scalar
from topo.document.parse import parse
from topo.document.tokens import tokenize
from topo.errors import DocumentError
from topo.units import parse_duration, parse_rate, parse_ratio, parse_size, parse_transfer_rate

TOPOLOGIES = sorted((Path(__file__).parents[2] / "topologies").glob("*.yaml"))
BAD = sorted((Path(__file__).parents[1] / "golden" / "bad").glob("*.yaml"))
MESSY = """\
# A box.

topo: 1
devices:


    # the target
    storage: {part: nvme-of-target, read: 90GB/s}   # quoted
    cpu[0-1]:   epyc-9554
    gpu0:
        part: l40s
        label: "#1: left"

    nic0: connectx-7
    # the last word on devices

# What is cabled.
links:
- storage -- nic0: ethernet 400Gb/s
-   nic0 -- cpu0:
      medium: pcie 5 x16
      efficiency: 83%
- gpu0 -- cpu0: pcie 4 x16
- cpu0 -- cpu1: 3x xgmi 32GT/s
title: Box
expect:
   - load via direct <= 100s
workloads: {load: {read: 1TB, from: storage, to: gpu0}}
"""
TIDY = """\
# A box.
topo: 1
title: Box

devices:
  # the target
  storage:  {part: nvme-of-target, read: 90 GB/s}  # quoted
  cpu[0-1]: epyc-9554
  gpu0:
    part: l40s
    label: "#1: left"

  nic0:     connectx-7
  # the last word on devices

# What is cabled.
links:
  - storage -- nic0: ethernet 400 Gb/s
  - nic0 -- cpu0:
      medium: pcie 5 x16
      efficiency: 83 %
  - gpu0 -- cpu0: pcie 4 x16
  - cpu0 -- cpu1: 3x xgmi 32 GT/s

workloads: {load: {read: 1 TB, from: storage, to: gpu0}}

expect:
  - load via direct <= 100 s
"""


def comments(text):
    drawn = tokenize(text.replace("\r\n", "\n"))
    return Counter(drawn.of(one).rstrip() for one in drawn.tokens if one.kind == "comment")


def words(node):
    """Return a tree as text alone: no places, no spaces before units, sections sorted."""
    if isinstance(node, Scalar):
        return re.sub(r"\s+", "", node.text)
    if isinstance(node, Mapping):
        return sorted((key.text, words(value)) for key, value in node)
    return [words(item) for item in node.items]


def assert_only_laid_out(text):
    formatted = format_text(text)
    assert format_text(formatted) == formatted
    assert words(parse(formatted).root) == words(parse(text).root)
    assert comments(formatted) == comments(text)
    return formatted


def test_a_messy_file_becomes_tidy():
    assert format_text(MESSY) == TIDY


def test_tidying_changes_no_figure():
    before, after = loads(MESSY), loads(TIDY)
    assert [device.part.figures.keys() for device in before.devices] == [
        device.part.figures.keys() for device in after.devices
    ]
    assert [(link.a, link.b, link.cable.rate.value) for link in before.links] == [
        (link.a, link.b, link.cable.rate.value) for link in after.links
    ]
    assert before.workloads[0].size == after.workloads[0].size
    assert before.expectations[0].value == after.expectations[0].value


@pytest.mark.parametrize("path", TOPOLOGIES, ids=[path.stem for path in TOPOLOGIES])
def test_what_topo_ships_is_formatted(path):
    text = path.read_text(encoding="utf-8")
    assert format_text(text) == text


@pytest.mark.parametrize("path", BAD, ids=[path.stem for path in BAD])
def test_a_wrong_machine_is_formatted_and_a_wrong_text_refused(path):
    try:
        text = path.read_text(encoding="utf-8")
        parse(text)
    except DocumentError:
        with pytest.raises(DocumentError):
            format_text(text)
    else:
        assert_only_laid_out(text)


@pytest.mark.parametrize(
    ("number", "unit", "read"),
    [
        *((number, unit, parse_rate) for number in ("400", "1.5") for unit in
          ("GB/s", "Gb/s", "GiB/s", "MB/s", "TB/s", "Mbit/s")),
        *(("640", unit, parse_size) for unit in ("GB", "TB", "GiB", "kB")),
        *(("16", unit, parse_transfer_rate) for unit in ("GT/s", "MT/s")),
        *(("7", unit, parse_duration) for unit in ("s", "ms", "min", "h")),
        ("83", "%", parse_ratio),
    ],
)  # fmt: skip
def test_a_space_before_a_unit_changes_no_quantity(number, unit, read):
    assert spaced(number + unit) == f"{number} {unit}"
    assert read(number + unit) == read(spaced(number + unit))


@pytest.mark.parametrize(
    "text",
    [
        "x16",
        "pcie 5 x16",
        "1b:00.0",
        "mlx5_0",
        "4x upi",
        "gpu0",
        "3.5mm",
        "node-a-8h",
        "node-1-8h",
        "a9 GB/sx",
    ],
)
def test_other_numbers_stay(text):
    assert spaced(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "topo: 1\n",
        "\ufefftopo: 1\r\nname: x\r\n",
        "{topo: 1, name: x, devices: {gpu0: l40s}}\n",
        "topo: 1\nx-a: &a\n  part: l40s\ndevices:\n  gpu0: *a\n",
        "devices:\n  gpu0: &a {part: l40s}\n  gpu1: *a\ntopo: 1\n",
        "topo: 1\ntitle: >\n   folded\n     and kept\n\n   text\ndevices: {}\n",
        "topo: 1\ntitle: |\n  # no comment  \n  text   \n# a comment\n",
        'topo: 1\ntitle: "one\n    two  \n    three"\n',
        "topo: 1\ntitle: one\n   two\n   three\n",
        "topo: 1\ndevices:\n  gpu[0-1]: {part: l40s,\n      pci: [01:00.0,\n  02:00.0]}  # both\n",
        "topo: 1\ndevices:\n  gpu0:\n    l40s\n",
        "topo: 1\nlinks:\n  -\n    a -- b: pcie 5 x16\n",
        "topo: 1\nx-lists:\n- - a\n  - b\n- c\n",
        "--- # first\ntopo: 1\n...\n",
        "topo: 1 # one\n\n\n\n# end\n",
        "# only\n\n# comments\ntopo: 1\n# last",
        '"topo": 1\n"devices":\n  "gpu0":   l40s\n',
        "topo: 1\nname: 64GB/s\ntitle: 400Gb/s box\n",
        "topo: 1\ndevices:\n  # above\n  gpu0: l40s\n      # deeper\n  nic0: connectx-7\n # odd\n",
    ],
)
def test_odd_texts_lose_nothing(text):
    assert_only_laid_out(text)


def test_text_for_people_keeps_its_spelling():
    assert "name: 64GB/s" in format_text("topo: 1\nname: 64GB/s\n")


@pytest.mark.parametrize("text", ["", "topo: [1", "a: b: c", "\t- x", "topo: 1\n--- \ntopo: 1\n"])
def test_what_is_no_yaml_is_refused(text):
    with pytest.raises(DocumentError):
        format_text(text)


@st.composite
def untidy(draw):
    """Generate a worked machine with its layout shaken: indents, blanks, order, comments."""
    text = draw(st.sampled_from([*(path.read_text(encoding="utf-8") for path in TOPOLOGIES), TIDY]))
    chance = random.Random(draw(st.integers(0, 10_000)))
    width = chance.choice([2, 3, 4, 8])
    lines = []
    for line in text.split("\n"):
        bare = line.lstrip(" ")
        indent = (len(line) - len(bare)) // 2 * width
        if chance.random() < 0.1:
            lines.append(" " * chance.randrange(9) + f"# remark {chance.randrange(99)}")
        if chance.random() < 0.1:
            lines.append("   " if chance.random() < 0.5 else "")
        lines.append(" " * indent + bare + " " * chance.choice([0, 0, 3]))
    shaken = "\n".join(lines)
    if chance.random() < 0.5:
        shaken = re.sub(r"(?<=[0-9]) (?=[GMT]i?[Bb]/s|GB|%|GT/s)", "", shaken)
    return shaken.replace("\n", "\r\n") if chance.random() < 0.3 else shaken


@given(untidy())
def test_shaken_files_lose_nothing(text):
    formatted = assert_only_laid_out(text)
    assert "\r" not in formatted
    assert not re.search(r"[ \t]$", formatted, re.MULTILINE)
    assert not formatted.startswith("\n")
    assert formatted.endswith("\n")
    assert "\n\n\n" not in formatted


@given(untidy())
def test_a_shaken_file_is_the_same_machine(text):
    before, after = loads(text), loads(format_text(text))
    assert [(device.name, device.part.name) for device in before.devices] == [
        (device.name, device.part.name) for device in after.devices
    ]
    assert [(link.a, link.b, link.cable.rate.value) for link in before.links] == [
        (link.a, link.b, link.cable.rate.value) for link in after.links
    ]
    assert [one.size for one in before.workloads] == [one.size for one in after.workloads]
    assert [(one.kind, one.value) for one in before.expectations] == [
        (one.kind, one.value) for one in after.expectations
    ]


@given(st.lists(st.sampled_from(
    ["topo: 1", "a:", "  b: 1", "  - c", "- d: 2", "    e: {f: 3GB,", "  g: 4}", "# h", "", "  # i",
     "j: |", "   k", "l: 'm", "n'", "- ", "? o", ": p", "q: &r s", "t: *r", '  "u": v # w']
), max_size=9))  # fmt: skip
def test_any_text_is_formatted_or_refused(lines):
    text = "\n".join(lines)
    try:
        parse(text)
    except DocumentError:
        with pytest.raises(DocumentError):
            format_text(text)
    else:
        assert_only_laid_out(text)
