"""A data path that some of the workloads asked about cannot take, or that is refused."""

from __future__ import annotations

from tests.machines import ONE_SOCKET, TWO_SOCKETS, built, uncapped
from topo.study.compare import compare

SEVERAL = uncapped(TWO_SOCKETS) + "  copy: {copy: 10 GB, from: gpu0, to: gpu1}\n"


def test_what_no_named_path_joins_is_left_out_with_a_line():
    asked = compare(built(SEVERAL), via=["peer-pcie", "peer-ram"])
    assert [each.workload.name for each in asked.workloads] == ["copy"]
    (line,) = [each for each in asked.findings if each.code == "workload-left-out"]
    assert line.message == (
        "near, far and back are left out: peer-pcie and peer-ram join other ends"
    )
    asked = compare(built(SEVERAL), via=["direct", "peer-pcie"])
    assert [[path.name for path in each.paths] for each in asked.workloads] == [
        *[["direct"]] * 3,
        ["peer-pcie"],
    ]
    assert "workload-left-out" not in [each.code for each in asked.findings]


def test_the_only_workload_is_refused_with_the_reason():
    for asked in (
        compare(built(SEVERAL), workload="copy", via=["direct"]),
        compare(built(TWO_SOCKETS), workload="near", via=["peer-pcie"]),
    ):
        (answer,) = asked.workloads[0].paths
        assert answer.verdict == "refused"
        assert "wrong-ends" in [reason.code for reason in answer.reasons]
        assert asked.findings == ()


def test_a_refused_path_assumes_nothing():
    text = uncapped(ONE_SOCKET).replace("p2p: yes", "p2p: no")
    assert compare(built(text), workload="load", via=["direct"]).findings == ()
    unsaid = text.replace("settings: {iommu: off}", "")
    assert compare(built(unsaid), workload="load", via=["direct"]).findings == ()
