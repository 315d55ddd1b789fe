"""Whatever is written, a description comes out or a `TopoError`; never a traceback."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.description.reading import BOX, CABLED
from tests.description.strategies import documents, values
from topo.description.description import Description
from topo.description.loading import build, loads, read_description
from topo.description.schema import json_schema
from topo.document.parse import parse
from topo.errors import TopoError
from topo.study.compare import compare
from topo.topology.build import build_topology


def outcome(function, *arguments, **options):
    """Return a description that a machine can be built of, or what is said of its absence."""
    try:
        found = function(*arguments, **options)
        build_topology(found)
    except TopoError as error:
        found = error
    if isinstance(found, Description):
        return found
    assert found.findings
    assert all(finding.code and finding.message for finding in found.findings)
    return found.findings


@given(documents())
@example({"topo": 1, "devices": {"gpu": {"use": "x"}, "gpu0": None}})
@example({"topo": 1, "devices": {"gpu[0-1]": []}})
@example({"topo": 1, "parts": {"x": {"like": "x"}}, "devices": {"x": "x"}})
@example({"topo": 1, "media": {"pcie 5": {"rate": "unknown"}}, "links": [{"a -- b": "pcie 5 x1"}]})
def test_any_mapping(document):
    outcome(build, document)


@given(values())
def test_anything(value):
    outcome(build, value)


@given(documents())
def test_the_same_words_are_said_twice(document):
    assert outcome(build, document) == outcome(build, document)


@given(st.text(max_size=80))
def test_any_text(text):
    outcome(loads, text)


@st.composite
def damaged(draw):
    """Generate a good file with a piece of it cut out, or something strange put in."""
    text = BOX + CABLED + "workloads:\n  load: {read: 640 GB, from: storage, to: gpu}\n"
    start = draw(st.integers(0, len(text)))
    end = draw(st.integers(start, min(len(text), start + 12)))
    return text[:start] + draw(st.text(alphabet="a0 :,-[]{}#'\"\n>*&!|", max_size=4)) + text[end:]


@given(damaged())
def test_a_damaged_file_is_judged_alike_by_both_parsers(text):
    def judged(pure):
        return outcome(lambda: read_description(parse(text, pure=pure)))

    assert judged(pure=False) == judged(pure=True)


@given(st.dictionaries(st.text(max_size=12), st.text(max_size=12), max_size=3))
@example({"gpu": "x"})
@example({" -- ": "x"})
@example({"a -- ": "["})
@example({"gpu.": "", ".gpu": "", "..": ""})
@example({"settings.": "x"})
@example({"parts.": "x", "media.x": "y"})
def test_any_override(overrides):
    outcome(loads, BOX + CABLED, overrides=overrides)


@given(
    st.sampled_from(["gpu", "gpu0", "slot1", "load", "legacy", "settings", "media.pcie 5"]),
    st.sampled_from(
        [*json_schema()["properties"], "part", "read", "pcie", "p2p", "via", "workers"]
    ),
    st.sampled_from(["x", "5", "5 GB/s", "[a, b]", "{a: b}", "no", "4 x16", "unknown", ""]),
)
def test_overrides_that_nearly_mean_something(target, key, value):
    text = BOX + CABLED + "workloads:\n  load: {read: 640 GB, from: storage, to: gpu}\n"
    outcome(loads, text, overrides={f"{target}.{key}": value})


# --- small texts that stand for much --------------------------------------------------------------

MESH = (
    "topo: 1\ndevices:\n  cpu0: {part: xeon-8480c, pcie-lanes: 1000000}\n"
    "  ram0: {part: ddr5-4800, channels: 8}\n  gpu[0-1999]: h100-sxm-80gb\n"
    "links: [ram0 -- cpu0: memory-bus, gpu -- cpu0: pcie 5 x16]\n"
)
RANGES = ", ".join(f"{at}00000-{at}99999" for at in range(1, 100))
CPU = "topo: 1\ndevices:\n  cpu[0-{}]: {{part: epyc-7742, numa: [{}]}}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(CPU.format(98, RANGES), "more than 1024", id="nodes-of-a-cpu"),
        pytest.param(
            CPU.format(999, ", ".join(f"{at}000-{at}999" for at in range(1, 1001))),
            "the file has more than 100000 NUMA nodes",
            id="nodes-of-a-file",
        ),
        pytest.param(
            CPU.format(0, f"'{','.join(str(at) for at in range(2000))}'"), "1024", id="one-list"
        ),
        pytest.param(
            MESH + "expect: [gpu to gpu is PHB]", "is about 4000000 pairs", id="expectation"
        ),
    ],
)
def test_sums_have_limits(text, message):
    with pytest.raises(TopoError, match="huge-range") as caught:
        loads(text)
    assert message in str(caught.value)


def test_pairs_are_counted_before_they_are_made():
    workload = "workloads: {swap: {copy: 1 GB, from: gpu, to: gpu}}"
    topology = build_topology(loads(MESH + workload))
    for end in ("", "gpu"):
        with pytest.raises(TopoError, match="4000000 pairs"):
            compare(topology, source=end, target=end)


def test_a_part_like_a_part_like_a_part():
    parts = "".join(f"  p{at}: {{like: p{at + 1}}}\n" for at in range(2000))
    text = f"topo: 1\nparts:\n{parts}  p2000: h100-sxm-80gb\ndevices: {{gpu0: p0}}\n"
    assert loads(text).devices[0].part.kind == "gpu"
    with pytest.raises(TopoError, match="like-cycle") as caught:
        loads(text.replace("p2000: h100-sxm-80gb", "p2000: {like: p1990}"))
    assert [finding.code for finding in caught.value.findings] == ["like-cycle"]
