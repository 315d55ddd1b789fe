"""The example files beside the project, where they are: good ones load, bad ones say their code."""

from __future__ import annotations

import pytest

from tests.description.reading import EXAMPLES, SHARED, needs_examples
from topo.description.loading import load, read_description
from topo.document.parse import parse
from topo.errors import TopoError
from topo.topology.build import build_topology

# What each bad file is told; an empty text is a file that loads.
BAD = {
    "arrow-as-cable": "not-a-cable",
    "bare-number": "bare-number",
    "crlf-bom": "",
    "decimal-comma": "decimal-comma",
    "dup-after-expand": "defined-twice",
    "en-dash": "not-a-cable",
    "ge-value": "sign-starts-value",
    "hash-label": "comment-ate-text",
    "link-no-colon": "link-without-colon",
    "link-no-space": "link-without-colon",
    "list-length": "list-length",
    "list-top": "wrong-shape",
    "merge": "merge-key",
    "nbsp": "no-break-space",
    "no-version": "version",
    "nothing": "empty",
    "range-in-braces": "range-in-braces",
    "self": "self-link",
    "smart-quotes": "smart-quotes",
    "star": "star",
    "tab": "tab",
    "title-colon": "colon-in-text",
    "two-docs": "two-documents",
    "two-links-one-item": "two-links-one-item",
    "unit-case": "ambiguous-unit",
    "unit-wrong-quantity": "wrong-quantity",
    "unpaired": "unpaired",
}
pytestmark = needs_examples


def codes(path, *, pure):
    try:
        build_topology(read_description(parse(path.read_bytes(), name=path.name, pure=pure)))
    except TopoError as error:
        return [finding.code for finding in error.findings]
    return []


def test_every_example_is_here():
    assert {path.stem for path in SHARED.glob("bad/*.yaml")} == set(BAD)
    assert {path.stem for path in SHARED.glob("*.yaml")} == set(EXAMPLES)


@pytest.mark.parametrize("pure", [False, True], ids=["libyaml", "pure"])
@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_says_its_code_and_nothing_else(name, pure):
    assert codes(SHARED / "bad" / f"{name}.yaml", pure=pure) == [BAD[name]] * bool(BAD[name])


@pytest.mark.parametrize("pure", [False, True], ids=["libyaml", "pure"])
@pytest.mark.parametrize("name", EXAMPLES)
def test_a_good_file_loads(name, pure):
    assert codes(SHARED / f"{name}.yaml", pure=pure) == []


def test_a_comma_in_a_source_is_said_and_read_on():
    description = load(SHARED / "custom.yaml")
    (finding,) = description.findings
    assert (finding.code, finding.severity) == ("comma-in-text", "warning")
    assert description.media["pcie 5"].efficiency.source == "our lspci, MPS 128"
    assert [expectation.kind for expectation in description.expectations] == [
        "time",
        "beats",
        "limited-by",
    ]


def test_the_figures_of_one_example():
    description = load(SHARED / "dgx-a100.yaml")
    links = {(str(link.a), str(link.b)): link.cable for link in description.links}
    assert len(description.devices) == 42
    assert links["nvme7", "sw3"].lanes == 4
    assert ("ram5", "cpu1/numa5") in links
    assert links["gpu3", "nvswitch"].count == 12
