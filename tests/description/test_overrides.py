"""What a caller changes while a file is read."""

from __future__ import annotations

import pytest

from tests.description.reading import BOX, CABLED, read
from topo.description.loading import loads, vary
from topo.errors import DescriptionError, DocumentError, UnknownNameError
from topo.topology.build import build_topology

FILE = f"""{BOX}{CABLED}settings: {{iommu: off}}
parts:
  acme: {{like: nvme-of-target, read: 90 GB/s, source: sheet}}
data-paths:
  own: {{moves: [storage -> gpu by nic], workers: 8}}
workloads:
  load: {{read: 640 GB, from: storage, to: gpu}}
"""


def device(description, name):
    return next(device for device in description.devices if device.name == name)


def refused(key, value, kind=DescriptionError):
    with pytest.raises(kind) as raised:
        read(FILE, overrides={key: value})
    (finding,) = raised.value.findings
    return finding


def test_a_part_of_one_of_a_range():
    description = read(FILE, overrides={"slot1.part": "connectx-8"})
    assert device(description, "slot1").part.name == "connectx-8"
    assert device(description, "slot2").part.name == "connectx-7-dual-port"


@pytest.mark.parametrize(
    ("target", "lanes"),
    [("gpu", [8] * 8), ("gpu3", [16] * 3 + [8] + [16] * 4), ("gpu[0-1]", [8] * 2 + [16] * 6)],
)
def test_a_figure_of_devices(target, lanes):
    description = read(FILE, overrides={f"{target}.pcie": "5 x8"})
    assert [device(description, f"gpu{at}").part.slot.lanes for at in range(8)] == lanes


def test_a_changed_figure_says_that_it_was_set():
    description = read(FILE, overrides={"storage.read": "80 GB/s", "parts.acme.read": "70 GB/s"})
    assert device(description, "storage").part.figure("read").source == "--set"
    acme = description.parts["acme"]
    assert (acme.figure("read").value, acme.figure("read").source) == (70e9, "--set")
    assert acme.source == "sheet"


def test_a_key_below_a_key():
    description = read(FILE, overrides={"slot1.p2p.posted": "22 GB/s per flow"})
    caps = device(description, "slot1").part.peer_caps
    assert (caps.posted.rate.value, caps.posted.per_flow, caps.non_posted) == (22e9, True, None)


def test_a_value_may_be_a_mapping():
    description = read(
        FILE, overrides={"slot1.p2p": "{posted: 5 GB/s}", "slot2.p2p": {"posted": "4 GB/s"}}
    )
    rates = [
        device(description, name).part.peer_caps.posted.rate.value for name in ("slot1", "slot2")
    ]
    assert rates == [5e9, 4e9]


def test_what_is_wrong_for_several_devices_is_said_once():
    assert refused("gpu.p2p.posted", "10").code == "bare-number"


def test_what_is_not_a_figure_of_a_device():
    description = read(FILE, overrides={"gpu0.pci": "1b:00.0", "devices.gpu1.label": "left"})
    assert device(description, "gpu0").pci == ("1b:00.0",)
    assert device(description, "gpu1").label == "left"


def test_settings():
    assert read(FILE, overrides={"settings.iommu": "on"}).settings.iommu == "on"
    assert read(BOX, overrides={"settings.iommu": "on"}).settings.iommu == "on"


def test_workloads():
    description = read(
        FILE, overrides={"load.read": "1 TB", "workloads.load.via": "[direct, legacy]"}
    )
    assert description.workloads[0].size == 1e12
    assert description.workloads[0].via == ("direct", "legacy")


def test_data_paths():
    description = read(
        FILE, overrides={"own.workers": "2", "legacy.workers": "1", "legacy.stages": "serial"}
    )
    assert description.data_paths["own"].workers == 2
    texts = {key.text: value.text for key, value in description.data_path_overrides["legacy"]}
    assert texts == {"workers": "1", "stages": "serial"}


def test_media():
    description = read(FILE, overrides={"media.pcie 5.efficiency": "70 %"})
    assert description.media["pcie 5"].efficiency.value == 0.7
    cables = [link.cable for link in description.links if link.cable.medium == "pcie 5"]
    assert {cable.efficiency.value for cable in cables} == {0.7}


@pytest.mark.parametrize("target", ["slot1 -- cpu0", "cpu0 -- slot1", "slot1  --  cpu0 "])
def test_a_link(target):
    description = read(FILE, overrides={target.replace("  ", " "): "pcie 4 x8"})
    texts = {str(link.b): link.cable.text for link in description.links if link.a.device == "slot1"}
    assert texts == {"cpu0": "pcie 4 x8"}


def test_links_of_a_stem():
    description = read(FILE, overrides={"gpu -- cpu": "pcie 4 x16"})
    texts = {link.cable.text for link in description.links if link.a.device.startswith("gpu")}
    assert texts == {"pcie 4 x16"}


@pytest.mark.parametrize(
    ("target", "rates"),
    [
        ("slot1 -- cpu0.rate", {"slot1 -- cpu0": 40e9}),
        ("cpu0 -- slot1.rate", {"slot1 -- cpu0": 40e9}),
        ("gpu -- cpu.rate", {f"gpu{number} -- cpu{number // 4}": 40e9 for number in range(8)}),
    ],
)
def test_the_rate_of_a_link(target, rates):
    plain, description = read(FILE), read(FILE, overrides={target: "40 GB/s"})
    changed = {f"{link.a} -- {link.b}": link.cable for link in description.links}
    assert {name: cable.stated.value for name, cable in changed.items() if cable.stated} == rates
    assert {cable.stated.source for cable in changed.values() if cable.stated} == {"--set"}
    assert [link.cable.text for link in plain.links] == [
        link.cable.text for link in description.links
    ]


def test_other_figures_of_a_link():
    changes = {"slot1 -- cpu0.efficiency": "70 %", "slot1 -- cpu0.p2p": "{posted: 5 GB/s}"}
    changes |= {"slot1 -- cpu0.rate": "40 GB/s", "slot1 -- cpu0.medium": "pcie 4 x16"}
    (cable,) = (
        link.cable
        for link in read(FILE, overrides=changes).links
        if (link.a.device, link.b.device) == ("slot1", "cpu0")
    )
    assert (cable.text, cable.efficiency.value, cable.stated.value) == ("pcie 4 x16", 0.7, 40e9)
    assert cable.p2p is not None


def test_title_and_name():
    description = read(FILE, overrides={"title": "what if", "name": "other"})
    assert (description.title, description.name) == ("what if", "other")


def test_values_may_be_what_python_has():
    description = read(
        FILE, overrides={"load.via": ["direct"], "own.workers": 3, "gpu0.p2p": False}
    )
    assert description.workloads[0].via == ("direct",)
    assert description.data_paths["own"].workers == 3
    assert device(description, "gpu0").part.flag("p2p") is False


@pytest.mark.parametrize(
    ("key", "value", "code", "says"),
    [
        ("slot1.part", "conectx-8", "unknown-part", "`conectx-8`"),
        ("slot1.prt", "connectx-8", "unknown-key", "`prt`"),
        ("gpu0.hbm", "3", "bare-number", "a rate needs a unit"),
        ("gpu0.read", "3 GB/s", "misplaced-key", "`read`"),
        ("settings.iommu", "off?", "unknown-word", "not `off?`"),
        ("settings.iomu", "off", "unknown-key", "`iomu`"),
        ("load.red", "1 TB", "unknown-key", "`red`"),
        ("load.read.x", "1 TB", "wrong-shape", "a text, not a mapping"),
        ("load.write", "1 TB", "read-or-write", "says read and write"),
        ("legacy.workers", "zero", "bad-number", "not a count"),
        ("slot1 -- cpu0", "pcie 9 x16", "unknown-medium", "pcie 9"),
        ("slot1 -- cpu0.rate", "40", "bare-number", "a rate needs a unit"),
        ("slot1 -- cpu0.rate", "0 GB/s", "zero-capacity", "`rate` is zero"),
        ("slot1 -- cpu0.rtae", "40 GB/s", "unknown-key", "a cable has no `rtae`"),
        ("load.from", "cpu0", "workload-ends", "cpu0 is a cpu"),
        ("name", "", "missing-value", "has no value"),
    ],
)
def test_a_change_meets_the_rules_of_a_file(key, value, code, says):
    finding = refused(key, value)
    assert finding.code == code
    assert says in finding.message
    assert finding.place.file == "--set"


@pytest.mark.parametrize(
    ("key", "says", "advice"),
    [
        ("slot9.part", "no device slot9; slot1 and slot2 exist", ""),
        ("laod.read", "no device laod", "did you mean `load`?"),
        ("gup.hbm", "no device gup", "did you mean `gpu`?"),
        ("legcy.workers", "no device legcy, and no workload or data path", "`legacy`"),
        ("slot1", "not something that one value", "`slot1.part=...`"),
        ("load", "not something that one value", "`load.key=value`"),
        ("parts.foo.read", "no `foo` under `parts:`", ""),
        ("workloads.laod.read", "no `laod` under `workloads:`", "`load`"),
        ("media.pcie 7.efficiency", "no `pcie 7` under `media:`", "`pcie 6`"),
        ("slot1 -- cpu1", "no link `slot1 -- cpu1`", "slot1 is linked to storage and cpu0"),
        ("slot1 -- cpu9.rate", "no device cpu9; cpu0 and cpu1 exist", ""),
        ("slot9 -- cpu1", "no device slot9; slot1 and slot2 exist", ""),
        ("gpu[0-9].pcie", "no device gpu[0-9]", ""),
        ("gpu[.pcie", "no device gpu[", ""),
        ("", "no device", ""),
    ],
)
def test_a_target_that_is_not_there(key, says, advice):
    finding = refused(key, "1 GB/s", UnknownNameError)
    assert finding.code == "unknown-name"
    assert says in finding.message
    assert advice in finding.help


def test_a_value_that_is_no_yaml():
    with pytest.raises(DocumentError):
        read(FILE, overrides={"load.via": "[direct"})


def test_a_file_with_mistakes_is_told_of_those_first():
    with pytest.raises(DescriptionError) as raised:
        read(BOX + "  0gpu: l40s\n", overrides={"nothing.here": "x"})
    assert [finding.code for finding in raised.value.findings] == ["bad-name"]


# --- copies ---------------------------------------------------------------------------------------

# Two cards on two sockets, one GPU a socket.
TWO_CARDS = """
topo: 1
name: two-cards
devices:
  storage: {part: nvme-of-target, outside: yes}
  slot[1-2]: {part: connectx-7, pci: [aa:00.0, 29:00.0], label: [Slot1, Slot2]}
  cpu[0-1]: xeon-8480c
  ram[0-1]: {part: ddr5-4800, channels: 8}
  gpu[0-1]: h100-sxm-80gb
links:
  - storage -- slot: infiniband ndr
  - slot -- cpu: pcie 5 x16
  - gpu -- cpu: pcie 5 x16
  - ram -- cpu: memory-bus
  - cpu0 -- cpu1: 4x upi 16 GT/s
workloads:
  load: {read: 160 GB, from: storage, to: gpu}
"""


def links_of(description, device):
    return [
        str(link.a if link.b.device == device else link.b)
        for link in description.links
        if device in (link.a.device, link.b.device)
    ]


def test_a_copy_is_cabled_as_its_model_is_and_has_no_address_of_its_own():
    description = vary(loads(TWO_CARDS), {"slot3": "slot1"})
    copy = next(device for device in description.devices if device.name == "slot3")
    assert (copy.part.name, copy.pci, copy.label) == ("connectx-7", (), "")
    assert links_of(description, "slot3") == links_of(description, "slot1") == ["storage", "cpu0"]


def test_a_copied_gpu_belongs_to_its_stem():
    description = vary(loads(TWO_CARDS), {"gpu2": "gpu0"})
    assert description.workloads[0].targets == ("gpu0", "gpu1", "gpu2")


def test_a_copy_can_be_changed_and_led_elsewhere():
    changes = {
        "slot3": "slot1",
        "slot3.part": "connectx-7-dual-port",
        "slot3 -- cpu0": "slot3 -- cpu1",
    }
    description = vary(loads(TWO_CARDS), changes)
    assert links_of(description, "slot3") == ["storage", "cpu1"]
    assert next(one.part.name for one in description.devices if one.name == "slot3").endswith(
        "dual-port"
    )


def test_one_figure_of_a_copys_cable_can_be_changed():
    changes = {"slot3": "slot1", "slot3 -- cpu0.rate": "40 GB/s"}
    description = vary(loads(TWO_CARDS), changes)
    cables = {str(link.a): link.cable for link in description.links if str(link.b) == "cpu0"}
    assert cables["slot3"].stated.value == 40e9
    assert cables["slot1"].stated is None
    assert cables["slot3"].text == cables["slot1"].text


def test_changes_lie_over_those_it_was_read_with():
    description = vary(loads(TWO_CARDS, overrides={"load.read": "80 GB"}), {"slot3": "slot1"})
    assert description.workloads[0].size == 80e9
    assert len(description.devices) == 10


def test_a_copy_is_like_its_model_as_that_is_changed():
    text = ON_A_SWITCH.replace("CARD", "connectx-6").replace("CPU", "xeon-8480c")
    text = text.replace("LEAF", "spectrum-3").replace("SLOT", "pcie 4 x16")
    text = text.replace("CABLE", "ethernet 200 Gb/s")
    changes = {"nic1": "nic0", "nic0.part": "connectx-7", "leaf -- nic0": "ethernet 100 Gb/s"}

    def cables(changes):
        return [
            link.cable.text for link in loads(text, overrides=changes).links if "nic1" in str(link)
        ]

    assert cables(changes) == ["ethernet 100 Gb/s", "pcie 5 x16"]
    assert device(loads(text, overrides=changes), "nic1").part.name == "connectx-7"
    own = {**changes, "nic1.part": "connectx-6", "leaf -- nic1": "ethernet 50 Gb/s"}
    assert cables(own) == ["ethernet 50 Gb/s", "pcie 4 x16"]


def test_a_copy_meets_the_rules_of_physics():
    full = TWO_CARDS.replace("xeon-8480c", "{part: xeon-8480c, pcie-lanes: 32}")
    topology = build_topology(loads(full))
    assert topology.name == "two-cards"
    with pytest.raises(DescriptionError, match="lanes"):
        topology.replace({"slot3": "slot1"})


# --- links of a part that is changed --------------------------------------------------------------

ON_A_SWITCH = """
topo: 1
devices:
  storage: nvme-of-target
  leaf: LEAF
  nic0: CARD
  cpu0: CPU
  gpu0: h100-sxm-80gb
links:
  - storage -- leaf: ethernet 800 Gb/s
  - leaf -- nic0: CABLE
  - nic0 -- cpu0: SLOT
  - gpu0 -- cpu0: pcie 5 x16
"""


@pytest.mark.parametrize(
    ("card", "cpu", "leaf", "slot", "cable", "part", "then"),
    [
        # a card that can do less takes its links down with it
        ("connectx-7", "xeon-8480c", "network-switch-unknown", "pcie 5 x16", "ethernet 400 Gb/s",
         "connectx-6", ("ethernet 400 Gb/s", "pcie 4 x16")),
        # a faster one is as fast as both ends are
        ("connectx-6", "xeon-8480c", "network-switch-unknown", "pcie 4 x16", "ethernet 200 Gb/s",
         "connectx-7", ("ethernet 400 Gb/s", "pcie 5 x16")),
        ("connectx-7", "xeon-8480c", "network-switch-unknown", "pcie 5 x16", "ethernet 400 Gb/s",
         "connectx-8", ("ethernet 800 Gb/s", "pcie 5 x16")),
        # the switch has no faster port
        ("connectx-6", "xeon-8480c", "spectrum-3", "pcie 4 x16", "ethernet 200 Gb/s",
         "connectx-8", ("ethernet 400 Gb/s", "pcie 5 x16")),
        # what was slower on purpose stays
        ("connectx-7", "xeon-8480c", "network-switch-unknown", "pcie 3 x8", "ethernet 100 Gb/s",
         "connectx-8", ("ethernet 100 Gb/s", "pcie 3 x8")),
        # what the host can do is not known
        ("connectx-6", "cpu-unknown", "network-switch-unknown", "pcie 4 x16", "ethernet 200 Gb/s",
         "connectx-7", ("ethernet 400 Gb/s", "pcie 4 x16")),
    ],
    ids=["slower", "faster", "host", "switch", "on-purpose", "unknown-host"],
)  # fmt: skip
def test_the_links_of_a_changed_part_go_with_it(card, cpu, leaf, slot, cable, part, then):
    text = ON_A_SWITCH.replace("CARD", card).replace("CPU", cpu).replace("LEAF", leaf)
    text = text.replace("SLOT", slot).replace("CABLE", cable)
    description = loads(text, overrides={"nic0.part": part})
    assert (description.links[1].cable.text, description.links[2].cable.text) == then
    notes = [finding for finding in description.findings if finding.code == "link-adapted"]
    assert len(notes) == sum(old != new for old, new in zip((cable, slot), then, strict=True))
    assert all(finding.severity == "note" for finding in notes)
    build_topology(description)  # it can be built


def test_a_link_that_is_changed_too_is_as_it_is_said():
    text = ON_A_SWITCH.replace("CARD", "connectx-6").replace("CPU", "xeon-8480c")
    text = text.replace("LEAF", "spectrum-3").replace("SLOT", "pcie 4 x16")
    text = text.replace("CABLE", "ethernet 200 Gb/s")
    changes = {"nic0.part": "connectx-7", "nic0 -- cpu0": "pcie 3 x16"}
    assert loads(text, overrides=changes).links[2].cable.text == "pcie 3 x16"


def test_infiniband_goes_by_its_generations():
    text = ON_A_SWITCH.replace("CARD", "connectx-6").replace("CPU", "xeon-8480c")
    text = text.replace("LEAF", "quantum-2").replace("SLOT", "pcie 4 x16")
    text = text.replace("CABLE", "infiniband hdr")
    links = loads(text, overrides={"nic0.part": "connectx-7"}).links
    assert links[1].cable.text == "infiniband ndr"


def test_links_of_other_devices_stay():
    text = ON_A_SWITCH.replace("CARD", "connectx-7").replace("CPU", "xeon-8480c")
    text = text.replace("LEAF", "spectrum-3").replace("SLOT", "pcie 5 x16")
    text = text.replace("CABLE", "ethernet 400 Gb/s")
    plain, changed = loads(text), loads(text, overrides={"gpu0.part": "h200-sxm-141gb"})
    assert [link.cable for link in plain.links] == [link.cable for link in changed.links]
    assert plain.findings == changed.findings
