"""MLPerf Storage v1.0 (https://github.com/mlcommons/storage_results_v1.0), beside what topo says.

Its accelerators are emulated: data ends in the hosts' RAM, and each sleeps for as long as it would
compute. Utilisation (AU) is the share of the time in which they sleep; a run counts from 90 % on.
What topo says is the most that the hardware and the accelerators' own needs allow, so a result is
never above it, and below it by the time in which accelerators wait.
"""

from __future__ import annotations

import pytest

from tests.machines import built
from tests.study.test_published import GB, cluster, opened
from topo.study.compare import compare
from topo.study.needs import Feeding


def fed(machine, source, accelerators, model="unet3d"):
    """Return the answer when accelerators in all hosts compute at once, and how many are fed."""
    words = f"{{needs: {model}, accelerators: {accelerators}, from: {source}, to: mem}}"
    path = compare(built_with(machine, words), via=["odirect"])["odirect"]
    assert isinstance(path.met, Feeding)
    assert path.rate is not None
    return path, path.met


def built_with(machine, workload):
    lines = machine.description.document.lines
    return built("\n".join([*lines, "workloads:", f"  train: {workload}", ""]))


def appliance(hosts, ports, read="unlimited"):
    """Return hosts of one port of 200 GB/s each, so that only the storage and its ports limit."""
    return cluster(
        hosts,
        storage="store: appliance",
        links=f"  - store -- net: {ports}",
        cable="2x ethernet 800 Gb/s",
        card="2x 800 Gb/s",
        read=read,
    )


def test_m1_storage_ports_bind_255_h100():
    machine = cluster(
        51,
        storage="store[0-1]: appliance",
        links="  - store -- net: 16x ethernet 200 Gb/s",
        cable="2x ethernet 100 Gb/s",
        card="2x 100 Gb/s",
    )
    path, feeding = fed(machine, "store", "255x h100")
    assert {full.resource.kind for full in path.bottlenecks} == {"network-link"}
    assert (feeding.fed, feeding.count) == (255, 255)
    assert 1.0 <= path.rate / GB / 729.3 <= 1.10  # AU 91.7 %: they wait for the rest


@pytest.mark.parametrize(
    ("accelerators", "measured"), [("36x h100", 103.8), ("72x a100", 104.6)], ids=["M2", "M3"]
)
def test_m2_and_m3_one_appliance_gives_the_same_to_either_generation(accelerators, measured):
    """The vendor says "110 GB/s max reads"; 36 H100 would read 114.4 and 72 A100 116.2."""
    path, feeding = fed(appliance(18, "8x infiniband hdr", "110 GB/s"), "store", accelerators)
    assert [full.resource.name for full in path.bottlenecks] == ["store/read"]
    assert feeding.fed == feeding.count
    assert 1.0 <= path.rate / GB / measured <= 1.06


HDR, NDR = ("infiniband hdr", "1x 200 Gb/s"), ("infiniband ndr", "1x 400 Gb/s")


@pytest.mark.parametrize(
    ("hosts", "accelerators", "model", "measured", "utilisation", "most"),
    [
        pytest.param(32, "512x h100", "resnet50", 96.5, 0.924, 1.09, id="M4"),
        pytest.param(32, "864x a100", "resnet50", 82.9, 0.913, 1.10, id="M5"),
        # here the throughput is 4 % below the utilisation of what 13 ask for, which is 1.14 of it
        pytest.param(1, "13x h100", "unet3d", 36.3, 0.915, 1.14, id="M6"),
        pytest.param(5, "15x h100", "unet3d", 43.0, 0.912, 1.11, id="M11"),
        pytest.param(1, "5x h100", "unet3d", 14.6, 0.927, 1.09, id="M12"),
    ],
)
def test_accelerators_read_no_more_than_they_compute_on(
    hosts, accelerators, model, measured, utilisation, most
):
    """Neither ports nor storage bind: what binds is what the accelerators ask for."""
    path, feeding = fed(appliance(hosts, "8x infiniband hdr"), "store", accelerators, model)
    assert path.bottlenecks == ()
    assert [limit.model for limit in path.own_limits] == [model]
    assert feeding.fed == feeding.count
    assert 1.0 <= path.rate / GB / measured <= most
    # and of that they had their utilisation, to 4 %
    assert path.rate / GB * utilisation == pytest.approx(measured, rel=0.045)


@pytest.mark.parametrize(
    ("hosts", "accelerators", "model", "measured", "most"),
    [
        # the throughput is 4 to 7 % below the utilisation of what unet3d asks for, as M6's
        pytest.param(1, "24x a100", "unet3d", 32.6, 1.19, id="M7, unet3d"),
        pytest.param(1, "90x a100", "resnet50", 9.1, 1.05, id="M7, resnet50 A100"),
        pytest.param(1, "74x h100", "resnet50", 14.4, 1.06, id="M7, resnet50 H100"),
        pytest.param(65, "195x a100", "unet3d", 286.5, 1.10, id="M14, A100"),
        pytest.param(50, "100x h100", "unet3d", 275.8, 1.16, id="M14, M15, H100"),
        pytest.param(1, "4x h100", "unet3d", 11.6, 1.10, id="M15, one host"),
        pytest.param(10, "20x h100", "unet3d", 58.8, 1.09, id="M15, ten hosts"),
        pytest.param(137, "411x h100", "unet3d", 1196, 1.10, id="M19"),
    ],
)
def test_what_accelerators_ask_for_is_what_they_had_and_their_waiting(
    hosts, accelerators, model, measured, most
):
    """Of these the results state no limit of storage or network: accelerators are what binds."""
    path, feeding = fed(appliance(hosts, "64x infiniband hdr"), "store", accelerators, model)
    assert path.bottlenecks == ()
    assert feeding.fed == feeding.count
    assert 1.0 <= path.rate / GB / measured <= most


@pytest.mark.parametrize(
    ("drives", "medium", "counts", "measured", "utilisation"),
    [
        pytest.param(10, NDR, (20, 60), (57.8, 168.7), (0.974, 0.949), id="M8, M9"),
        pytest.param(8, HDR, (12, 36), (35.0, 102.4), (0.98, 0.958), id="M10"),
    ],
)
def test_m8_to_m10_scale_with_their_accelerators(drives, medium, counts, measured, utilisation):
    """One host and three read from three opened nodes: less than the ports, what they ask for.

    topo is 9 to 13 % above the throughput. The accelerators' utilisation explains 2 to 5 of it; the
    other 7 are in none of the figures that the results state (the throughput is that of the whole
    run, with the start of each epoch in it).
    """
    cable, card = medium
    for hosts, count, rate, busy in zip((1, 3), counts, measured, utilisation, strict=True):
        nodes = opened(3, drives, cable, cards=2)
        machine = cluster(hosts, cable=cable, card=card, cards=2, **nodes)
        path, feeding = fed(machine, "drive", f"{count}x h100")
        assert path.bottlenecks == ()
        assert feeding.fed == count
        assert 1.08 <= path.rate / GB / rate <= 1.13
        assert path.rate / GB * busy / rate == pytest.approx(1.07, rel=0.01)


def test_m13_is_not_below_what_was_measured():
    """130 H100 in ten hosts and 264 A100 in twelve, three nodes of 4 NDR: 212.6 and 211.3 GB/s.

    Those are not the 91.8 and 90.6 % of utilisation that the same files state, which are 379 and
    386 GB/s of what so many ask for: nothing here is held to them but that topo promises no less.
    """
    for hosts, accelerators, measured in ((10, "130x h100", 212.6), (12, "264x a100", 211.3)):
        path, feeding = fed(appliance(hosts, "12x infiniband ndr"), "store", accelerators)
        assert path.rate / GB >= measured
        assert feeding.fed == feeding.count


def test_m18_one_drive_binds():
    """A drive whose vendor declares 10.0 GB/s gave 10.07: the figure is rounded."""
    machine = cluster(
        1,
        storage="store: appliance",
        links="  - store -- net: 1x infiniband ndr",
        cable=NDR[0],
        card=NDR[1],
        read="10 GB/s",
    )
    path, feeding = fed(machine, "store", "8x h100")
    assert [full.resource.name for full in path.bottlenecks] == ["store/read"]
    assert path.rate / GB / 10.07 == pytest.approx(1.0, rel=0.01)
    assert feeding.fed == 3  # of the eight H100 that topo is asked about; theirs are not named
