"""`nvidia-smi -q`, as text and XML: what GPUs are, their links and their BAR1."""

from __future__ import annotations

import pytest

from tests.discovery.test_combine import codes, nccl, smi
from topo.discovery.file_kinds import file_kind
from topo.discovery.importing import discover, import_text, import_together
from topo.errors import ExchangeError


def block(address, *, numbers="0x233010DE", now=16, ends=True, bar1="131072 MiB", generation="5"):
    of_ends = (
        "                Device Max                        : 5\n"
        "                Host Max                          : 5\n"
    )
    return (
        f"GPU 0000{address}\n"
        "    Product Name                          : NVIDIA H100 80GB HBM3\n"
        "    MIG Mode\n"
        "        Current                           : Disabled\n"
        "    PCI\n"
        "        Bus                               : 0x11\n"
        f"        Device Id                         : {numbers}\n"
        f"        Bus Id                            : 0000{address}\n"
        "        GPU Link Info\n"
        "            PCIe Generation\n"
        f"                Max                       : {generation}\n"
        "                Current                   : 1\n"
        f"{of_ends if ends else ''}"
        "            Link Width\n"
        "                Max                       : 16x\n"
        f"                Current                   : {now}x\n"
        "        Bridge Chip\n"
        "            Type                          : N/A\n"
        "    FB Memory Usage\n"
        "        Total                             : 81559 MiB\n"
        "    BAR1 Memory Usage\n"
        f"        Total                             : {bar1}\n"
        "        Used                              : 1 MiB\n"
    )


def text(*blocks):
    head = "\n==============NVSMI LOG==============\n\nTimestamp       : Mon Nov 30 08:00:00 2026\n"
    return f"{head}Driver Version  : 550.54\n\nAttached GPUs   : {len(blocks)}\n" + "\n".join(
        blocks
    )


def xml(*widths):
    gpus = "".join(
        f'<gpu id="0000000{at}:{at}1:00.0"><product_name>NVIDIA H200</product_name>'
        "<pci><pci_device_id>233510DE</pci_device_id><pci_gpu_link_info><pcie_gen>"
        "<max_link_gen>5</max_link_gen><current_link_gen>1</current_link_gen></pcie_gen>"
        f"<link_widths><max_link_width>16x</max_link_width><current_link_width>{width}x"
        "</current_link_width></link_widths></pci_gpu_link_info></pci><bar1_memory_usage>"
        "<total>256 MiB</total></bar1_memory_usage></gpu>"
        for at, width in enumerate(widths, 1)
    )
    return (
        '<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">\n'
        f"<nvidia_smi_log><timestamp>x</timestamp>{gpus}</nvidia_smi_log>\n"
    )


A, B = "0000:11:00.0", "0000:21:00.0"
TWO = text(block(A), block(B))
PLAIN = {"text": TWO, "XML": xml(16, 16)}


def told(text):
    data = text if isinstance(text, bytes) else text.encode()
    return discover(None, data, "q.txt")


@pytest.mark.parametrize("what", PLAIN)
def test_it_is_known_and_refused_alone(what):
    assert file_kind(PLAIN[what].encode()).importer == "nvidia-smi-q"
    with pytest.raises(
        ExchangeError, match="tells what its GPUs are, and their PCIe links, and no"
    ):
        import_text(None, PLAIN[what].encode(), "q.txt")


def test_parts_addresses_links_and_bar1():
    first, second = told(TWO).devices
    assert (first.part, first.pci, second.pci) == ("h100-sxm-80gb", (A,), (B,))
    assert (first.link.cable, first.facts) == ("pcie 5 x16", (("bar1", "128 GiB"),))


def test_the_xml_tells_the_same():
    (gpu,) = told(xml(8)).devices
    assert (gpu.part, gpu.pci) == ("h200-sxm-141gb", ("0001:11:00.0",))
    assert (gpu.link.cable, gpu.facts) == ("pcie 5 x8", (("bar1", "256 MiB"),))


def test_fewer_lanes_than_there_could_be_are_said():
    machine = told(text(block(A, now=8), block(B)))
    assert [gpu.link.lanes for gpu in machine.devices] == [8, 16]
    (finding,) = machine.findings
    assert (finding.code, finding.message[:12]) == ("trained-down", A)


@pytest.mark.parametrize(
    ("values", "cable"),
    [
        ({"generation": "N/A"}, "pcie 5 x16"),
        ({"generation": "N/A", "ends": False}, "pcie unknown x16"),
        ({"generation": "77"}, "pcie unknown x16"),
        ({"now": 77}, "pcie 5 x16"),
    ],
)
def test_what_is_not_told_or_cannot_be_stays_unknown(values, cable):
    assert told(text(block(A, **values))).devices[0].link.cable == cable


def test_a_number_that_is_not_listed_leaves_the_name():
    assert told(text(block(A, numbers="0xFFFF10DE"))).devices[0].part == "h100-sxm-80gb"
    assert not told(text(block(A, bar1="N/A"))).devices[0].facts


def test_gpus_of_a_matrix_get_addresses_links_and_parts():
    found = import_together([discover(None, smi(), "a.txt"), told(TWO)])
    line = next(line for line in found.yaml.splitlines() if "gpu[0-1]:" in line)
    assert "h100-sxm-80gb, bar1: 128 GiB, pci: [11:00.0, 21:00.0]" in line
    assert "pcie 5 x16" in found.yaml


def test_another_link_than_the_first_source_has_is_said():
    found = import_together([discover(None, nccl(), "a.xml"), told(text(block(A, now=8)))])
    assert "sources-disagree" in codes(found)


def test_it_is_picked_out_of_an_issue():
    issue = f"Slow.\n\n```\n{smi().decode()}```\n\n$ nvidia-smi -q\n{TWO}\nwhy?\n"
    found = import_text(None, issue.encode(), "issue.txt")
    assert "pci: [11:00.0, 21:00.0]" in found.yaml
    assert "text-skipped" not in codes(found)


def test_indentation_does_not_matter():
    flat = "\n".join(line.strip() for line in TWO.splitlines())
    assert told(flat).devices == told(TWO).devices
