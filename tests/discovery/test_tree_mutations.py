"""Damaged files of hwloc, lspci, sysfs and rocm-smi: a result or a clear error, soon and small."""

from __future__ import annotations

import io
import re
import tarfile
import time
import tracemalloc
from xml.etree.ElementTree import fromstring, tostring

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.discovery.test_lspci import LIST
from tests.discovery.test_mutations import damaged
from tests.discovery.trees import ROCM, TREE, cxl, sysfs_box, two_level, verbose, with_target
from topo.discovery.importing import import_text
from topo.errors import TopoError
from topo.topology.build import build_topology

XML = [two_level(), two_level("2.0"), cxl("2.0"), cxl("3.0")]
TEXTS = [TREE.encode(), verbose().encode(), LIST.encode()]
TREES = [sysfs_box(), with_target(sysfs_box())]
LIMIT_S = 5
ODD = st.sampled_from(
    ["", "-1", "0", "9" * 30, "0x", "NaN", "inf", "ffff:ff:ff.7", "\u00e9", "1e9", "0x" + "f" * 500]
)


def survives(kind, data):
    """Import, and look at what comes of it; anything but a TopoError fails the test."""
    start = time.process_time()
    try:
        build_topology(import_text(kind, data, "damaged").description)
    except TopoError as error:
        said = error.findings
    else:
        said = ()
    assert all(finding.code and finding.message for finding in said)
    assert time.process_time() - start < LIMIT_S


@st.composite
def without_attributes(draw):
    text = draw(st.sampled_from(XML)).decode()
    names = sorted(set(re.findall(r" (\w+)=", text)))
    dropped = set(draw(st.lists(st.sampled_from(names), min_size=1, max_size=4)))
    keep = draw(st.integers(0, 3))

    def one(found):
        return "" if found[1] in dropped and hash(found.start()) % 4 >= keep else found[0]

    return re.sub(r' (\w+)="[^"]*"', one, text).encode()


@st.composite
def odd_values(draw):
    text = draw(st.sampled_from(XML)).decode()
    places = [found.span(1) for found in re.finditer(r'="([^"]*)"', text)]
    chosen = draw(st.lists(st.sampled_from(places), min_size=1, max_size=6, unique=True))
    for start, end in sorted(chosen, reverse=True):
        text = text[:start] + draw(ODD) + text[end:]
    return text.encode()


@st.composite
def shuffled_xml(draw):
    root = fromstring(draw(st.sampled_from(XML)))
    for element in list(root.iter())[: draw(st.integers(1, 60))]:
        element[:] = draw(st.permutations(list(element)))
    return tostring(root)


@st.composite
def shuffled(draw):
    lines = draw(st.sampled_from(TEXTS)).decode().split("\n")
    start = draw(st.integers(0, len(lines) - 1))
    end = draw(st.integers(start, len(lines)))
    middle = draw(st.permutations(lines[start:end][:12]))
    return "\n".join([*lines[:start], *middle, *lines[end:]]).encode()


@st.composite
def damaged_trees(draw):
    tree = draw(st.sampled_from(TREES))
    raw = io.BytesIO()
    gone = set(draw(st.lists(st.sampled_from(sorted(tree.files)), max_size=8)))
    odd = set(draw(st.lists(st.sampled_from(sorted(tree.files)), max_size=4)))
    bent = draw(st.sampled_from(["", *sorted(tree.links)]))
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for path, data in tree.files.items():
            if path not in gone:
                content = draw(ODD).encode() if path in odd else data
                info = tarfile.TarInfo(path)
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
        for path, target in tree.links.items():
            info = tarfile.TarInfo(path)
            info.type = tarfile.SYMTYPE
            info.linkname = "../../.." if path == bent else target
            archive.addfile(info)
    return raw.getvalue()


@given(data=damaged(XML))
def test_damaged_xml(data):
    survives("hwloc", data)


@given(data=without_attributes())
def test_xml_without_some_attributes(data):
    survives("hwloc", data)


@given(data=odd_values())
def test_xml_with_odd_values(data):
    survives("hwloc", data)


@given(data=shuffled_xml())
def test_shuffled_xml(data):
    survives("hwloc", data)


@given(data=damaged(TEXTS))
def test_damaged_lspci(data):
    survives("lspci", data)


@given(data=shuffled())
def test_shuffled_lspci(data):
    survives("lspci", data)


@given(data=damaged([ROCM.encode()]))
def test_damaged_rocm_smi(data):
    survives("rocm-smi", data)


@given(data=damaged([tree.tar(mode) for tree in TREES for mode in ("w", "w:gz", "w:bz2")]))
def test_damaged_archives(data):
    survives("sysfs", data)


@given(data=damaged_trees())
def test_trees_with_odd_files(data):
    survives("sysfs", data)


def deep_bridges(count):
    head = '<object type="Bridge" bridge_type="1-1" pci_busid="0000:00:00.0">'
    body = f"{head * count}{'</object>' * count}"
    machine = f'<object type="Machine">{body}</object>'
    return f'<topology version="3.0">{machine}</topology>'.encode()


def many_functions(count):
    lines = (f"{at >> 8:02x}:{at >> 3 & 31:02x}.{at & 7} {GPU}" for at in range(count))
    return "\n".join(lines).encode()


GPU = "3D controller: NVIDIA Corporation GA100 [A100 SXM4 80GB]"


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("hwloc", deep_bridges(190)),
        ("hwloc", deep_bridges(5000)),
        ("hwloc", b'<topology version="3.0">' + b'<object type="PU"/>' * 20000 + b"</topology>"),
        ("lspci", many_functions(1000)),
        ("lspci", b"-[0000:00]" + b"-+-" * 30000),
        ("lspci", b"-[0000:00]-" + b"[01]-" * 20000),
        ("lspci", b"00:00.0 " + b"a" * 90000 + b": x"),
        ("rocm-smi", b"GPU0 " * 15000 + b"\n"),
        ("rocm-smi", b"=== Weight\n" + b"GPU0 GPU1\n" + b"GPU0 1 2\n" * 20000),
    ],
    ids=lambda value: repr(value[:16]),
)
def test_large_nonsense_is_read_or_refused_soon_and_small(kind, data):
    tracemalloc.start()
    try:
        survives(kind, data)
        assert tracemalloc.get_traced_memory()[1] < 200 * 2**20
    finally:
        tracemalloc.stop()
