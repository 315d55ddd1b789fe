"""The shipped catalogue: complete, every figure with its source, decoded only when asked for."""

import re
from typing import Any

import pytest

from topo.catalogue import parts
from topo.catalogue.fields import FIELDS, FIGURE_KEYS, FLAG_KEYS
from topo.catalogue.parts import DATA, PART_FILES, catalogue
from topo.document.parse import parse

SHIPPED: Any = catalogue()

PARTS = sorted(SHIPPED.parts)
MEDIA = sorted(SHIPPED.media)

# The parts of the worked machines: renaming one breaks people's files.
PROMISED = [
    "nvme-of-target",
    "connectx-7",
    "connectx-7-dual-port",
    "connectx-7-bridge",
    "connectx-6",
    "connectx-6-dual-port",
    "bluefield-3-dual-port",
    "bluefield-2-dual-port",
    "xeon-8480c",
    "xeon-8570",
    "xeon-8168",
    "epyc-7742",
    "epyc-7763",
    "epyc-9554",
    "epyc-9654",
    "epyc-9575f",
    "threadripper-pro-7975wx",
    "grace",
    "root-complex",
    "ddr4-2666",
    "ddr4-3200",
    "ddr5-4400",
    "ddr5-4800",
    "ddr5-5200",
    "ddr5-5600",
    "ddr5-6400",
    "mrdimm-8800",
    "lpddr5x-grace",
    "nvme-gen4-3.84tb",
    "nvme-gen4-7.68tb",
    "nvme-gen5-4tb",
    "raid-card-gen4",
    "pcie-switch-gen3",
    "pcie-switch-gen4",
    "pcie-switch-gen5",
    "nvswitch-1",
    "nvswitch-2",
    "nvswitch-3",
    "nvswitch-4",
    "nvswitch-5",
    "quantum-2",
    "spectrum-4",
    "v100-sxm-32gb",
    "a100-sxm-40gb",
    "a100-sxm-80gb",
    "h100-sxm-80gb",
    "h100-pcie-80gb",
    "h200-sxm-141gb",
    "b200-sxm-180gb",
    "gb200",
    "mi250x",
    "mi300x",
    "l40s",
    "rtx-4090",
    "rtx-5090",
    "rtx-3060",
]


def figures_of(part):
    """Every number of a part, by name."""
    yield from part.figures.items()
    for name, ports in (("ports", part.ports), ("fabric", part.fabric)):
        if ports is not None:
            yield name, ports
            if ports.rate is not None:
                yield f"{name} rate", ports.rate
    if part.slot is not None:
        yield "pcie", part.slot
    if part.peer_caps is not None:
        caps = (part.peer_caps.posted, part.peer_caps.non_posted)
        yield from (("p2p", cap.rate) for cap in caps if cap is not None)


def figures_of_medium(medium):
    for name in ("rate", "transfer_rate", "bytes_per_transfer", "efficiency"):
        figure = getattr(medium, name)
        if figure is not None:
            yield name, figure


@pytest.mark.parametrize("name", PROMISED)
def test_promised_parts_are_there(name):
    assert SHIPPED.parts[name].name == name


@pytest.mark.parametrize("name", PARTS)
def test_every_figure_of_a_part_has_a_source_and_a_kind(name):
    part = SHIPPED.parts[name]
    assert part.title
    assert part.source
    assert part.place is None
    for key, figure in figures_of(part):
        assert sourced(figure), key
    for key in (*part.flags, *part.facts):
        assert part.sources[key], key


@pytest.mark.parametrize("name", MEDIA)
def test_every_figure_of_a_medium_has_a_source_and_a_kind(name):
    medium = SHIPPED.media[name]
    assert medium.title
    for key, figure in figures_of_medium(medium):
        assert sourced(figure), key


def sourced(figure):
    """Whether a figure says where it comes from, and a guess that it is one.

    A reader who meets a guess must see it in the words too, and a datasheet is a public document.
    """
    says_guess = re.search(r"\bour\b|no source|convention|not checked", figure.source) is not None
    assert not re.fullmatch(r"S[0-9]+", figure.source)
    if figure.kind == "guess":
        return says_guess
    return figure.kind in ("formula", "datasheet", "measured", "quoted") and not says_guess


@pytest.mark.parametrize("name", PARTS)
def test_a_part_has_only_keys_of_its_kind(name):
    part = SHIPPED.parts[name]
    said = {*part.figures, *part.flags, *part.facts}
    assert {key for key in said if part.kind not in FIELDS[key].kinds} == set()
    assert set(part.figures) <= FIGURE_KEYS
    assert set(part.flags) <= FLAG_KEYS


@pytest.mark.parametrize("name", PARTS)
def test_only_storage_that_is_not_modelled_is_unlimited(name):
    part = SHIPPED.parts[name]
    unlimited = {key for key, figure in part.figures.items() if figure.value == float("inf")}
    assert unlimited == ({"read", "write"} if name == "nvme-of-target" else set())


@pytest.mark.parametrize("name", PARTS)
def test_peer_to_peer_caps_are_nobodys_default(name):
    # They are behaviour of a machine; no public document states one for a part that is here.
    assert SHIPPED.parts[name].peer_caps is None


@pytest.mark.parametrize("file", [*PART_FILES, "media"])
def test_the_index_sees_what_the_parser_sees(file):
    # The index is made from line starts alone: it must find exactly the top-level keys.
    text = (DATA / f"{file}.yaml").read_text(encoding="utf-8")
    root: Any = parse(text).root
    whole = [key.text for key, _ in root]
    shelf = SHIPPED.media if file == "media" else SHIPPED.parts
    assert [name for name in shelf if name in whole] == whole


def test_no_data_file_is_forgotten():
    assert {path.stem for path in DATA.glob("*.yaml")} == {
        *PART_FILES,
        "media",
        "needs",
        "pci-ids",
        "processors",
    }


def test_the_catalogue_is_one_and_ordered():
    assert catalogue() is catalogue()
    assert list(SHIPPED.media)[:3] == ["pcie 1", "pcie 2", "pcie 3"]
    assert len(SHIPPED.parts) == len(set(SHIPPED.parts))


def test_an_unknown_name_is_a_key_error():
    assert "h100" not in SHIPPED.parts
    assert SHIPPED.parts.get("h100") is None
    with pytest.raises(KeyError):
        SHIPPED.parts["h100"]


def test_few_parts_decode_few_entries(monkeypatch):
    names = []
    read_part = parts.read_part

    def counted(name, node, **rest):
        names.append(name)
        return read_part(name, node, **rest)

    monkeypatch.setattr(parts, "read_part", counted)
    fresh = parts.catalogue.__wrapped__()
    fresh.parts["connectx-7-bridge"]
    fresh.parts["connectx-7-bridge"]
    assert names == ["connectx-7-bridge", "connectx-7"]


def test_a_misspelt_key_never_reads_as_not_stated():
    part = SHIPPED.parts["h100-sxm-80gb"]
    assert part.figure("read") is None
    with pytest.raises(KeyError):
        part.figure("memmory")
    with pytest.raises(KeyError):
        part.flag("p2pp")


def test_a_shipped_entry_that_reads_as_nothing_is_no_part(monkeypatch):
    monkeypatch.setattr(parts, "read_part", lambda *_, **__: None)
    with pytest.raises(KeyError):
        parts.catalogue.__wrapped__().parts["l40s"]
