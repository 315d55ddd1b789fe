"""The table of PCI numbers and names."""

from __future__ import annotations

import re

from topo.catalogue.load import catalogue
from topo.catalogue.pci_ids import pci_ids


def test_every_number_and_name_is_a_part():
    table, parts = pci_ids(), catalogue().parts
    for part in (*table.numbers.values(), *table.names.values()):
        assert part in parts
        assert parts[part].kind in ("gpu", "nic", "dpu")


def test_numbers_are_hexadecimal_and_names_lower_case():
    table = pci_ids()
    for vendor, device in table.numbers:
        assert re.fullmatch(r"[0-9a-f]{4}", vendor)
        assert re.fullmatch(r"[0-9a-f]{4}", device)
    assert all(name == name.lower() for name in table.names)


def test_the_table_says_where_it_comes_from():
    assert pci_ids().source.startswith("the PCI ID Repository")
