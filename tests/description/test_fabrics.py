"""Fabrics by rule: what is made of them, NVIDIA's published counts, and what would fit instead."""

from __future__ import annotations

import time
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topo
from topo.description import clos
from topo.description.as_document import to_document
from topo.description.description import Description, FabricTier
from topo.description.loading import loads, vary
from topo.errors import DescriptionError, UnknownNameError
from topo.topology.build import build_topology

PARTS = """
parts:
  b300-leaf: {like: quantum-x800, source: NVIDIA Q3400 datasheet}
  switch-4: {kind: network-switch, ports: 4x infiniband ndr, source: a textbook}
  switch-128: {kind: network-switch, ports: 128x ethernet 400 Gb/s, source: a datasheet}
"""

LINE = 11  # of the fabric


def described(nics: int, fabric: str, part: str = "connectx-7", more: str = "") -> Description:
    """Return a file of so many cards in one fabric."""
    text = f"topo: 1\n{PARTS}\ndevices:\n  nic[0-{nics - 1}]: {part}\nfabrics:\n  net: {{{fabric}}}"
    return loads(f"{text}\n{more}")


def rail(*more: str, switch: str = "quantum-2", cable: str = "infiniband ndr") -> str:
    """Return a rail-optimised fabric of eight rails."""
    keys = (f"kind: rail-optimized, of: nic, rails: 8, switch: {switch}, cable: {cable}", *more)
    return ", ".join(keys)


def counts(description: Description) -> dict[str, tuple[int, int]]:
    """Return switches and cables below them, by tier, as counted on what was made."""
    roles = {device.name: device.role for device in description.devices}
    switches = Counter(role for role in roles.values() if role)
    cables: Counter[str] = Counter()
    for link in description.links:
        cables[roles[link.b.device]] += link.cable.count
    assert description.fabrics[0].tiers == tuple(
        FabricTier(
            role,
            tuple(name for name in roles if roles[name] == role),
            cables[role],
        )
        for role in switches
    )
    return {role: (switches[role], cables[role]) for role in switches}


# --- NVIDIA's tables ------------------------------------------------------------------------------

# DGX SuperPOD, RA-11333-001: one node fewer than the units hold, since UFM takes its ports.
H100 = [(1, 31, 8, 4, 256), (2, 63, 16, 8, 512), (3, 95, 24, 16, 768), (4, 127, 32, 16, 1024)]
# Units, leaves, spines, cores, cables from leaf to spine.
B200 = [
    (1, 8, 4, 0, 256),
    (2, 16, 8, 0, 512),
    (4, 32, 16, 0, 1024),
    (8, 64, 32, 0, 2048),
    (16, 128, 128, 64, 4096),
    (32, 256, 256, 128, 8192),
    (64, 512, 512, 256, 16384),
]
B300 = [(1, 8, 4, 576), (2, 16, 8, 1152), (4, 32, 18, 2304), (8, 64, 36, 4608)]


@pytest.mark.parametrize("row", H100, ids=lambda row: f"{row[0]}-su")
def test_superpod_h100(row):
    units, nodes, leaves, spines, cables = row
    assert nodes == units * 32 - 1
    assert counts(described(nodes * 8, rail())) == {
        "leaf": (leaves, nodes * 8),
        "spine": (spines, cables),
    }


@pytest.mark.parametrize("row", B200, ids=lambda row: f"{row[0]}-su")
def test_superpod_b200(row):
    units, leaves, spines, cores, cables = row
    made = counts(described(units * 32 * 8, rail()))
    assert made["leaf"] == (leaves, units * 32 * 8)
    assert made["spine"] == (spines, cables)
    assert made.get("core", (0, 0)) == (cores, cables if cores else 0)


@pytest.mark.parametrize("row", B300, ids=lambda row: f"{row[0]}-su")
def test_superpod_b300(row):
    units, leaves, spines, cables = row
    fabric = rail(switch="b300-leaf", cable="infiniband xdr")
    made = counts(described(units * 72 * 8, fabric, "connectx-8"))
    assert made == {"leaf": (leaves, cables), "spine": (spines, cables)}


@pytest.mark.parametrize("ports", [4, 6, 8])
def test_a_full_fat_tree_is_the_textbooks(ports):
    """k-ary: k^3/4 hosts, k^2/2 edge and as many aggregation switches, k^2/4 cores."""
    hosts, half = ports**3 // 4, ports // 2
    part = f"parts: {{s: {{kind: network-switch, ports: {ports}x infiniband ndr, source: x}}}}"
    text = f"topo: 1\n{part}\ndevices: {{'nic[0-{hosts - 1}]': connectx-7}}\nfabrics:\n  net: "
    made = counts(loads(text + "{kind: fat-tree, of: nic, switch: s, cable: infiniband ndr}"))
    assert made == {
        "leaf": (ports * half, hosts),
        "spine": (ports * half, hosts),
        "core": (half * half, hosts),
    }


def test_two_levels_where_they_suffice():
    made = counts(described(8, "kind: fat-tree, of: nic, switch: switch-4, cable: infiniband ndr"))
    assert made == {"leaf": (4, 8), "spine": (2, 8)}


# --- what is made ---------------------------------------------------------------------------------


def test_a_rail_has_its_leaf_in_each_unit():
    description = described(8 * 8, rail("unit: 4"))
    leaf_of = {link.a.device: link.b.device for link in description.links[:64]}
    assert leaf_of["nic0"] == "net-leaf0"
    assert leaf_of["nic11"] == "net-leaf3"  # node1, rail 3
    assert leaf_of["nic37"] == "net-leaf13"  # node4 is in the second unit
    assert [len(tier.switches) for tier in description.fabrics[0].tiers] == [16, 1]
    assert {device.place.line for device in description.devices if device.role} == {LINE}
    assert {link.place.line for link in description.links} == {LINE}


def test_a_plain_leaf_and_spine():
    fabric = "kind: leaf-spine, of: nic, rails: 2, leaves: 4, spines: 2, uplinks: 4, "
    description = described(24, fabric + "switch: quantum-2, cable: infiniband ndr")
    assert counts(description) == {"leaf": (4, 24), "spine": (2, 16)}
    leaf_of = {link.a.device: link.b.device for link in description.links[:24]}
    assert [leaf_of[f"nic{number}"][-1] for number in (0, 5, 6, 23)] == ["0", "0", "1", "3"]
    assert {link.cable.text for link in description.links[24:]} == {"2x infiniband ndr"}


def test_written_links_meet_what_is_made():
    text = "topo: 1\ndevices:\n  nic[0-15]: connectx-7\n  target: nvme-of-target\nfabrics:\n  net: "
    text += f"{{{rail('unit: 2', 'spines: 2', 'uplinks: 2')}}}\n"
    description = loads(text + "links:\n  - target -- net-spine all to all: 2x infiniband ndr\n")
    met = [link.b.device for link in description.links if link.a.device == "target"]
    assert met == ["net-spine0", "net-spine1"]


def test_a_faster_uplink_takes_fewer_cables():
    fabric = "kind: leaf-spine, of: nic, leaves: 2, spines: 2, cable: ethernet 100 Gb/s, "
    made = counts(
        described(
            16, fabric + "uplink: ethernet 400 Gb/s, switch: switch-128", "connectx-6-dx-dual-port"
        )
    )
    assert made == {"leaf": (2, 16), "spine": (2, 4)}


def test_uplinks_that_divide_by_nothing_are_avoided():
    """128 ports at 2:1 are 85 down and 43 up, which would be 43 spines."""
    fabric = "kind: fat-tree, of: nic, oversubscription: 2, switch: switch-128, "
    made = counts(described(2000, fabric + "cable: ethernet 400 Gb/s"))
    assert made == {"leaf": (24, 2000), "spine": (11, 24 * 44)}


@pytest.mark.parametrize(("ratio", "uplinks"), [("1", 32), ("2", 16), ("4:3", 24), ("2:1", 16)])
def test_oversubscription_as_asked(ratio, uplinks):
    description = described(64, f"{rail()}, unit: 32, oversubscription: '{ratio}'")
    assert counts(description)["spine"][1] == 8 * uplinks


def test_changes_reach_the_rule_and_what_it_makes():
    description = described(64, rail("unit: 8"))
    doubled = vary(description, {"net.spines": "2"})
    assert [len(tier.switches) for tier in doubled.fabrics[0].tiers] == [8, 2]
    other = vary(description, {"net-leaf.part": "quantum", "fabrics.net.unit": "4"})
    leaves = [device for device in other.devices if device.role == "leaf"]
    assert [device.part.name for device in leaves] == ["quantum"] * 16
    with pytest.raises(UnknownNameError, match="no device net-leaf9; net-leaf"):
        vary(description, {"net-leaf9.part": "quantum"})


def test_many_cards_are_laid_in_linear_time():
    """A hundred thousand cards, and no search that grows with their square."""
    begin = time.process_time()
    fabric = rail(switch="switch-128", cable="ethernet 400 Gb/s")
    small = described(8000, fabric)
    small_time = time.process_time() - begin
    begin = time.process_time()
    large = described(12_500 * 7, fabric.replace("rails: 8", "rails: 7"))
    assert time.process_time() - begin < 40 * max(small_time, 0.05)
    assert len(large.links) > len(small.links)


@pytest.mark.parametrize("keys", [("unit: 2",), ("unit: 2", "levels: 3"), ("spines: 4",)])
def test_it_is_as_if_it_had_been_written(keys):
    """The same devices, cables and resources as of the links that `topo show` writes out."""
    made = build_topology(described(32, rail(*keys)))
    written = topo.build(to_document(made.description))
    assert written.description.fabrics == ()
    assert written.resources.keys() == made.resources.keys()
    assert {link.name: link.cable for link in written.links} == {
        link.name: link.cable for link in made.links
    }


# --- machines that are used -----------------------------------------------------------------------


def pod(nodes, *fabrics, devices=""):
    text = f"topo: 1\ndevices:\n  node[0-{nodes - 1}]: {{use: dgx-h100}}\n{devices}fabrics:\n"
    return loads(text + "".join(f"  {fabric}\n" for fabric in fabrics))


COMPUTE = (
    "net: {kind: rail-optimized, of: node, cards: nic, switch: quantum-2, cable: infiniband ndr}"
)


@pytest.mark.parametrize("row", H100, ids=lambda row: f"{row[0]}-su")
def test_superpod_h100_of_machines(row):
    _, nodes, leaves, spines, cables = row
    tiers = pod(nodes, COMPUTE).fabrics[0].tiers
    assert [(len(tier.switches), tier.cables) for tier in tiers] == [
        (leaves, nodes * 8),
        (spines, cables),
    ]


def test_cards_of_a_machine_are_its_rails():
    description = pod(4, COMPUTE.replace("rail-optimized", "rail-optimized, unit: 2"))
    leaf_of = {str(link.a): link.b.device for link in description.links}
    assert leaf_of["node0.nic0"] == "net-leaf0"
    assert leaf_of["node1.nic7"] == "net-leaf7"
    assert leaf_of["node2.nic1"] == "net-leaf9"


def test_ports_and_several_cards_by_name():
    description = pod(2, COMPUTE.replace("cards: nic", "cards: ['slot[1-2]/p2', nic3], unit: 2"))
    ends = [str(link.a) for link in description.links if link.a.device.startswith("node")]
    assert ends == [f"node{n}.{card}" for n in (0, 1) for card in ("slot1/p2", "slot2/p2", "nic3")]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("cards: nic, ", "", "`node` names machines, and a fabric joins their cards .*cards: "),
        ("cards: nic", "cards: hca", "node0 has no hca"),
        ("cards: nic", "cards: [nic, nic3]", r"joins node\[0-7\].nic3|joins .*nic3 twice"),
        ("of: node", "of: nodes", "no machine is called `nodes`"),
        ("of: node", "of: 'node[0-9]'", "no machine is called"),
        ("of: node, ", "of: node, rails: 4, ", "are 8 of each machine, and `rails:` says 4"),
        ("of: node", "of: [node, box]", "box has 2 cards for this fabric, and node0 has 8"),
        ("of: node", "of: extra", "leave `cards:` out"),
    ],
)
def test_machines_that_do_not_fit(old, new, message):
    more = "  box: {use: l40s-two-switches}\n  extra0: connectx-7\n  extra1: connectx-7\n"
    with pytest.raises(DescriptionError, match=message) as caught:
        pod(8, COMPUTE.replace(old, new, 1), devices=more)
    assert len(caught.value.findings) == 1


def test_a_card_that_one_machine_has_not():
    more = "  box: {use: gds-loses}\n"
    with pytest.raises(DescriptionError, match=r"box has no nic1") as caught:
        pod(
            2,
            COMPUTE.replace("of: node", "of: [node, box]").replace(
                "cards: nic", "cards: [nic0, nic1]"
            ),
            devices=more,
        )
    assert caught.value.findings[0].place.line == 6


# --- what does not fit ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nics", "fabric", "message"),
    [
        (30, rail(), r"30 cards do not come out even: with 8 rails that is 3 nodes and 6 cards"),
        (30, rail(), r"24 cards or 32 cards would do"),
        (64, rail("spines: 6"), r"32 uplinks of a leaf do not come out even on 6 spines \(4 or 8"),
        (64, rail("unit: 40"), r"has 64 ports, and 40 cables down need 40 up \(at most 32 nodes"),
        (10, "kind: leaf-spine, of: nic, leaves: 4, switch: quantum-2, cable: infiniband ndr",
         r"10 nodes do not come out even on 4 leaves \(8 or 12 nodes or 2 or 5 leaves"),
        (100, "kind: leaf-spine, of: nic, leaves: 2, switch: quantum-2, cable: infiniband ndr",
         r"50 cables down need 50 up \(at most 32 nodes a leaf"),
        (40, ("kind: leaf-spine, of: nic, leaves: 4, unit: 8, switch: quantum-2, "
              "cable: infiniband ndr"),
         r"40 nodes need 5 leaves, and here are 4"),
        (24, "kind: fat-tree, of: nic, switch: switch-4, cable: infiniband ndr",
         r"needs 12 leaves, and three levels take 4 groups of 2 \(at most 16 cards"),
        (24, "kind: fat-tree, levels: 2, of: nic, switch: switch-4, cable: infiniband ndr",
         r"needs 12 leaves, and a spine has 4 ports \(at most 8 cards would do; .* `levels: 3`"),
        (8, rail(switch="network-switch-unknown"), r"how many ports .* is not known"),
        (8, rail(switch="connectx-7"), r"`connectx-7` is a nic, and a fabric is made of switches"),
        (8, rail("leaves: 8"), r"the leaves of fabric `net` follow from its units and rails"),
        (8, rail("levels: 4"), r"2 levels, leaves and spines, or 3 with cores"),
        (8, rail("uplinks: 4", "oversubscription: 2"), r"one follows from the other"),
        (8, rail("uplink: 2x infiniband ndr"), r"`uplink:` of fabric `net` is one cable"),
        (8, rail("unit: 4", "levels: 3", "spines: 2"), r"spines of fabric `net` follow"),
        (8, rail().replace("of: nic", "of: [nic, nic3]"), r"fabric `net` joins nic3 twice"),
        (8, rail().replace("of: nic", "of: card"), r"no device card"),
        (8, rail().replace("rail-optimized", "dragonfly"), r"not `dragonfly`"),
        (8, rail("spines: 1"), r"a spine of fabric `net` has 64 ports, and 8 leaves with 32"),
        (8, rail("unit: 99999999"), r"99999999 cables down need 99999999 up"),
    ],
)  # fmt: skip
def test_what_does_not_fit_says_what_would(nics, fabric, message):
    with pytest.raises(DescriptionError, match=message) as caught:
        described(nics, fabric)
    assert len(caught.value.findings) == 1
    place = caught.value.findings[0].place
    assert place is not None
    assert place.line == LINE


def test_a_name_that_is_taken():
    with pytest.raises(DescriptionError, match="net-leaf0 would be made here and is there already"):
        loads(
            "topo: 1\ndevices: {'nic[0-7]': connectx-7, net-leaf0: quantum-2}\n"
            f"fabrics:\n  net: {{{rail()}}}"
        )


def test_more_than_a_file_may_hold_is_refused_at_once():
    text = "topo: 1\nparts: {s: {kind: network-switch, ports: 100000, source: x}}\n"
    text += "devices: {'nic[0-63]': connectx-7}\nfabrics:\n  net: {kind: leaf-spine, of: nic, "
    text += "switch: s, cable: infiniband ndr, leaves: 64, unit: 1, uplinks: 90000, spines: 90000}"
    with pytest.raises(DescriptionError, match="more than 100000 and 400000"):
        loads(text)


@pytest.mark.parametrize(
    "keys",
    [
        "kind: fat-tree, unit: 1, leaves: 999999999999",
        "kind: fat-tree, unit: 999999999999",
        "kind: leaf-spine, leaves: 999999999999",
        "kind: fat-tree, spines: 999999999999",
        "kind: fat-tree, uplinks: 999999999999",
        "kind: fat-tree, oversubscription: 0.000001",
        "kind: fat-tree, rails: 999999999999",
        "kind: fat-tree, levels: 999999999999",
    ],
)
def test_endless_counts_end_at_once(keys):
    begin = time.process_time()
    with pytest.raises(DescriptionError):
        described(64, f"{keys}, of: nic, switch: quantum-2, cable: infiniband ndr")
    assert time.process_time() - begin < 2


@pytest.mark.parametrize(
    "cable", ["memory-bus", "infiniband unknown", "ethernet 1 Mb/s", "pcie 5 x16"]
)
def test_odd_cables_are_no_trouble_for_the_rule(cable):
    made = described(8, f"kind: fat-tree, of: nic, switch: switch-4, cable: {cable}")
    assert len(made.links) == 8 + 4 * 2


# --- the arithmetic -------------------------------------------------------------------------------


@given(
    below=st.integers(1, 200),
    uplinks=st.integers(1, 100),
    spare=st.integers(0, 20),
    ports=st.integers(1, 200),
)
def test_evenly_is_the_least_that_fits(below, uplinks, spare, ports):
    """Against every number of switches there could be."""
    fits = [
        above
        for above in range(1, uplinks + spare + 1)
        for bundle in range(1, (uplinks + spare) // above + 1)
        if above * bundle >= uplinks and below * bundle <= ports
    ]
    up = clos.evenly(below, uplinks, uplinks + spare, ports)
    assert (up.above if up else None) == min(fits, default=None)
    if up:
        assert uplinks <= up.uplinks <= uplinks + spare
        assert up.uplinks == up.above * up.bundle
        assert below * up.bundle <= ports


@given(ports=st.integers(1, 300), ratio=st.floats(0.1, 20), faster=st.floats(0.1, 10))
def test_most_downlinks_leave_room(ports, ratio, faster):
    most = clos.most_downlinks(ports, ratio, faster)
    assert not most or most + clos.uplinks_for(most, ratio, faster) <= ports
    assert most + 1 + clos.uplinks_for(most + 1, ratio, faster) > ports
