"""Damaged files: a result or a clear error, and soon."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.discovery.test_rules import four_by_two, two_switches_a_node
from tests.discovery.twins import MATRIX, two_sockets
from topo.discovery.importing import import_text
from topo.errors import TopoError
from topo.topology.build import build_topology
from topo.topology.rules import gds_ranking, nccl_matrix

XML = [two_sockets(), four_by_two(), two_switches_a_node()]
TEXTS = [MATRIX.encode(), MATRIX.expandtabs().encode()]
LIMIT_S = 5
CODES = ["X", "PIX", "PXB", "PHB", "NODE", "SYS", "NV4", "NV18", "HT", "?"]


def survives(kind, data):
    """Import, and look at what comes of it; anything but a TopoError fails the test."""
    start = time.process_time()
    try:
        topology = build_topology(import_text(kind, data, "damaged").description)
        nccl_matrix(topology)
        gds_ranking(topology)
    except TopoError as error:
        said = error.findings
    else:
        said = ()
    assert all(finding.code and finding.message for finding in said)
    assert time.process_time() - start < LIMIT_S


@st.composite
def damaged(draw, samples):
    data = bytearray(draw(st.sampled_from(samples)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(len(data) - 1, 0)))
        how = draw(st.sampled_from(("cut", "flip", "drop", "double", "insert")))
        end = min(len(data), at + draw(st.integers(1, 80)))
        if how == "cut":
            del data[at:]
        elif how == "flip" and data:
            data[at] ^= 1 << draw(st.integers(0, 7))
        elif how == "drop":
            del data[at:end]
        elif how == "double":
            data[at:at] = data[at:end]
        else:
            data[at:at] = draw(st.binary(max_size=8))
    return bytes(data)


@st.composite
def without_attributes(draw):
    text = draw(st.sampled_from(XML)).decode()
    names = sorted(set(re.findall(r" (\w+)=", text)))
    dropped = set(draw(st.lists(st.sampled_from(names), min_size=1, max_size=4)))

    def one(found):
        return "" if found[1] in dropped and draw(st.booleans()) else found[0]

    return re.sub(r' (\w+)="[^"]*"', one, text).encode()


@st.composite
def odd_values(draw):
    text = draw(st.sampled_from(XML)).decode()
    odd = st.sampled_from(
        ["", "-1", "0", "99999999999999999999", "0x", "NaN", "ffff:ff:ff.7", "\u00e9", "a&amp;b: c"]
    )

    def one(found):
        return f' {found[1]}="{draw(odd)}"' if draw(st.integers(0, 9)) == 0 else found[0]

    return re.sub(r' (\w+)="[^"]*"', one, text).encode()


@given(data=damaged(XML))
def test_damaged_xml(data):
    survives("nccl", data)


@given(data=without_attributes())
def test_xml_without_some_attributes(data):
    survives("nccl", data)


@given(data=odd_values())
def test_xml_with_odd_values(data):
    survives("nccl", data)


@given(data=damaged(TEXTS))
def test_damaged_text(data):
    survives("nvidia-smi", data)


@given(
    codes=st.lists(
        st.lists(st.sampled_from(CODES), min_size=6, max_size=6),
        min_size=6,
        max_size=6,
    )
)
def test_any_matrix_builds_a_tree(codes):
    names = ["GPU0", "GPU1", "GPU2", "NIC0", "NIC1", "NIC2"]
    rows = (" ".join([name, *row]) for name, row in zip(names, codes, strict=True))
    survives("nvidia-smi", "\n".join([" ".join(names), *rows]).encode())


@given(data=st.binary(max_size=200))
def test_any_bytes(data):
    survives(None, data)


@pytest.mark.parametrize(
    "data",
    [
        b"<" * 100_000,
        b"<!--" * 30_000,
        b"<!DOCTYPE " + b"[" * 50_000,
        b"GPU0 " * 20_000,
        b"\x1b[" * 50_000,
        b" \t" * 100_000 + b"GPU0",
        b"<system>" + b"<cpu/>" * 20_000 + b"</system>",
        b"0" * 200_000,
    ],
    ids=lambda data: repr(data[:12]),
)
def test_long_nonsense_is_refused_soon(data):
    survives(None, data)
