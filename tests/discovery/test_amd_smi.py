"""`amd-smi topology`: addresses, and which GPUs xGMI joins, from text and JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given

from tests.discovery.test_mutations import damaged, survives
from topo.discovery.file_kinds import file_kind
from topo.discovery.importing import discover, import_text, import_together
from topo.errors import ExchangeError

A, B, C = "0000:0c:00.0", "0000:22:00.0", "0000:9f:00.0"


def table(title, rows):
    head = f"{' ' * 13}{A} {B} {C}"
    return f"{title} TABLE:\n{head}\n" + "".join(f"{name} {' '.join(r)}\n" for name, r in rows)


def text(*, hops="1", weight="15"):
    return (
        table("ACCESS", [(each, ["ENABLED"] * 3) for each in (A, B, C)])
        + table("WEIGHT", [(A, ["0", weight, "40"]), (B, [weight, "0", "40"]), (C, ["40"] * 3)])
        + table("HOPS", [(A, ["0", hops, "2"]), (B, [hops, "0", "2"]), (C, ["2", "2", "0"])])
        + table(
            "LINK TYPE",
            [(A, ["SELF", "XGMI", "PCIE"]), (B, ["XGMI", "SELF", "PCIE"]), (C, ["PCIE"] * 2)],
        )
        + "\nLegend:\n SELF = Current GPU\n"
    )


def as_json(*, weight=15):
    def link(bdf, kind, hops):
        return {"gpu": 0, "bdf": bdf, "link_type": kind, "num_hops": hops, "weight": weight}

    return json.dumps(
        [
            {"gpu": 0, "bdf": A, "links": [link(A, "SELF", 0), link(B, "XGMI", 1)]},
            {"gpu": 1, "bdf": B, "links": [link(A, "XGMI", 1), link(C, "PCIE", 2)]},
            {"gpu": 2, "bdf": C, "links": [link(A, "PCIE", 2)]},
        ]
    )


@pytest.mark.parametrize(
    "data", [text(), as_json(), text().replace("\n", "\r\n"), "$ x\n" + text()]
)
def test_addresses_and_the_links_of_one_hop(data):
    assert file_kind(data.encode()).importer == "amd-smi"
    machine = discover(None, data.encode(), "amd.txt")
    assert [each.pci for each in machine.of_kind("gpu")] == [(A,), (B,), (C,)]
    assert [(each.a, each.b, each.cable) for each in machine.cables] == [(A, B, "xgmi unknown")]


def test_what_is_two_hops_away_is_not_joined():
    assert not discover(None, text(hops="2").encode(), "amd.txt").cables


@pytest.mark.parametrize("data", [text(weight="30"), as_json(weight=30)])
def test_a_weight_of_two_hops_goes_before_the_number_of_hops(data):
    # of an MI250X both tools tell one hop to all others
    assert not discover(None, data.encode(), "amd.txt").cables


def test_it_is_a_file_that_says_what_it_does_not_know():
    result = import_text(None, text().encode(), "amd.txt")
    assert "pci: [0c:00.0, 22:00.0]" in result.yaml
    assert "pci: 9f:00.0" in result.yaml
    assert "xgmi" in result.yaml
    assert any(each.code == "numa-unknown" for each in result.findings)


def test_beside_a_tree_it_gives_the_links():
    tree = "\n".join(
        f"{each.removeprefix('0000:')} Display controller [0380]: AMD [1002:74a1]\n"
        f"\tNUMA node: {node}\n"
        for node, each in enumerate((A, B, C))
    )
    sources = [discover(None, tree.encode(), "l.txt"), discover(None, text().encode(), "a.txt")]
    assert "xgmi" in import_together(sources).yaml


@pytest.mark.parametrize(
    ("data", "code"),
    [
        ("LINK TYPE TABLE:\n", "nothing-there"),
        ('[{"link_type": ' + "[" * 5000, "broken-json"),
        ('[{"bdf": 5, "links": [{"link_type": 1}]}]', "nothing-there"),
        ("HOPS TABLE:\n" + f"{A} " * 9000, "import-too-big"),
        ('{"link_type": [' + "1," * 200_000, "import-too-big"),
    ],
)
def test_hostile_files(data, code):
    with pytest.raises(ExchangeError) as caught:
        import_text("amd-smi", data.encode(), "amd.txt")
    assert caught.value.findings[0].code == code


@given(damaged([text().encode(), as_json().encode()]))
def test_damaged_files(data):
    survives("amd-smi", data)
