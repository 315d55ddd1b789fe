"""What a list says of a machine: it follows from the file."""

from __future__ import annotations

import pytest

from tests.machines import GRACE, LOCAL_DRIVES, MI300X, NVLINKED, ONE_SOCKET, TARGET, built
from topo.description.description import GROUPS
from topo.description.loading import loads
from topo.errors import DescriptionError
from topo.study.machines import machine_summary

NVSWITCHED = ONE_SOCKET.replace("gpu0: accel", "gpu0: accel\n  nvswitch: nvswitch-3").replace(
    "workloads:", "  - gpu0 -- nvswitch: 18x nvlink 4\nworkloads:"
)
NO_GPU = (
    "{topo: 1, devices: {cpu0: epyc, nvme0: nvme-gen4-3.84tb}, links: [nvme0 -- cpu0: pcie 4 x4]}"
)


@pytest.mark.parametrize(
    ("text", "group"),
    [
        pytest.param(ONE_SOCKET, "pcie", id="pcie"),
        pytest.param(GRACE, "nvidia", id="chip-to-chip"),
        pytest.param(NVSWITCHED, "nvidia", id="nvswitch"),
        pytest.param(NVLINKED, "pcie", id="nvlink-bridges"),
        pytest.param(MI300X, "amd", id="amd"),
        pytest.param(NO_GPU, "storage", id="no-gpu"),
        pytest.param(TARGET, "cluster", id="two-hosts"),
        pytest.param(f"{TARGET}group: storage\n", "storage", id="as-the-file-says"),
    ],
)
def test_the_group_follows_from_devices_unless_the_file_says_it(text, group):
    assert machine_summary(built(text)).group == group
    assert group in GROUPS


def test_what_it_holds_is_counted():
    machine = machine_summary(built(TARGET))
    assert (machine.gpus, machine.cards) == ({"accel": 2}, {"card": 3})
    assert (machine.drives, machine.appliances, machine.outside) == (8, 0, False)
    assert machine_summary(built(MI300X)).outside
    assert machine_summary(built(LOCAL_DRIVES)).drives == 2


@pytest.mark.parametrize(
    ("comment", "notice"),
    [
        (
            "# A box.\n# Notice:\n# - One 3.5 GB/s\n#   drive. Two cards.\n# - More.\n",
            "One 3.5 GB/s drive.",
        ),
        ("# Notice: it is fast\n#\n# Not known: why.\n", "it is fast"),
        ("# Notice:\n# - No end\n# - of it\n", "No end"),
        ("# Notice:\n", ""),
        ("# A box.\n", ""),
    ],
)
def test_the_first_sentence_to_notice_is_told(comment, notice):
    assert machine_summary(built(comment + NO_GPU)).notice == notice


def test_a_group_of_another_word_is_refused():
    with pytest.raises(DescriptionError) as caught:
        loads("topo: 1\ngroup: clowd\ndevices: {cpu0: epyc}\n")
    (finding,) = caught.value.findings
    assert (finding.code, finding.place.line) == ("unknown-word", 2)
    assert "cloud" in finding.help
