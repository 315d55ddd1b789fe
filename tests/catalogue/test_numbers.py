"""The catalogue's numbers, each as published or as the arithmetic gives it (decimal GB/s)."""

from typing import Any

import pytest

from topo.catalogue.cables import parse_cable
from topo.catalogue.part import memory_bus_rate, memory_headline_rate
from topo.catalogue.parts import catalogue

SHIPPED: Any = catalogue()


@pytest.fixture
def rate():
    """The rate of a whole bundle, one direction, in GB/s."""

    def bundle(text):
        cable: Any = parse_cable(text, SHIPPED.media)
        return cable.count * cable.rate.value / 1e9

    return bundle


# --- PCIe: GT/s x lanes x encoding / 8 ------------------------------------------------------------


@pytest.mark.parametrize(
    ("generation", "lane", "x4", "x8", "x16"),
    [
        (1, 0.25, 1.0, 2.0, 4.0),
        (2, 0.5, 2.0, 4.0, 8.0),
        (3, 0.985, 3.94, 7.88, 15.75),
        (4, 1.969, 7.88, 15.75, 31.51),
        (5, 3.938, 15.75, 31.51, 63.02),
        (6, 7.375, 29.5, 59.0, 118.0),
    ],
)
def test_pcie(rate, generation, lane, x4, x8, x16):
    for lanes, expected in ((1, lane), (4, x4), (8, x8), (16, x16)):
        assert rate(f"pcie {generation} x{lanes}") == pytest.approx(expected, abs=0.006)
    assert rate(f"pcie {generation} x2") == pytest.approx(2 * rate(f"pcie {generation} x1"))


def test_pcie_5_x16_exactly():
    cable: Any = parse_cable("pcie 5 x16", SHIPPED.media)
    assert cable.rate.value == pytest.approx(63.015384615384615e9, rel=1e-15)
    assert cable.rate.value * 8 / 1e9 == pytest.approx(504.123, abs=0.001)
    assert (cable.rate.kind, cable.rate.source) == ("formula", "32 GT/s x 16 x 128/130 / 8")


@pytest.mark.parametrize(
    ("name", "efficiency", "kind"),
    [
        ("pcie 3", 0.84, "guess"),
        ("pcie 4", 0.88, "guess"),
        ("pcie 5", 0.89, "guess"),
        ("nvlink 1", 73.06 / 80, "measured"),
        ("nvlink 2", 143.71 / 150, "measured"),
        ("nvlink 3", 270 / 300, "measured"),
        ("nvlink 4", 375 / 450, "measured"),
        ("nvlink 5", 40.1 / 50, "guess"),
        ("infiniband ndr", 4096 / (4096 + 26), "formula"),
        ("ethernet", 4096 / (4096 + 82), "formula"),
    ],
)
def test_efficiency(name, efficiency, kind):
    figure = SHIPPED.media[name].efficiency
    assert figure.value == pytest.approx(efficiency, abs=1e-3)
    assert figure.kind == kind


def test_nothing_is_known_of_pcie_6_in_practice():
    assert SHIPPED.media["pcie 6"].efficiency is None


# --- GPU and CPU links ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "gigabytes_per_s"),
    [
        ("4x nvlink 1", 80),
        ("6x nvlink 2", 150),
        ("12x nvlink 3", 300),
        ("18x nvlink 4", 450),
        ("18x nvlink 5", 900),
        ("4x nvlink ga102", 56.25),
        ("nvlink-c2c 450 GB/s", 450),
        ("qpi 9.6 GT/s", 19.2),
        ("upi 10.4 GT/s", 20.8),
        ("upi 11.2 GT/s", 22.4),
        ("upi 16 GT/s", 32),
        ("4x upi 16 GT/s", 128),
        ("3x upi 16 GT/s", 96),
        ("upi 20 GT/s", 40),
        ("upi 24 GT/s", 48),
        ("xgmi 16 GT/s", 32),
        ("xgmi 18 GT/s", 36),
        ("xgmi 32 GT/s", 64),
        ("7x xgmi 64 GB/s", 448),
        ("infiniband edr", 12.5),
        ("infiniband hdr", 25),
        ("infiniband ndr200", 25),
        ("infiniband ndr", 50),
        ("infiniband xdr", 100),
        ("ethernet 100 Gb/s", 12.5),
        ("ethernet 800 Gb/s", 100),
    ],
)
def test_link(rate, text, gigabytes_per_s):
    assert rate(text) == pytest.approx(gigabytes_per_s, rel=1e-12)


# --- memory: channels x MT/s x 8 ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "channel"),
    [
        ("ddr4-2666", 21.3),
        ("ddr4-3200", 25.6),
        ("ddr5-4400", 35.2),
        ("ddr5-4800", 38.4),
        ("ddr5-5600", 44.8),
        ("ddr5-6400", 51.2),
        ("mrdimm-8800", 70.4),
    ],
)
def test_memory_channel(memory, name, channel):
    assert gigabytes_per_s(memory_bus_rate(memory(name, channels=1))) == pytest.approx(
        channel, abs=0.03
    )


@pytest.mark.parametrize(
    ("name", "channels", "dimms", "populated", "headline"),
    [
        ("ddr5-4800", 8, 2, 281.6, 307.2),  # Xeon 8480C as in DGX H100
        ("ddr5-4800", 8, 1, 307.2, 307.2),
        ("ddr5-5600", 8, 2, 281.6, 358.4),  # Xeon 8570 as in DGX B200
        ("ddr4-3200", 8, 1, 204.8, 204.8),  # EPYC 7742, 7763
        ("ddr4-3200", 8, 2, 187.712, 204.8),  # 375.4 of both sockets
        ("ddr5-4800", 12, 1, 460.8, 460.8),  # EPYC 9554, 9654
        ("ddr5-6400", 12, 1, 614.4, 614.4),  # EPYC 9575F
        ("ddr4-2666", 6, 1, 128.0, 128.0),  # Xeon 8168 as in DGX-2
        ("ddr5-5200", 8, 1, 332.8, 332.8),  # Threadripper Pro
    ],
)
def test_memory_of_a_socket(memory, name, channels, dimms, populated, headline):
    part = memory(name, channels=channels, dimms=dimms)
    assert gigabytes_per_s(memory_bus_rate(part)) == pytest.approx(populated, abs=0.04)
    assert gigabytes_per_s(memory_headline_rate(part)) == pytest.approx(headline, abs=0.04)


def gigabytes_per_s(figure):
    return figure.value / 1e9


@pytest.fixture
def memory(part):
    def read(name, *, channels, dimms=1):
        return part(f"{{like: {name}, channels: {channels}, dimms-per-channel: {dimms}}}").clean

    return read


def test_memory_formula_is_said(memory):
    rate = memory_bus_rate(memory("ddr5-4800", channels=8, dimms=2))
    assert rate.kind == "formula"
    assert rate.source == "8 channels x 4400 MT/s x 8 B at 2 DIMMs a channel"


@pytest.mark.parametrize(("name", "bus"), [("lpddr5x-grace", 512), ("lpddr5x-gh200-480gb", 384)])
def test_memory_with_a_stated_bus(name, bus):
    part = SHIPPED.parts[name]
    assert memory_bus_rate(part) == memory_headline_rate(part) == part.figures["bus"]
    assert part.figures["bus"].value == bus * 1e9


# --- GPUs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "gigabytes", "gigabytes_per_s", "generation"),
    [
        ("v100-sxm-32gb", 32, 900, 3),
        ("a100-sxm-40gb", 40, 1555, 4),
        ("a100-sxm-80gb", 80, 2039, 4),
        ("h100-sxm-80gb", 80, 3350, 5),
        ("h100-pcie-80gb", 80, 2039, 5),
        ("h100-nvl-94gb", 94, 3938, 5),
        ("h200-sxm-141gb", 141, 4800, 5),
        ("b200-sxm-180gb", 180, 8000, 5),
        ("b200-sxm-192gb", 192, 8000, 5),
        ("gb200", 186, 8000, None),
        ("gh200-96gb", 96, 4000, None),
        ("gh200-144gb", 144, 4900, None),
        ("mi250x", 128, 3277, 4),
        ("mi300x", 192, 5325, 5),
        ("l40s", 48, 864, 4),
        ("rtx-4090", 24, 1008, 4),
    ],
)
def test_gpu(name, gigabytes, gigabytes_per_s, generation):
    gpu = SHIPPED.parts[name]
    assert gpu.figures["memory"].value == gigabytes * 1e9
    assert gpu.figures["hbm"].value == gigabytes_per_s * 1e9
    if generation is None:
        assert gpu.slot is None  # on NVLink-C2C
    else:
        assert (gpu.slot.generation, gpu.slot.lanes) == (generation, 16)


def test_eight_h100_hold_640_gb():
    assert 8 * SHIPPED.parts["h100-sxm-80gb"].figures["memory"].value == 640e9


@pytest.mark.parametrize(
    ("name", "peer_to_peer"),
    [("h100-sxm-80gb", True), ("l40s", True), ("rtx-a6000", True), ("mi300x", True)]
    + [(f"rtx-{model}", False) for model in (3060, 3090, 4090, 5090)]
    + [("gpu-unknown", None)],
)
def test_which_gpus_let_others_reach_their_memory(name, peer_to_peer):
    gpu = SHIPPED.parts[name]
    assert gpu.flag("p2p") is peer_to_peer
    assert gpu.sources["p2p"]


@pytest.mark.parametrize(
    ("name", "links", "medium", "total"),
    [
        ("h100-sxm-80gb", 18, "nvlink 4", 450),
        ("a100-sxm-40gb", 12, "nvlink 3", 300),
        ("b200-sxm-180gb", 18, "nvlink 5", 900),
        ("mi300x", 7, "xgmi", 448),
        ("nvswitch-1", 18, "nvlink 2", 450),
        ("nvswitch-2", 36, "nvlink 3", 900),
        ("nvswitch-3", 64, "nvlink 4", 1600),
        ("nvswitch-4", 72, "nvlink 5", 3600),
        ("nvswitch-5", 72, "nvlink 5", 3600),
    ],
)
def test_fabric(name, links, medium, total):
    fabric = SHIPPED.parts[name].fabric
    assert (fabric.count, fabric.medium) == (links, medium)
    assert fabric.count * fabric.rate.value / 1e9 == pytest.approx(total)


# --- network cards --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "ports", "port", "chip", "slot", "functions"),
    [
        # The trap: two ports of 400, one chip of 400, a slot of 504: 50 GB/s a card.
        ("connectx-7-dual-port", 2, 400, 400, (5, 16), 2),
        ("connectx-7", 1, 400, 400, (5, 16), 1),
        ("connectx-7-bridge", 1, 400, 400, (5, 16), 1),
        ("connectx-6", 1, 200, 200, (4, 16), 1),
        ("connectx-6-dual-port", 2, 200, 200, (4, 16), 2),
        ("connectx-8", 1, 800, 800, (6, 16), 1),
        ("bluefield-2-dual-port", 2, 100, 200, (4, 16), 2),
        ("bluefield-3-dual-port", 2, 400, 400, (5, 16), 2),
    ],
)
def test_card(name, ports, port, chip, slot, functions):
    card = SHIPPED.parts[name]
    assert (card.ports.count, card.ports.rate.value * 8 / 1e9) == (ports, port)
    assert card.figures["chip"].value * 8 / 1e9 == chip
    assert (card.slot.generation, card.slot.lanes) == slot
    assert card.figures["functions"].value == functions
    assert card.flag("bridge") is (True if name.endswith("bridge") else None)


# --- hosts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "forwards"),
    [
        ("xeon-8480c", True),
        ("xeon-8570", True),
        ("epyc-7742", True),
        ("epyc-9554", True),
        ("threadripper-pro-7975wx", True),
        ("grace", True),
        ("core-i9-13900k", None),
        ("root-complex", None),
        ("cpu-unknown", None),
    ],
)
def test_which_hosts_forward_peer_traffic(name, forwards):
    host = SHIPPED.parts[name]
    assert host.flag("forwards-p2p") is forwards
    assert host.sources["forwards-p2p"]


@pytest.mark.parametrize("name", ["xeon-8480c", "grace", "root-complex"])
def test_a_core_copies_10_gb_s_where_none_was_measured(name):
    figure = SHIPPED.parts[name].figure("core-copy")
    assert (figure.value, figure.kind) == (10e9, "guess")
    assert not figure.scalable
    assert SHIPPED.parts[name].figure("copy") is None


@pytest.mark.parametrize(
    ("name", "stream"),
    [
        ("xeon-8168", 12),
        ("epyc-7742", 34.2),
        ("epyc-7763", 39.5),
        ("epyc-9654", 50.3),
        ("epyc-9755", 51.3),
    ],
)
def test_a_core_copies_half_of_what_stream_reads_and_writes_by_one_thread(name, stream):
    figure = SHIPPED.parts[name].figure("core-copy")
    assert figure.kind == "measured"
    assert figure.value == pytest.approx(stream / 2 * 1e9, rel=0.005)
    assert figure.range[0] < figure.value


def test_the_storage_that_is_not_modelled_is_the_users_choice():
    target = SHIPPED.parts["nvme-of-target"]
    assert target.figure("read").value == float("inf")
    assert target.figure("read").kind == "quoted"
    assert target.ports is None
