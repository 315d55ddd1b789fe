"""`nvidia-smi nvlink`: how many NVLinks are up, their generation, and where they lead."""

from __future__ import annotations

import pytest

from tests.discovery.test_combine import codes, nccl, smi
from topo.discovery.file_kinds import file_kind
from topo.discovery.importing import discover, import_text, import_together
from topo.errors import ExchangeError

H100 = "NVIDIA H100 80GB HBM3"
SWITCH = "00000000:C0:00.0"


def gpu(number, *links, name=H100):
    lines = (f"\t Link {at}: {text}\n" for at, text in enumerate(links))
    return f"GPU {number}: {name} (UUID: GPU-0{number})\n" + "".join(lines)


def up(number, count=4, down=0, **values):
    return gpu(number, *["26.562 GB/s"] * count, *["<inactive>"] * down, **values)


def leading(number, *addresses):
    return gpu(number, *(f"Remote Device {address}: Link 3" for address in addresses))


STATUS = up(0) + up(1)
REMOTE = leading(0, *["00000000:21:00.0"] * 4) + leading(1, *["00000000:11:00.0"] * 4)
BUS_IDS = gpu(0, SWITCH, "00000000:C1:00.0") + gpu(1, SWITCH, "00000000:C1:00.0")
PLAIN = {
    "-s": STATUS,
    "-R": REMOTE,
    "-p": BUS_IDS,
    "both": STATUS + REMOTE,
    "inactive": gpu(0) + "\t all links are inActive\n" + up(1, 2, 2),
}


def told(text):
    data = text if isinstance(text, bytes) else text.encode()
    return discover(None, data, "nvlink.txt")


TREE = "".join(
    f"{bus}:00.0 3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB]\n\tNUMA node: {node}\n"
    for node, bus in enumerate((11, 21))
).encode()


def tree():
    """Two H100 by address, of which no NVLink is told."""
    return discover(None, TREE, "l.txt")


def links_of(found):
    return [line.strip() for line in found.yaml.splitlines() if "nvlink" in line and "--" in line]


@pytest.mark.parametrize("text", PLAIN.values(), ids=PLAIN)
def test_it_is_known_and_refused_alone(text):
    assert file_kind(text.encode()).importer == "nvlink"
    with pytest.raises(ExchangeError, match="tells the NVLinks of its GPUs, and not what machine"):
        import_text(None, text.encode(), "nvlink.txt")


def test_links_that_are_up_and_their_generation():
    machine = told(up(0, 18) + up(1, 12, 6, name="Acme"))
    assert [(each.active, each.medium) for each in machine.gpu_links] == [
        (18, "nvlink 4"),
        (12, "nvlink 4"),
    ]
    assert [each.part for each in machine.devices] == ["h100-sxm-80gb", "gpu-unknown"]
    (finding,) = machine.findings
    assert (finding.code, finding.message) == (
        "nvlinks-down",
        "12 NVLinks of GPU 1 up, 18 of others",
    )


@pytest.mark.parametrize(
    ("rate", "medium"),
    [("25.781", "2"), ("25", "3"), ("14.062", "ga102"), ("50", "5"), ("53.125", "5")],
)
def test_the_rate_tells_the_generation(rate, medium):
    (links,) = told(gpu(0, f"{rate} GB/s")).gpu_links
    assert links.medium == f"nvlink {medium}"


def test_a_rate_of_no_generation_tells_none():
    assert told(gpu(0, "33.3 GB/s")).gpu_links[0].medium == ""


def test_links_of_a_matrix_get_their_generation():
    found = import_together(
        [discover(None, smi(), "a.txt"), told(up(0, name="A") + up(1, name="A"))]
    )
    assert links_of(found) == ["- gpu0 -- gpu1: 4x nvlink 4  # NV4"]
    assert "sources-disagree" not in codes(found)


def test_another_number_than_the_matrix_has_is_said():
    found = import_together([discover(None, smi(), "a.txt"), told(up(0, 3, 1) + up(1))])
    messages = [one.message for one in found.findings if one.code == "sources-disagree"]
    assert messages == ["gpu0: NVLinks 4 in a.txt, 3 up in nvlink.txt"]


def test_links_to_a_switch_are_compared_by_gpu_alone():
    names = [f"GPU{at}" for at in range(4)]
    rows = (
        "\t".join([row, *("X" if row == column else "NV18" for column in names)]) for row in names
    )
    matrix = discover(None, "\n".join(["\t" + "\t".join(names), *rows]).encode(), "m.txt")
    found = import_together([matrix, told("".join(up(at, 18 - at // 3) for at in range(4)))])
    messages = [one.message for one in found.findings if one.code == "sources-disagree"]
    assert messages == ["gpu3: NVLinks 18 in m.txt, 17 up in nvlink.txt"]
    assert "gpu -- nvswitch0: 18x nvlink 4" in found.yaml


def test_one_gpu_by_its_number():
    names = [f"GPU{at}" for at in range(4)]
    rows = (
        "\t".join([row, *("X" if row == column else "NV18" for column in names)]) for row in names
    )
    matrix = discover(None, "\n".join(["\t" + "\t".join(names), *rows]).encode(), "m.txt")
    found = import_together([matrix, told(up(2, 17))])
    messages = [one.message for one in found.findings if one.code == "sources-disagree"]
    assert messages == ["gpu2: NVLinks 18 in m.txt, 17 up in nvlink.txt"]
    assert "gpu -- nvswitch0: 18x nvlink 4" in found.yaml
    assert "matched by their numbers" in found.yaml
    assert "h100-sxm-80gb" in found.yaml


def test_two_gpus_alone_are_joined():
    found = import_together([tree(), told(STATUS)])
    assert links_of(found) == ["- gpu0 -- gpu1: 4x nvlink 4  # 4 NVLinks up; from nvlink.txt"]


def test_where_unequal_links_lead_stays_open():
    assert not links_of(import_together([tree(), told(up(0, 3) + up(1, 4))]))


def test_addresses_join_two_gpus_once():
    found = import_together([tree(), told(STATUS + REMOTE)])
    assert links_of(found) == ["- gpu0 -- gpu1: 4x nvlink 4  # 4 NVLinks up; from nvlink.txt"]


def test_an_address_that_is_no_gpu_is_a_switch():
    found = import_together([tree(), told(up(0, 2) + up(1, 2) + BUS_IDS)])
    assert len(found.machine.of_kind("nvswitch")) == 1
    assert links_of(found) == ["- gpu -- nvswitch0: 2x nvlink 4  # 2 NVLinks up; from nvlink.txt"]


def test_a_guess_of_a_part_gives_way():
    switches = (
        b"c0:00.0 Bridge: NVIDIA Corporation GH100 [H100 NVSwitch] (rev a1)\n\tNUMA node: 0\n"
    )
    lines = TREE + switches
    alone = import_text(None, lines, "l.txt")
    assert "guessed-nvlinks" in codes(alone)
    found = import_together([discover(None, lines, "l.txt"), told(up(0, 16) + up(1, 16))])
    assert "guessed-nvlinks" not in codes(found)
    assert "16x nvlink 4" in found.yaml


def test_one_gpu_of_several_is_no_fabric():
    switches = (
        b"c0:00.0 Bridge: NVIDIA Corporation GH100 [H100 NVSwitch] (rev a1)\n\tNUMA node: 0\n"
    )
    found = import_together([discover(None, TREE + switches, "l.txt"), told(up(1, 16))])
    assert "guessed-nvlinks" in codes(found)
    assert "18x nvlink 4" in found.yaml


def test_links_of_gpus_without_any_source_of_links():
    found = import_together([discover(None, nccl(), "a.xml"), told(STATUS)])
    assert links_of(found) == ["- gpu0 -- gpu1: 4x nvlink 4  # 4 NVLinks up; from nvlink.txt"]


@pytest.mark.parametrize(
    "text",
    [gpu(0, "CRC Errors: 0"), "Link 0: 26.562 GB/s\n", "\t Link 0, P2P is supported: true\n"],
)
def test_nothing_of_links(text):
    with pytest.raises(ExchangeError, match="does not tell which NVLinks are up"):
        discover("nvlink", text.encode(), "nvlink.txt")
