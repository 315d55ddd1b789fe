"""A text around what tools printed: what is known in it is picked out, and all else is said."""

from __future__ import annotations

import re

import pytest
from hypothesis import given

from tests.discovery.issues import CHECK, COLLECT_ENV, ISSUES, LEGEND, MATRIX, PORTS, TRACKER
from tests.discovery.pasted import hostile, survives
from tests.discovery.test_combine import nccl
from tests.discovery.test_corpus import CORPUS
from tests.discovery.test_mutations import damaged
from tests.discovery.test_numa_nodes import numactl
from topo.discovery.importing import discover, import_text, import_together
from topo.discovery.pasted import blocks_of
from topo.errors import ExchangeError
from topo.topology.build import build_topology


def imported(issue):
    return import_text(None, ISSUES[issue].encode(), "issue.txt")


def said(found, code):
    return [finding.message for finding in found.findings if finding.code == code]


def kinds(text):
    return [block.kind.importer for block in blocks_of(text.split("\n"))]


@pytest.mark.parametrize(
    ("issue", "expected"),
    [
        ("tracker", ["nvidia-smi", "", "ibstat"]),
        ("mail", ["nvidia-smi", "ibstat", "numactl"]),
        ("log of CI", ["nvidia-smi", "numactl", "dmidecode"]),
        ("collect_env", ["gpus", "numactl", "nvidia-smi"]),
        ("web page", ["nccl", "numactl"]),
        ("bug report", ["nvidia-smi", "", "dmidecode", "nvidia-smi"]),
    ],
)
def test_blocks(issue, expected):
    assert kinds(ISSUES[issue]) == expected


@pytest.mark.parametrize("issue", ISSUES)
def test_each_gives_a_machine_and_says_what_it_took(issue):
    found = imported(issue)
    build_topology(found.description)
    assert len(found.machine.of_kind("gpu")) == 2
    (taken,) = said(found, "picked-out")
    lines = ISSUES[issue].split("\n")
    for first, last in re.findall(r"lines (\d+)-(\d+) ", taken):
        assert 1 <= int(first) < int(last) <= len(lines)
    assert found.description.name == "issue"
    assert found.yaml.startswith("# Imported from issue.txt (")


def test_lines_are_those_of_the_file():
    lines = TRACKER.split("\n")
    block = next(block for block in blocks_of(lines) if block.kind.importer == "ibstat")
    assert lines[block.first - 1].strip() == "CA 'mlx5_0'"
    assert lines[block.last - 1].strip() == "Link layer: InfiniBand"


def test_a_tracker():
    found = imported("tracker")
    assert [card.ports for card in found.machine.of_kind("nic")] == [(4e11,), (2e11,)]
    assert re.search(r"port speed from issue.txt lines \d+-\d+", found.yaml)
    (skipped,) = said(found, "text-skipped")
    assert re.fullmatch(
        r"skipped 1 part of the text: lines \d+-\d+ \(output of gdscheck\)", skipped
    )


def test_a_mail():
    found = imported("mail")
    assert [card.pci for card in found.machine.of_kind("nic")] == [
        ("0000:12:00.0",),
        ("0000:22:00.0",),
    ]
    assert "size: 202.4 GB" in found.yaml


def test_a_log_of_ci():
    found = imported("log of CI")
    assert "cpu[0-1]: {part: xeon-8480c" in found.yaml
    assert "ram[0-1]: {part: ddr5-4800, channels: 8" in found.yaml
    assert not said(found, "text-skipped")


def test_collect_env():
    found = imported("collect_env")
    assert "part: xeon-8480c" in found.yaml
    assert "gpu[0-1]: h100-sxm-80gb" in found.yaml
    assert "4x nvlink 4" in found.yaml


def test_a_web_page():
    found = imported("web page")
    assert found.kind == "nccl"
    assert "size: 202.4 GB" in found.yaml


@pytest.mark.skipif(not CORPUS.exists(), reason=f"NO CORPUS at {CORPUS}")
def test_real_outputs_in_one_text():
    """A tree, single devices by -vvv, NUMA nodes and a matrix: a report of one server."""
    lspci = CORPUS / "lspci"
    files = [
        lspci / "asus-esc8000a-lspci-tv.txt",
        lspci / "asus-esc8000a-numactl.txt",
        CORPUS / "nvidia-smi" / "asus-esc8000a-4xRTX6000Ada-CX7.txt",
    ]
    parts = [file.read_text(encoding="utf-8") for file in files]
    devices = (lspci / "asus-esc8000a-lspci-vvv-devices.txt").read_text(encoding="utf-8")
    parts += re.split(r"(?m)^(?=\$ )", devices)
    text = "# A server\n" + "".join(f"\n## Part\n```\n{part}\n```\n" for part in parts)
    found = import_text(None, text.encode(), "report.md")
    gpus = found.machine.of_kind("gpu")
    assert [(gpu.link.generation, gpu.link.lanes) for gpu in gpus if gpu.link] == [(4, 16)] * 4
    assert [cpu.numa for cpu in found.machine.of_kind("cpu")] == [(0,), (1,)]
    assert found.yaml.count("size: [202.5 GB, 202.9 GB]") == 1
    assert not said(found, "sources-disagree")


def test_a_second_host_is_not_mixed_in():
    found = imported("bug report")
    (skipped,) = said(found, "text-skipped")
    assert "(output of gdscheck)" in skipped
    assert "it says otherwise than the one before: is it of another host?" in skipped
    assert not said(found, "sources-disagree")


def test_the_same_twice_is_one():
    text = f"{MATRIX}\nand again:\n\n```\n{MATRIX}```\n{PORTS}"
    found = import_text(None, text.encode(), "issue.txt")
    assert not said(found, "text-skipped")
    assert len(found.machine.of_kind("gpu")) == 2


def test_what_a_tool_wrote_is_read_as_it_is():
    """No word of a text where there is none."""
    for data in (MATRIX + LEGEND, PORTS):
        machine = discover(None, data.encode(), "a.txt")
        assert "picked-out" not in {finding.code for finding in machine.findings}
        assert machine.source in {"output of nvidia-smi topo -m", "what RDMA tools tell of ports"}


def test_facts_alone_are_no_machine():
    text = (
        f"My ports:\n\n{PORTS}\n\n```\n$ numactl -H\navailable: 1 nodes (0)\nnode 0 cpus: 0\n```\n"
    )
    with pytest.raises(ExchangeError) as refused:
        import_text(None, text.encode(), "issue.txt")
    (finding,) = refused.value.findings
    assert finding.code == "facts-only"
    assert "the ports of network cards and its CPUs and NUMA nodes" in finding.message
    assert finding.message.startswith("`issue.txt` tells ")
    assert "`topo import FILE --and issue.txt`" in finding.help


def test_a_text_without_any_output():
    with pytest.raises(ExchangeError, match="a text of no kind that topo knows"):
        discover(None, b"dear all,\n\nit does not work\n", "issue.txt")
    with pytest.raises(ExchangeError, match="output of gdscheck"):
        discover(None, f"dear all,\n\n{CHECK}".encode(), "issue.txt")


def test_a_kind_that_is_written_stands():
    found = import_text("nvidia-smi", COLLECT_ENV.encode(), "issue.txt")
    assert not said(found, "picked-out")


def test_a_broken_part_is_skipped_with_its_reason():
    text = f"{MATRIX}\n```xml\n<system version='1'><cpu>\n```\n\n```\n{PORTS}```\n"
    found = import_text(None, text.encode(), "issue.txt")
    (skipped,) = said(found, "text-skipped")
    assert "an NCCL topology file: it is not whole XML" in skipped


@pytest.mark.parametrize("issue", ISSUES)
def test_other_ways_to_paste_it(issue):
    text = ISSUES[issue]
    plain = imported(issue)
    for data in (
        text.replace("\n", "\r\n").encode(),
        text.encode("utf-16"),
        "\n".join(f"{line}  " if line.strip() else line for line in text.split("\n")).encode(),
        "\n".join(f"> {line}" for line in text.split("\n")).encode(),
    ):
        found = import_text(None, data, "issue.txt")
        assert found.document == plain.document


@pytest.mark.parametrize("issue", ISSUES)
def test_hostile(issue):
    for data in hostile(ISSUES[issue]).values():
        survives(lambda data=data: discover(None, data, "issue.txt"), seconds=20)


@pytest.mark.parametrize(
    "line",
    [
        "```",
        "<system>",
        "> " * 40,
        "GPU0 X",
        "CA 'a'",
        "node 0 cpus: 1",
        "root@a:~# b",
        "<pre>",
        "{",
    ],
)
def test_very_many_lines(line):
    data = f"{line}\n\n".encode() * 30_000
    survives(lambda: discover(None, data, "issue.txt"), seconds=20)


@given(data=damaged([text.encode() for text in ISSUES.values()]))
def test_damaged(data):
    survives(lambda: import_text(None, data, "issue.txt"))


def test_several_facts_of_one_text_are_laid_beside_a_machine():
    facts = f"$ ibstat\n{PORTS}\n$ numactl -H\n{numactl(2)}\nThat is all.\n".encode()
    with pytest.raises(ExchangeError, match="tells the ports of network cards and its CPUs"):
        import_text(None, facts, "f.txt")
    machine = discover(None, nccl(), "a.xml")
    found = import_together([machine, discover(None, facts, "f.txt")])
    assert "picked-out" in {finding.code for finding in found.findings}
    assert "# Combined with f.txt lines" in found.yaml


@pytest.mark.parametrize(
    "line",
    [
        "Link 1: https://example.org/a",
        "NAME    SIZE  ALLOC   FREE  CAP  HEALTH",
        "NAME          READY   STATUS    RESTARTS   AGE",
    ],
)
def test_what_looks_like_a_tools_line_and_is_none(line):
    assert kinds(f"Hello,\n\n{line}\nand so on\n") == []
