"""Machines inside a machine: `use:`, what comes along, what it may name, and what is wrong."""

from __future__ import annotations

import pytest

from tests.description.reading import only, read
from topo.description.flat import MOST_WRITTEN_OUT, flat, hosts
from topo.description.loading import load, loads, vary
from topo.errors import DescriptionError, TopoError

NODE = """\
topo: 1
name: node
settings: {iommu: off, filesystem: lustre}
data-paths:
  own: {moves: [storage -> gpu by nic]}
devices:
  storage: {part: nvme-of-target, outside: yes}
  slot[1-2]: connectx-7-dual-port
  cpu0: {part: xeon-8480c, numa: 0-1}
  ram0: {part: ddr5-4800, channels: 8}
  gpu[0-1]: h100-sxm-80gb
links:
  - storage -- slot: 2x infiniband ndr
  - slot -- cpu0: pcie 5 x16
  - ram0 -- cpu0: memory-bus
  - gpu -- cpu0: pcie 5 x16
measured:
  - storage -> slot1/p1: 40 GB/s
  - gpu0 -> cpu0: 50 GB/s
workloads:
  load: {read: 1 GB, from: storage, to: gpu}
expect:
  - load via direct <= 7 s
"""
POD = """\
topo: 1
name: pod
devices:
  node[0-3]: {use: ./node.yaml}
  leaf: quantum-2
  storage: {part: nvme-of-target, read: 90 GB/s}
links:
  - node.slot1/p2 -- leaf: infiniband ndr
  - leaf -- storage: infiniband ndr
workloads:
  load: {read: 80 GB each, from: storage, to: node.gpu}
"""


@pytest.fixture
def write(tmp_path):
    """Write files into a folder and return the path of the first."""

    def writer(**texts):
        for name, text in texts.items():
            file = tmp_path / f"{name.replace('__', '/')}.yaml"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        return tmp_path / f"{next(iter(texts)).replace('__', '/')}.yaml"

    return writer


def findings(path, **options):
    """Return what is wrong with a file: code, message and notes, the folder left out."""
    with pytest.raises(TopoError) as caught:
        load(path, **options)
    folder = f"{path.parent}/"
    return [
        (
            finding.code,
            finding.message.replace(folder, ""),
            str(finding.place).replace(folder, ""),
            [note.replace(folder, "") for note in finding.notes],
        )
        for finding in caught.value.findings
    ]


# --- what it says ---------------------------------------------------------------------------------


def test_all_names_are_one_template(write):
    pod = load(write(pod=POD, node=NODE))
    (use,) = pod.uses
    assert use.names == ("node0", "node1", "node2", "node3")
    assert [device.name for device in use.template.devices] == [
        *("slot1", "slot2", "cpu0", "ram0", "gpu0", "gpu1")
    ]
    assert pod.device_count == 4 * 6 + 2


def test_stand_ins_fall_away_with_what_is_about_them(write):
    template = load(write(pod=POD, node=NODE)).uses[0].template
    ends = {str(end) for link in template.links for end in (link.a, link.b)}
    assert "storage" not in ends
    assert [measured.source for measured in template.measurements] == ["gpu0"]
    assert (template.workloads, template.expectations) == ((), ())


def test_flat_is_every_device_by_its_full_name(write):
    machine = flat(load(write(pod=POD, node=NODE)))
    names = [device.name for device in machine.devices]
    assert names[:7] == [
        *("node0.slot1", "node0.slot2", "node0.cpu0", "node0.ram0"),
        *("node0.gpu0", "node0.gpu1", "node1.slot1"),
    ]
    assert names[-2:] == ["leaf", "storage"]
    pairs = {(str(link.a), str(link.b)) for link in machine.links}
    assert {("node3.gpu1", "node3.cpu0"), ("node3.slot1/p2", "leaf")} <= pairs
    assert [rate.source for rate in machine.measurements] == [f"node{n}.gpu0" for n in range(4)]
    assert machine.host_settings["node2"].filesystem == "lustre"
    assert machine.folded is not None
    assert flat(machine) == machine


def test_a_workload_gives_full_names(write):
    (workload,) = load(write(pod=POD, node=NODE)).workloads
    assert workload.targets[:3] == ("node0.gpu0", "node0.gpu1", "node1.gpu0")
    assert workload.size == 8 * 80e9


def test_settings_of_the_file_around_lie_over(write):
    pod = load(write(pod=POD + "settings: {filesystem: nfs}\n", node=NODE))
    settings = pod.uses[0].template.settings
    assert (settings.iommu, settings.filesystem) == ("off", "nfs")
    assert settings.places["filesystem"].file.endswith("pod.yaml")
    assert settings.places["iommu"].file.endswith("node.yaml")


def test_data_paths_come_along(write):
    pod = load(write(pod=POD.replace("{read: 80", "{via: own, read: 80"), node=NODE))
    assert pod.workloads[0].via == ("own",)
    assert pod.data_paths["own"].place.file.endswith("node.yaml")


def test_one_data_path_is_not_two_things(write):
    moves = "[storage -> kernel-buffer by nic, kernel-buffer -> gpu by gpu]"
    own = f"data-paths: {{own: {{moves: {moves}}}}}\n"
    ((code, message, place, _),) = findings(write(pod=POD + own, node=NODE))
    assert (code, place) == ("defined-twice", "pod.yaml:4:20")
    assert "`own` is one thing at pod.yaml:12:19 and another at node.yaml:5:8" in message


def test_one_medium_is_not_two_things(write):
    """Rates and efficiencies are looked up by a medium's name, whichever file a cable is of."""
    node = NODE.replace(
        "data-paths", "media: {slingshot: {reach: network, rate: 25 GB/s}}\ndata-paths"
    )
    own = "media: {slingshot: {reach: network, rate: 50 GB/s}}\n"
    ((code, message, place, _),) = findings(write(pod=POD + own, node=node))
    assert (code, place) == ("defined-twice", "pod.yaml:4:20")
    assert (
        "medium `slingshot` is one thing at pod.yaml:12:9 and another at node.yaml:4:9" in message
    )
    load(write(pod=POD + own.replace("50", "25"), node=node))
    inner = {"row": POD, "node": node}
    outer = f"{own}topo: 1\ndevices: {{'row[0-1]': {{use: ./row.yaml}}}}\n"
    ((_, message, _, _),) = findings(write(pod=outer, **inner))
    assert "pod.yaml:1:9 and another at node.yaml:4:9" in message


def _cables(pod):
    """Return the cable of each link of the outer file, by what is at its first end."""
    return {link.a.device: link.cable.text for link in pod.links}


def test_cables_from_a_machine_follow_a_part_that_a_caller_changes(write):
    """As those of a device written by hand do; what the file itself sets stays as it is cabled."""
    pod = POD.replace("quantum-2", "quantum-x800").replace("slot1/p2", "slot1")
    plain = {f"node{n}.slot1": "infiniband ndr" for n in range(4)}
    changed = load(write(pod=pod, node=NODE), overrides={"node.slot1.part": "connectx-8"})
    assert _cables(changed) == {
        **dict.fromkeys(plain, "infiniband xdr"),
        "leaf": "infiniband ndr",
    }
    notes = [finding for finding in changed.findings if finding.code == "link-adapted"]
    assert len(notes) == 1
    assert "`infiniband xdr` instead of `infiniband ndr`" in notes[0].message
    one = load(write(pod=pod, node=NODE), overrides={"node2.slot1.part": "connectx-8"})
    assert _cables(one) == {**plain, "node2.slot1": "infiniband xdr", "leaf": "infiniband ndr"}
    set_here = pod.replace("./node.yaml", "./node.yaml, set: {slot1.part: connectx-8}")
    assert _cables(load(write(pod=set_here, node=NODE))) == {**plain, "leaf": "infiniband ndr"}


def test_cables_of_a_machine_inside_a_machine_follow_too(write):
    row = POD.replace("quantum-2", "quantum-x800").replace("slot1/p2", "slot1")
    outer = (
        "topo: 1\ndevices: {'row[0-1]': {use: ./row.yaml, set: {node3.slot1.part: connectx-8}}}\n"
    )
    pod = load(write(pod=outer, row=row, node=NODE))
    assert _cables(pod.uses[0].template)["node3.slot1"] == "infiniband xdr"
    assert _cables(pod.uses[0].template)["node2.slot1"] == "infiniband ndr"


def test_the_same_data_path_twice_is_one(write):
    own = "data-paths: {own: {moves: [storage -> gpu by nic]}}\n"
    assert load(write(pod=POD + own, node=NODE)).data_paths["own"].place.file.endswith("pod.yaml")


def test_machines_nest(write):
    row = "topo: 1\ndevices:\n  rack[0-1]: {use: ./pod.yaml}\nsettings: {iommu: on}\n"
    machine = load(write(row=row, pod=POD, node=NODE))
    assert machine.device_count == 2 * (4 * 6 + 2)
    names = {device.name for device in flat(machine).devices}
    assert {"rack1.node3.gpu1", "rack0.leaf"} <= names
    assert flat(machine).host_settings["rack1.node2"].iommu == "on"


def test_a_file_is_read_once(write, monkeypatch):
    reads = []
    from topo.description import locating

    read_file = locating.read_file

    def counting(path):
        reads.append(path)
        return read_file(path)

    monkeypatch.setattr(locating, "read_file", counting)
    pod = POD.replace("node[0-3]: {", "filer: {use: ./node.yaml, set: {name: x}}\n  node[0-3]: {")
    machine = load(write(pod=pod, node=NODE))
    vary(machine, {"node2.gpu1.part": "l40s"})
    assert len([path for path in reads if path.endswith("node.yaml")]) == 1


# --- overrides ------------------------------------------------------------------------------------


def parts(machine):
    return {device.name: device.part.name for device in flat(machine).devices}


def test_an_override_splits_its_machine_off(write):
    machine = load(write(pod=POD, node=NODE), overrides={"node3.gpu1.part": "l40s"})
    assert [use.names for use in machine.uses] == [("node0", "node1", "node2"), ("node3",)]
    assert parts(machine)["node3.gpu1"] == "l40s"
    assert parts(machine)["node2.gpu1"] == "h100-sxm-80gb"
    assert [name for name, _ in hosts(machine)] == ["node0", "node1", "node2", "node3"]


def test_an_override_of_all_leaves_one_template(write):
    machine = load(write(pod=POD, node=NODE), overrides={"node.gpu.part": "l40s"})
    assert len(machine.uses) == 1
    assert set(parts(machine).values()) >= {"l40s"}
    assert "h100-sxm-80gb" not in parts(machine).values()


def test_set_at_the_place_of_use(write):
    entry = (
        "{use: ./node.yaml, set: {gpu0.part: [l40s, l40s, h200-sxm-141gb, l40s], slot2.label: x}}"
    )
    machine = load(write(pod=POD.replace("{use: ./node.yaml}", entry), node=NODE))
    assert [use.names for use in machine.uses] == [("node0", "node1", "node3"), ("node2",)]
    assert parts(machine)["node2.gpu0"] == "h200-sxm-141gb"
    assert {device.label for device in flat(machine).devices if "slot2" in device.name} == {"x"}


def test_a_part_of_the_file_around_is_set_in_a_machine(write):
    own = "parts: {{acme: {{like: h100-sxm-80gb, hbm: {} GB/s}}}}\n"
    entry = "{use: ./node.yaml, set: {gpu0.part: acme}}"
    text = POD.replace("{use: ./node.yaml}", entry)
    machine = load(write(pod=text + own.format(7), node=NODE))
    hbm = {
        device.name: device.part.figure("hbm").value
        for device in flat(vary(machine, {"parts.acme.hbm": "8 GB/s"})).devices
        if device.kind == "gpu"
    }
    assert (hbm["node1.gpu0"], hbm["node1.gpu1"]) == (8e9, 3350e9)
    ((code, _, place, _),) = findings(
        write(pod=POD + own.format(7), node=NODE.replace("h100-sxm-80gb", "acme"))
    )
    assert (code, place) == ("unknown-part", "node.yaml:11:13")


def test_a_warning_inside_is_said_once_and_again_of_a_variant(write):
    warned = NODE.replace("part: ddr5-4800", "part: ddr5-4800, source: a, b")
    machine = load(
        write(pod=POD + "  other: {write: 1 GB, from: node0.gpu, to: storage}\n", node=warned)
    )
    for description in (machine, vary(machine, {"node3.gpu1.part": "l40s"})):
        (finding,) = description.findings
        assert finding.code == "comma-in-text"
        assert finding.place.file.endswith("node.yaml")
        assert "pod.yaml:4:20" in finding.notes[-1]


def test_lists_deal_files_out(write):
    text = "topo: 1\ndevices:\n  node[0-1]: {use: [./node.yaml, gds-textbook]}\n"
    machine = load(write(pod=text, node=NODE))
    assert [use.source for use in machine.uses] == ["./node.yaml", "gds-textbook"]


def test_a_machine_is_copied_with_its_cables(write):
    machine = load(write(pod=POD, node=NODE), overrides={"node4": "node3"})
    assert "node4.slot1/p2" in {str(link.a) for link in machine.links}
    assert "node4.gpu0" in machine.workloads[0].targets


def test_a_device_inside_is_copied_with_its_cables(write):
    machine = flat(load(write(pod=POD, node=NODE), overrides={"node3.slot3": "node3.slot1"}))
    ends = [{str(link.a), str(link.b)} for link in machine.links]
    assert {"node3.slot3", "node3.cpu0"} in ends
    assert {"node3.slot3/p2", "leaf"} in ends
    assert "node2.slot3" not in {device.name for device in machine.devices}


@pytest.mark.parametrize(
    ("copy", "model", "copied"),
    [
        ("node.slot3", "node.slot1", 4),
        ("node[1-2].slot3", "node[1-2].slot1", 2),
    ],
)
def test_devices_of_a_stem_are_copied_in_each_machine(write, copy, model, copied):
    machine = flat(load(write(pod=POD, node=NODE), overrides={copy: model}))
    copies = [device.name for device in machine.devices if device.name.endswith(".slot3")]
    cabled = [link for link in machine.links if str(link.b) == "leaf" and ".slot3/" in str(link.a)]
    assert len(copies) == len(cabled) == copied


def test_a_device_of_a_machine_inside_another_is_copied(write):
    row = "topo: 1\ndevices:\n  pod[0-1]: {use: ./pod.yaml}\n"
    changes = {"pod1.node2.slot3": "pod1.node2.slot1"}
    machine = flat(load(write(row=row, pod=POD, node=NODE), overrides=changes))
    ends = [{str(link.a), str(link.b)} for link in machine.links]
    assert {"pod1.node2.slot3/p2", "pod1.leaf"} in ends
    copies = [device.name for device in machine.devices if device.name.endswith(".slot3")]
    assert copies == ["pod1.node2.slot3"]


def test_another_machine_takes_its_place(write):
    machine = load(write(pod=POD, node=NODE), overrides={"node3.use": "gds-textbook"})
    assert [use.source for use in machine.uses] == ["./node.yaml", "gds-textbook"]


def test_a_link_inside_is_changed(write):
    for target in ("node3.gpu1 -- node3.cpu0", "node.gpu1 -- node.cpu0"):
        machine = load(write(pod=POD, node=NODE), overrides={target: "pcie 4 x8"})
        cables = {str(link.a): link.cable.text for link in flat(machine).links}
        assert cables["node3.gpu1"] == "pcie 4 x8"
        assert cables["node3.gpu0"] == "pcie 5 x16"
        assert (cables["node2.gpu1"] == "pcie 4 x8") == target.startswith("node.")


# --- what is wrong --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("node3.gpu9 -- leaf", "node3 has no gpu9; gpu0 and gpu1 exist"),
        ("node[0-3].gpu[0-7] -- leaf", "node0 has no gpu[2-7]; gpu0 and gpu1 exist"),
        ("node.gppu -- leaf", "node0 has no gppu"),
        ("node9.gpu0 -- leaf", "no machine node9 is used here; node[0-3] exist"),
        ("nod.gpu0 -- leaf", "no machine nod is used here"),
        ("leaf.gpu0 -- storage", "leaf is a device, and `.` enters a machine that is used"),
        ("node3 -- leaf", "node3 is a whole machine (`use:`), not a device"),
        ("node -- leaf", "node is a whole machine (`use:`), not a device"),
        ("node3.cpu0/numa7 -- leaf", "node3.cpu0 has no NUMA node 7; it has 0 and 1"),
        ("node3.storage -- leaf", "node3 has no storage"),
    ],
)
def test_a_name_that_is_not_there(write, line, message):
    text = POD.replace("  - leaf --", f"  - {line}: infiniband ndr\n  - leaf --")
    ((code, said, _, _),) = findings(write(pod=text, node=NODE))
    assert code == "unknown-name"
    assert said.startswith(message)


def test_a_name_inside_that_is_not_there_to_change(write):
    ((code, message, _, notes),) = findings(
        write(pod=POD, node=NODE), overrides={"node3.gpu9.part": "l40s"}
    )
    assert code == "unknown-name"
    assert message.startswith("in node3: no device gpu9; gpu0 and gpu1 exist")
    assert notes == ["used at pod.yaml:4:20"]


def test_a_mistake_inside_is_told_once_with_both_places(write):
    row = "topo: 1\ndevices:\n  rack[0-1]: {use: ./pod.yaml}\n  spare: {use: ./node.yaml}\n"
    wrong = NODE.replace("h100-sxm-80gb", "h100-sxm-80gib")
    ((code, message, place, notes),) = findings(write(row=row, pod=POD, node=wrong))
    assert (code, place) == ("unknown-part", "node.yaml:11:13")
    assert "h100-sxm-80gib" in message
    assert notes == ["used at pod.yaml:4:20", "used at row.yaml:3:20"]


def test_a_missing_file(write):
    ((code, message, place, _),) = findings(write(pod=POD, nodes=NODE))
    assert (code, place) == ("no-file", "pod.yaml:4:20")
    assert message == "there is no file `node.yaml`"


def test_a_missing_built_in():
    finding = only("{topo: 1, devices: {node0: {use: dgx-h10}}}")
    assert (finding.code, finding.place.column) == ("unknown-name", 34)
    assert "dgx-h100" in finding.help


@pytest.mark.parametrize(
    "path", ["../node.yaml", "/node.yaml", "sub/../../node.yaml", "./link.yaml"]
)
def test_no_path_leads_out_of_the_folder(write, path, tmp_path):
    pod = POD.replace("./node.yaml", path)
    file = write(inner__pod=pod, node=NODE)
    (file.parent / "sub").mkdir()
    (file.parent / "link.yaml").symlink_to(tmp_path / "node.yaml")
    ((code, message, _, _),) = findings(file)
    assert code == "use-outside"
    assert message == f"`{path}` leads out of the folder of pod.yaml"


def test_a_folder_below_is_fine(write):
    pod = POD.replace("./node.yaml", "kinds/node.yaml")
    assert load(write(pod=pod, kinds__node=NODE)).device_count == 26


def test_a_text_has_no_folder():
    finding = only("{topo: 1, devices: {node0: {use: ./node.yaml}}}")
    assert finding.code == "use-outside"
    assert loads("{topo: 1, devices: {node0: {use: gds-textbook}}}").device_count > 10


def test_a_circle_is_refused_with_its_lines(write):
    a = "topo: 1\ndevices:\n  b: {use: ./b.yaml}\n"
    b = "topo: 1\ndevices:\n  a: {use: ./a.yaml}\n"
    ((code, message, place, notes),) = findings(write(a=a, b=b))
    assert (code, place) == ("use-cycle", "b.yaml:3:12")
    assert "`./a.yaml` is on the way here" in message
    assert notes == ["used at a.yaml:3:12"]


def test_ten_million_devices_are_counted_not_made(write):
    kinds = {
        "row": "topo: 1\ndevices:\n  rack[0-999]: {use: ./rack.yaml}\n",
        "rack": "topo: 1\ndevices:\n  node[0-999]: {use: ./node.yaml}\n",
        "node": "topo: 1\ndevices:\n  gpu[0-9]: l40s\n",
    }
    ((code, message, place, _),) = findings(write(**kinds))
    assert (code, place) == ("huge-range", "row.yaml:3:3")
    assert "10,000,000 devices" in message


def test_what_is_too_much_to_write_out_says_so(write):
    count = MOST_WRITTEN_OUT // 10 + 1
    text = f"topo: 1\nname: row\ndevices:\n  node[1-{count}]: {{use: ./node.yaml}}\n"
    node = "topo: 1\ndevices:\n  gpu[0-9]: l40s\n"
    description = load(write(row=text, node=node))
    assert description.device_count == count * 10
    with pytest.raises(DescriptionError, match="400,010 devices"):
        flat(description)


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        ("{use: [gds-textbook]}", "list-length"),
        ("{use: gds-textbook, part: l40s}", "unknown-key"),
        ("{use: }", "missing-value"),
        ("{use: {a: b}}", "wrong-shape"),
        ("{use: gds-textbook, set: x}", "wrong-shape"),
        ("{use: gds-textbook, set: {gpu0.part: nothing}}", "unknown-part"),
        ("{use: gds-textbook, set: {gpu0: l40s}}", "unknown-name"),
    ],
)
def test_a_wrong_entry_is_said_once(entry, code):
    assert only(f"topo: 1\ndevices:\n  node[0-1]: {entry}\n").code == code


def test_nothing_is_used_of_a_file_without_uses():
    description = read("{topo: 1, devices: {gpu0: l40s}}")
    assert description.uses == ()
    assert flat(description) is description
