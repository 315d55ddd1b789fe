"""Any node either reads or is complained of; nothing raises, nothing changes in place."""

import math
from copy import deepcopy

from hypothesis import given
from hypothesis import strategies as st

from topo.catalogue.cables import read_cable, read_media
from topo.catalogue.fields import FIELDS, MEDIUM_FIELDS, PART_WORDS
from topo.catalogue.part import memory_bus_rate, memory_headline_rate
from topo.catalogue.parts import catalogue, read_parts, vary_part
from topo.document.nodes import Mapping, Report, Scalar, Sequence
from topo.document.parse import parse
from topo.errors import Place

PLACE = Place("box.yaml", 1, 1)
WORDS = [
    *("", " ", "unknown", "unlimited", "yes", "no", "x86", "host", "network", "64/66", "?", "nic"),
    *("gpu", "memory", "storage", "cpu", "nvswitch", "pcie-switch", "datasheet", "guess"),
    *("400 Gb/s", "0 GB/s", "90 GB", "8", "0", "85 %", "4800 MT/s", "5 x16", "5 x3", "x16"),
    *("4x infiniband ndr", "18x nvlink 4", "pcie 5 x16", "4x upi 16 GT/s", "memory-bus"),
    *("22 GB/s per flow", "2 x 4", "l40s", "nvme-of-target", "acme", "other", "٣ GB/s", "1e999 GB"),
]
KEYWORDS = [
    *(*FIELDS, *PART_WORDS, *MEDIUM_FIELDS, "value", "medium", "posted", "non-posted"),
    *("p2p", "x-note", "raed", "<<", "acme", "other", "pcie 5", "part"),
]

scalars = st.builds(
    Scalar, st.sampled_from(WORDS) | st.text(max_size=8), st.just(PLACE), st.booleans()
)
keys = st.sampled_from(KEYWORDS) | st.text(max_size=5)


def mappings(values):
    return st.dictionaries(keys, values, max_size=6).map(
        lambda entries: Mapping(
            tuple((Scalar(key, PLACE), value) for key, value in entries.items()), PLACE
        )
    )


nodes = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=2).map(lambda items: Sequence(tuple(items), PLACE))
        | mappings(inner)
    ),
    max_leaves=12,
)
# Parts that are nearly right: a kind or a like, and keys.
parts = mappings(nodes) | st.builds(
    lambda word, kind, rest: Mapping(
        ((Scalar(word, PLACE), Scalar(kind, PLACE)), *rest.entries), PLACE
    ),
    st.sampled_from(["kind", "like"]),
    st.sampled_from(["nic", "gpu", "memory", "storage", "cpu", "l40s", "ddr5-4800", "acme"]),
    mappings(nodes),
)


def report_for():
    return Report(parse("topo: 1", name="box.yaml"))


def positive(figure):
    return figure.value is None or figure.value > 0


def sound(part):
    assert all(positive(figure) and figure.source for figure in part.figures.values())
    assert all(part.sources[key] for key in (*part.flags, *part.facts))
    for ports in (part.ports, part.fabric):
        assert ports is None or ports.count is None or ports.count > 0
        assert ports is None or ports.rate is None or positive(ports.rate)
    memory = (memory_bus_rate(part), memory_headline_rate(part)) if part.kind == "memory" else ()
    assert all(positive(figure) and figure.source for figure in memory)


@given(first=parts, second=parts)
def test_any_parts_are_read_or_complained_of(first, second):
    node = Mapping(((Scalar("acme", PLACE), first), (Scalar("other", PLACE), second)), PLACE)
    before, report = deepcopy(node), report_for()
    read = read_parts(node, parts=catalogue().parts, media=catalogue().media, report=report)
    assert report.findings or set(read.own) == {"acme", "other"}
    for part in read.own.values():
        sound(part)
    assert node == before


@given(node=nodes)
def test_any_section_of_parts(node):
    report = report_for()
    read_parts(node, parts=catalogue().parts, media=catalogue().media, report=report)
    assert report.findings or isinstance(node, Mapping)


@given(name=st.sampled_from(["l40s", "ddr5-4800", "connectx-7", "grace"]), node=mappings(nodes))
def test_any_variation_leaves_a_sound_part(name, node):
    part, report = catalogue().parts[name], report_for()
    before = deepcopy(part)
    sound(vary_part(part, node.entries, media=catalogue().media, report=report))
    assert part == before


@given(node=nodes)
def test_any_cable_is_read_or_complained_of(node):
    report = report_for()
    cable = read_cable(node, media=catalogue().media, report=report)
    assert (cable is None) <= bool(report.findings)
    if cable is not None:
        assert cable.count > 0
        assert positive(cable.rate)
        assert cable.rate.source


@given(node=nodes)
def test_any_media_are_read_or_complained_of(node):
    report = report_for()
    media = read_media(node, media=catalogue().media, report=report)
    assert set(catalogue().media) <= set(media)
    for medium in media.values():
        assert medium.rate is None or positive(medium.rate)
        assert medium.rate is None or not math.isinf(medium.rate.value or 0)


@given(text=st.text(st.sampled_from("pcienvlkxgmhrd 0123456789x/%GbBTs?.-"), max_size=24))
def test_any_text_is_a_cable_or_one_message(text):
    report = report_for()
    cable = read_cable(Scalar(text, PLACE), media=catalogue().media, report=report)
    assert len(report.findings) == (cable is None)
