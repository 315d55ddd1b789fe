"""Parts of the user's own: what they start from, what they change, what their mistakes are told."""

import math
from typing import Any

import pytest

from topo.catalogue.parts import find_part, read_part, vary_part
from topo.catalogue.values import Origin
from topo.document.nodes import Report, Scalar
from topo.document.parse import parse
from topo.errors import Place

UNUSED: Any = None  # a report where nothing can be wrong


# --- good parts -----------------------------------------------------------------------------------


def test_a_part_like_a_built_in(part, shipped):
    acme = part(
        "{like: nvme-of-target, ports: 4x infiniband ndr, read: 90 GB/s, source: Acme sheet rev C}"
    ).clean
    assert (acme.name, acme.kind, str(acme.place)) == ("acme", "storage", "box.yaml:1:7")
    read = acme.figure("read")
    assert (read.value, read.kind, read.source) == (90e9, "quoted", "Acme sheet rev C")
    assert acme.figure("write") == shipped.parts["nvme-of-target"].figure("write")
    assert (acme.ports.count, acme.ports.rate.value) == (4, 50e9)
    assert (acme.ports.medium, acme.ports.source) == ("infiniband ndr", "Acme sheet rev C")


def test_without_a_source_a_figure_says_its_line(parts):
    read = parts("acme:\n  kind: storage\n  read: 90 GB/s\n  write:\n    60 GB/s").clean["acme"]
    assert read.figure("read").source == "box.yaml:3"
    assert read.figure("write").source == "box.yaml:5"


def test_a_figure_may_say_its_own_source_and_kind(part):
    acme = part(
        "{kind: storage, source: sheet, source-kind: datasheet, read: 90 GB/s,"
        " write: {value: 60 GB/s, source: our fio, rev 2, kind: measured}}"
    ).clean
    assert (acme.figure("read").kind, acme.figure("read").source) == ("datasheet", "sheet")
    assert (acme.figure("write").kind, acme.figure("write").source) == (
        "measured",
        "our fio, rev 2",
    )
    assert acme.figure("read").scalable
    assert not acme.figure("write").scalable


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("{kind: storage, read: unlimited}", "read", math.inf),
        ("{kind: storage, read: unknown}", "read", None),
        ("{kind: storage, read: 26 GiB/s}", "read", 26 * 2**30),
        ("{kind: nic, chip: 400 Gb/s}", "chip", 50e9),
        ("{kind: gpu, memory: 94 GB}", "memory", 94e9),
        ("{kind: gpu, bar1: 64 GiB}", "bar1", 2**36),
        ("{kind: memory, channels: 8}", "channels", 8),
        ("{kind: memory, transfer-rate: 4800 MT/s}", "transfer-rate", 4.8e9),
        ("{kind: memory, efficiency: 70 %}", "efficiency", 0.7),
        ("{kind: memory, bus: unlimited}", "bus", math.inf),
        ("{kind: cpu, core-copy: 12 GB/s}", "core-copy", 12e9),
        ("{kind: nvswitch, chips: unknown}", "chips", None),
    ],
)
def test_figures(part, text, key, value):
    assert part(text).clean.figure(key).value == value


@pytest.mark.parametrize(
    ("text", "key", "flag"),
    [
        ("{kind: gpu, p2p: no}", "p2p", False),
        ("{kind: gpu, p2p: yes}", "p2p", True),
        ("{like: rtx-4090, p2p: unknown}", "p2p", None),
        ("{kind: pcie-switch, acs: off}", "acs", False),
        ("{kind: nic, bridge: on}", "bridge", True),
        ("{kind: cpu, forwards-p2p: unknown}", "forwards-p2p", None),
        ("{kind: gpu, p2p: {value: no, source: tried it}}", "p2p", False),
    ],
)
def test_flags(part, text, key, flag):
    read = part(text).clean
    assert read.flag(key) is flag
    assert read.sources[key] in ("box.yaml:1", "tried it")


@pytest.mark.parametrize(
    ("text", "count", "rate", "medium"),
    [
        ("4", 4, None, None),
        ("2x 400 Gb/s", 2, 50e9, None),
        ("400 Gb/s", 1, 50e9, None),
        ("4x infiniband ndr", 4, 50e9, "infiniband ndr"),
        ("infiniband hdr", 1, 25e9, "infiniband hdr"),
        ("2x ethernet 200 Gb/s", 2, 25e9, "ethernet"),
        ("2x ethernet unknown", 2, None, "ethernet"),
        ("unknown", None, None, None),
    ],
)
def test_ports(part, text, count, rate, medium):
    ports = part(f"{{kind: nic, ports: {text}}}").clean.ports
    assert (ports.count, ports.medium) == (count, medium)
    assert (ports.rate and ports.rate.value) == rate
    assert ports.source == "box.yaml:1"


@pytest.mark.parametrize(
    ("text", "count", "rate", "medium"),
    [("18x nvlink 4", 18, 25e9, "nvlink 4"), ("7x xgmi 64 GB/s", 7, 64e9, "xgmi")],
)
def test_fabric(part, text, count, rate, medium):
    fabric = part(f"{{kind: gpu, fabric: {text}}}").clean.fabric
    assert (fabric.count, fabric.rate.value, fabric.medium) == (count, rate, medium)


def test_a_bare_count_keeps_the_rate_of_the_ports(part, shipped):
    card = part("{like: connectx-7-dual-port, ports: 1}").clean
    assert card.ports.count == 1
    assert card.ports.rate == shipped.parts["connectx-7-dual-port"].ports.rate


@pytest.mark.parametrize(("text", "slot"), [("5 x16", (5, 16)), ("4", (4, None))])
def test_slots(part, text, slot):
    read = part(f"{{kind: nic, pcie: {text}}}").clean.slot
    assert (read.generation, read.lanes, read.source) == (*slot, "box.yaml:1")


def test_an_unknown_slot_is_none(part):
    assert part("{like: connectx-7, pcie: unknown}").clean.slot is None


def test_peer_caps_leave_the_flag(part):
    read = part(
        "{like: xeon-8480c, p2p: {posted: 22 GB/s, non-posted: 10 GB/s per flow, source: tried}}"
    ).clean
    caps = read.peer_caps
    assert (caps.posted.rate.value, caps.posted.per_flow) == (22e9, False)
    assert (caps.non_posted.rate.value, caps.non_posted.per_flow) == (10e9, True)
    assert caps.posted.rate.source == "tried"
    assert "p2p" not in read.flags


def test_just_a_name_is_like(part, shipped):
    acme = part("nvme-of-target").clean
    assert acme.name == "acme"
    assert acme.figures == shipped.parts["nvme-of-target"].figures


def test_chains_in_any_order(parts):
    read = parts(
        "a: {like: b, read: 1 GB/s}\nb: {like: c, write: 2 GB/s}\nc: {kind: storage, read: 9 GB/s}"
    ).clean
    assert {key: figure.value for key, figure in read["a"].figures.items()} == {
        "read": 1e9,
        "write": 2e9,
    }
    assert read["c"].figure("write") is None
    assert list(read.own) == ["a", "b", "c"]


def test_a_built_in_under_its_own_name(parts, shipped):
    read = parts("h100-sxm-80gb: {like: h100-sxm-80gb, memory: 94 GB}").clean
    assert read["h100-sxm-80gb"].figure("memory").value == 94e9
    assert read["h100-sxm-80gb"].slot == shipped.parts["h100-sxm-80gb"].slot
    assert shipped.parts["h100-sxm-80gb"].figure("memory").value == 80e9
    assert len(read) == len(shipped.parts)
    assert sorted(read) == sorted(shipped.parts)


def test_the_shipped_parts_are_among_them(parts, shipped):
    read = parts("acme: {kind: storage}").clean
    assert read["l40s"] is shipped.parts["l40s"]
    assert len(read) == len(shipped.parts) + 1
    assert next(iter(read)) == "acme"


def test_keys_of_the_users_own_are_ignored(part):
    assert part("{kind: storage, x-note: [anything]}").clean.kind == "storage"


def test_a_stated_transfer_rate_is_the_speed_however_populated(part):
    from topo.catalogue.part import memory_bus_rate

    read = part("{like: ddr5-4800, channels: 8, dimms-per-channel: 2, transfer-rate: 4000 MT/s}")
    assert memory_bus_rate(read.clean).value == 256e9


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{like: ddr5-4800}", "channels unknown"),
        ("{like: ddr5-4800, channels: unknown}", "channels unknown"),
        ("{kind: memory}", "channels and transfer-rate and bytes-per-transfer unknown"),
    ],
)
def test_a_bus_with_an_unknown_factor_is_unknown(part, text, why):
    from topo.catalogue.part import memory_bus_rate, memory_headline_rate

    read = part(text).clean
    assert memory_bus_rate(read).value is None
    assert memory_headline_rate(read).source == why


def test_two_dimms_without_a_slower_speed_say_so(part):
    from topo.catalogue.part import memory_bus_rate

    rate = memory_bus_rate(part("{like: ddr5-6400, channels: 1, dimms-per-channel: 2}").clean)
    assert rate.value == 51.2e9
    assert rate.source.endswith("no slower speed stated")


# --- a device's own figures -----------------------------------------------------------------------


def vary(shipped, name, text):
    document = parse(text, name="box.yaml")
    report = Report(document)
    part = vary_part(shipped.parts[name], document.root.entries, media=shipped.media, report=report)
    return part, report.findings


def test_a_device_overrides_any_figure_of_its_part(shipped):
    before = shipped.parts["nvme-of-target"]
    part, findings = vary(shipped, "nvme-of-target", "read: 40 GB/s\nports: 4")
    assert not findings
    assert (part.name, part.kind) == (before.name, "storage")
    assert (part.figure("read").value, part.figure("read").source) == (40e9, "box.yaml:1")
    assert part.figure("write") == before.figure("write")
    assert part.ports.count == 4
    assert before.figure("read").value == math.inf  # nothing is changed in place


def test_a_device_without_figures_is_its_part(shipped):
    part = shipped.parts["l40s"]
    assert vary_part(part, (), media=shipped.media, report=UNUSED) is part


def test_a_devices_mistakes_leave_the_part_as_it_was(shipped):
    part, findings = vary(shipped, "l40s", "memory: 48\nread: 4 GB/s\npcie: 4 x3\nhbm: 900 GB/s")
    assert [found.code for found in findings] == ["bare-number", "misplaced-key", "bad-slot"]
    assert part.figure("memory") == shipped.parts["l40s"].figure("memory")
    assert part.slot == shipped.parts["l40s"].slot
    assert part.figure("hbm").value == 900e9


def test_a_device_may_name_its_source(shipped):
    part, findings = vary(shipped, "l40s", "hbm: 900 GB/s\nsource: our sheet\nsource-kind: guess")
    assert not findings
    assert (part.figure("hbm").source, part.figure("hbm").kind) == ("our sheet", "guess")


# --- mistakes -------------------------------------------------------------------------------------

BAD = [
    # text, code, column, message, help
    ("{like: conectx-7}", "unknown-part", 14, "`conectx-7`", "did you mean `connectx-7`?"),
    ("{like: h100}", "unknown-part", 14, "`h100`", "`h100-sxm-80gb`, `h100-pcie-80gb` or"),
    ("{like: H100_SXM_80GB}", "unknown-part", 14, "H100_SXM_80GB", "`h100-sxm-80gb`?"),
    ("{like: banana}", "unknown-part", 14, "`banana`", "`topo parts` lists the built-in"),
    ("banana", "unknown-part", 7, "`banana`", "topo parts"),
    ("{like: [a, b]}", "wrong-shape", 14, "names one part", ""),
    ("[a]", "wrong-shape", 7, "is a list", "acme: {like:"),
    ("{read: 90 GB/s}", "missing-kind", 7, "neither `kind:` nor `like:`", "`kind: storage`"),
    ("{part: connectx-7}", "unknown-key", 8, "`part`", "write `like:`"),
    ("{knd: nic, chip: 400 Gb/s}", "unknown-key", 8, "`knd`", "write `kind:`"),
    ("{like: connectx-7, type: nic}", "unknown-key", 26, "`type`", "write `kind:`"),
    ("{kind: storge}", "unknown-kind", 14, "`storge`", "did you mean `storage`?"),
    ("{kind: banana}", "unknown-kind", 14, "`banana`", "kinds are storage, nic"),
    ("{kind: [nic]}", "unknown-kind", 14, "one word", ""),
    ("{like: connectx-7, kind: gpu}", "kind-mismatch", 32, "of kind `nic`, not `gpu`", "leave"),
    ("{kind: storage, raed: 9 GB/s}", "unknown-key", 23, "`raed`", "did you mean `read`?"),
    ("{kind: storage, colour: red}", "unknown-key", 23, "`colour`", "keys of `storage`: read"),
    ("{kind: nic, hbm: 9 GB/s}", "misplaced-key", 19, "it is for gpu", "keys of `nic`: ports"),
    ("{kind: gpu, pcie-lanes: 8}", "misplaced-key", 19, "cpu, root-complex, pcie-switch", ""),
    ("{kind: storage, read: 0 GB/s}", "zero-capacity", 29, "`read` is zero", "`unknown`"),
    ("{kind: memory, channels: 0}", "zero-capacity", 32, "`channels` is zero", ""),
    ("{kind: memory, efficiency: 0}", "zero-capacity", 34, "`efficiency` is zero", ""),
    ("{kind: nic, ports: 0}", "zero-capacity", 26, "`ports` is zero", ""),
    ("{kind: nic, ports: 0x 400 Gb/s}", "zero-capacity", 26, "`ports` is zero", ""),
    ("{kind: nic, ports: 2x 0 Gb/s}", "zero-capacity", 26, "nothing through", ""),
    ("{kind: nic, chip: unlimited}", "not-unlimited", 25, "`chip` cannot be unlimited", ""),
    ("{kind: storage, read: 90 GB}", "wrong-quantity", 29, "", "90 GB/s"),
    ("{kind: storage, read: 640}", "bare-number", 29, "needs a unit", "GB/s"),
    ("{kind: storage, read: 400 gbps}", "ambiguous-unit", 29, "bits or bytes", "400 Gb/s"),
    ("{kind: storage, read: }", "missing-value", 0, "nothing stands", "`unknown`"),
    ("{kind: storage, read: [1 GB/s]}", "wrong-shape", 29, "a list stands", ""),
    ("{kind: storage, read: {vale: 1 GB/s}}", "unknown-key", 30, "`vale`", "`value`"),
    ("{kind: storage, read: {source: a sheet}}", "missing-value", 29, "needs `value:`", ""),
    ("{kind: storage, read: {value: 1 GB/s, kind: gess}}", "unknown-word", 51, "`gess`", "`guess`"),
    ("{kind: storage, read: {value: {a: 1}}}", "wrong-shape", 37, "a mapping stands", ""),
    ("{kind: storage, source: [a]}", "wrong-shape", 31, "text is expected", ""),
    ("{kind: storage, source-kind: hearsay}", "unknown-word", 36, "`hearsay`", ""),
    ("{kind: gpu, p2p: perhaps}", "bad-flag", 24, "neither yes nor no", ""),
    ("{kind: gpu, p2p: {postd: 1 GB/s}}", "unknown-key", 25, "`postd`", "`posted`"),
    ("{kind: gpu, p2p: {posted: 1 GB}}", "wrong-quantity", 33, "", ""),
    ("{kind: gpu, p2p: {posted: [1 GB/s]}}", "wrong-shape", 33, "", ""),
    ("{kind: cpu, architecture: x86_64}", "unknown-word", 33, "x86, arm", "did you mean `x86`?"),
    ("{kind: cpu, architecture: [arm]}", "wrong-shape", 33, "a list", ""),
    ("{kind: nic, pcie: 7 x16}", "unknown-medium", 25, "no PCIe 7", "1, 2, 3, 4, 5, 6"),
    ("{kind: nic, pcie: 5 x3}", "bad-slot", 25, "no x3", "1, 2, 4, 8 or 16"),
    ("{kind: nic, pcie: pcie 5 x16}", "bad-slot", 25, "`pcie 5 x16`", "write `5 x16`"),
    ("{kind: nic, pcie: gen5 x16}", "bad-slot", 25, "", "write `5 x16`"),
    ("{kind: nic, pcie: 5.0 x16}", "bad-slot", 25, "", "write `5 x16`"),
    ("{kind: nic, pcie: x16}", "bad-slot", 25, "", "generation too: 5 x16"),
    ("{kind: nic, pcie: fast}", "bad-slot", 25, "", "5 x16"),
    ("{kind: nic, pcie: [5]}", "wrong-shape", 25, "a list", ""),
    ("{kind: nic, ports: two}", "bad-ports", 26, "`two`", ""),
    ("{kind: nic, ports: 2x}", "bad-ports", 26, "`2x`", "`2x 400 Gb/s`"),
    ("{kind: nic, ports: 2 x 400 Gb/s}", "bad-ports", 26, "", "`2x 400 Gb/s`"),
    ("{kind: nic, ports: 2x nvlink 4}", "wrong-medium", 26, "does not join a network", ""),
    ("{kind: gpu, fabric: 2x infiniband ndr}", "wrong-medium", 27, "join GPUs", "18x nvlink 4"),
    ("{kind: gpu, fabric: 2x pcie 5 x16}", "wrong-medium", 27, "join GPUs", ""),
    ("{kind: nic, ports: [4]}", "wrong-shape", 26, "a list", ""),
]


@pytest.mark.parametrize(
    ("text", "code", "column", "message", "advice"), BAD, ids=[case[0] for case in BAD]
)
def test_a_mistake_gets_one_precise_message(part, text, code, column, message, advice):
    read = part(text)
    (found,) = read.findings
    assert found.code == code
    assert message in found.message
    assert advice in found.help
    assert (found.place.file, found.place.line) == ("box.yaml", 1)
    assert column in (0, found.place.column)
    assert found.source_line == f"acme: {text}"


def test_all_mistakes_at_once(parts):
    read = parts(
        "a: {like: conectx-7, read: 90}\n"
        "b: {kind: nic, chip: 400, pcie: 5 x3, hbm: 1 GB/s, colour: red}\n"
        "c: {kind: storge}\n"
    )
    assert [(found.place.line, found.code) for found in read.findings] == [
        (1, "unknown-part"),
        (2, "bare-number"),
        (2, "bad-slot"),
        (2, "misplaced-key"),
        (2, "unknown-key"),
        (3, "unknown-kind"),
    ]
    assert list(read.value.own) == ["b"]


def test_a_part_that_cannot_be_read_is_not_complained_of_again(parts):
    read = parts("a: {like: b}\nb: {like: c}\nc: {kind: storge}")
    assert [found.code for found in read.findings] == ["unknown-kind"]
    assert "a" in read.value
    assert read.value.get("a") is None
    with pytest.raises(KeyError):
        read.value["a"]
    report = Report(parse("x: 1"))
    assert find_part(Scalar("a", Place("box.yaml", 1, 1)), read.value, report) is None
    assert report.findings == ()


@pytest.mark.parametrize(
    ("text", "ring"),
    [
        ("a: {like: a}", "a like a"),
        ("a: {like: b}\nb: {like: a}", "a like b like a"),
        ("a: {like: b}\nb: {like: c}\nc: {like: b}", "b like c like b"),
        ("a: b\nb: a", "a like b like a"),
    ],
)
def test_a_cycle_is_one_message_with_its_lines(parts, text, ring):
    read = parts(text)
    (found,) = read.findings
    assert found.code == "like-cycle"
    assert ring in found.message
    assert len(found.notes) == ring.count("like")
    assert read.value.own == {}


def test_a_built_ins_name_without_like_is_told_how_to_start_from_it(parts):
    (found,) = parts("l40s: {memory: 96 GB}").findings
    assert found.code == "missing-kind"
    assert found.help == "`like: l40s` starts from the built-in of that name"


@pytest.mark.parametrize("name", ["my part", "-x", "a/b"])
def test_a_name_that_is_none(parts, name):
    assert [found.code for found in parts(f'"{name}": {{kind: storage}}').findings] == ["bad-name"]


def test_parts_that_are_no_mapping(parts, shipped):
    read = parts("[a, b]")
    assert [found.code for found in read.findings] == ["wrong-shape"]
    assert len(read.value) == len(shipped.parts)


def test_no_parts_at_all(shipped):
    from topo.catalogue.parts import read_parts

    read = read_parts(None, parts=shipped.parts, media=shipped.media, report=UNUSED)
    assert read.own == {}
    assert len(read) == len(shipped.parts)


def test_reading_with_plain_mappings(shipped):
    # The signature that importers use: no file, their own kind of figure.
    document = parse("{kind: nvme, read: 7 GB/s}", name="lspci.txt")
    report = Report(document)
    part = read_part(
        "drive", document.root, parts={}, media=shipped.media, report=report, kind="measured"
    )
    assert not report.findings
    assert (part.figure("read").kind, part.figure("read").source) == ("measured", "lspci.txt:1")


def test_an_empty_name_is_missing(shipped):
    report = Report(parse("x: 1"))
    assert find_part(Scalar("", Place("box.yaml", 1, 1)), shipped.parts, report) is None
    assert report.findings[0].message == "a part's name is missing"


def test_only_a_text_is_given_a_cut_end_back(part):
    # `source` is a list here, so the key after it is a key of its own.
    found = part("{kind: storage, source: [a], b c}").findings
    assert [one.code for one in found] == ["wrong-shape", "unknown-key"]


def test_figures_say_whether_they_are_known(part):
    read = part("{kind: storage, read: unknown, write: 9 GB/s}").clean
    assert not read.figure("read").known
    assert read.figure("write").known


def test_the_default_origin_is_the_users_line():
    scalar = Scalar("1", Place("box.yaml", 3, 1))
    assert Origin().at(scalar) == "box.yaml:3"
    assert Origin("a sheet").at(scalar) == "a sheet"
