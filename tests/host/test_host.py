"""cufile.json and gdscheck's text: what is read, what it makes of a machine, and damage."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.discovery.test_mutations import damaged
from tests.host.host_twins import CUFILE, ROUTED, gdscheck
from tests.machines import ONE_SOCKET, SWITCHED, built, shipped
from topo.errors import ExchangeError, TopoError
from topo.host.apply import with_host_facts
from topo.host.cufile import parse_json, read_cufile
from topo.host.gdscheck import read_gdscheck
from topo.study.compare import compare
from topo.views.sentences import sentence


def told(machine, cufile=b"", check=b""):
    return with_host_facts(
        machine,
        cufile=read_cufile(cufile, "cufile.json") if cufile else None,
        gdscheck=read_gdscheck(check, "gdscheck.txt") if check else None,
    )


def findings(machine, code):
    return [one for one in machine.findings if one.code == code]


# --- JSON with comments ---------------------------------------------------------------------------


def test_comments_and_trailing_commas_are_no_mistake():
    found = parse_json(b'\xef\xbb\xbf{"a": [1, "t\\u00e9\\n", null,], # x\n /* { */ "b": {},}', "x")
    assert [item.text for item in found.get("a").items] == ["1", "t\u00e9\n", "null"]
    assert (found.key("b").place.line, found.key("b").place.column) == (2, 10)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", 1, "the end"),
        ("[1]", 1, "an object"),
        ('{"a" 1}', 1, "`:` after the key"),
        ('{"a": }', 1, "a value"),
        ('{"a": 1\n"b": 2}', 2, "`,` or `}`"),
        ('{"a": 1} x', 1, "nothing after"),
        ('{"a": "open\n}', 1, "JSON"),
        ("{a: 1}", 1, 'a key, like `"properties"`'),
        ("{/* open", 1, "JSON"),
    ],
)
def test_broken_json_says_where_and_what(text, line, words):
    with pytest.raises(ExchangeError) as caught:
        parse_json(text.encode(), "cufile.json")
    (finding,) = caught.value.findings
    assert (finding.code, finding.place.line) == ("json-syntax", line)
    assert words in finding.message


@pytest.mark.parametrize(
    "data", [b'{"a":' + b"[" * 40, b'{"a": "' + b"x" * 2**20 + b'"}', b'{"a":' * 100_000]
)
def test_depth_and_size_have_limits(data):
    with pytest.raises(ExchangeError) as caught:
        parse_json(data, "cufile.json")
    assert caught.value.findings[0].code == "import-too-big"


# --- cufile.json ----------------------------------------------------------------------------------


def test_a_configuration_by_dotted_key_with_places():
    config = read_cufile(CUFILE, "cufile.json")
    assert config.findings == ()
    compat = config.facts["properties.allow_compat_mode"]
    assert (compat.flag, str(compat.place)) == (True, "cufile.json:6:30")
    assert config.facts["fs.nfs.mount_table./mnt/a.rdma_dev_addr_list"].words == ("10.0.0.1",)


def test_older_names_mean_the_same_and_unknown_ones_are_said():
    text = b'{"properties": {"use_compat_mode": false, "turbo": 1}, "extra": {"a": 1}}'
    config = read_cufile(text, "cufile.json")
    assert config.facts["properties.allow_compat_mode"].flag is False
    (finding,) = config.findings
    assert finding.code == "cufile-key"
    assert "`properties.turbo`, `extra.a`" in finding.message
    machine = told(built(ONE_SOCKET), text)
    assert machine.settings.compat_mode == "off"
    assert findings(machine, "cufile-key")


def test_the_shipped_configuration_changes_no_verdict():
    machine = told(built(ONE_SOCKET), CUFILE)
    settings = machine.settings
    assert (settings.compat_mode, settings.dynamic_routing) == ("allowed", ())
    assert (settings.direct_writes, settings.p2pdma) == ("on", "off")
    assert compare(machine, workload="load")["direct"].verdict == "ok"
    (note,) = findings(machine, "cufile-read")
    assert "polling off; cards by address: 192.168.0.12" in note.message


def test_routing_on_makes_direct_something_else_and_cites_the_line():
    machine = told(shipped("dgx-h100"), ROUTED)
    found = compare(machine, workload="load")
    names = [path.name for path in found.workloads[0].paths]
    assert names == ["legacy", "direct", "routed-sysmem"]
    (reason,) = [one for one in found["direct"].reasons if one.code == "dynamic-routing"]
    assert (reason.place.file, reason.place.line) == ("cufile.json", 11)
    first = sentence(found.workloads[0].insights[0])
    assert first.startswith("direct becomes routed-sysmem: cuFile's dynamic routing takes SYS_MEM")
    assert "(cufile.json:11)" in first
    assert found["routed-sysmem"].counts.ram_traversals == 1


def test_facts_survive_a_later_what_if():
    machine = told(shipped("dgx-h100"), ROUTED).replace({"ram.bus": "300 GB/s"})
    assert machine.settings.dynamic_routing
    assert machine.settings.places["dynamic-routing"].file == "cufile.json"


def test_an_order_of_its_own_and_what_is_odd_in_it():
    text = ROUTED.replace(b'"GPU_MEM", "SYS_MEM"', b'"WARP", "SYS_MEM"')
    machine = told(shipped("dgx-h100"), text)
    assert machine.settings.dynamic_routing == ("GPU_MEM_NVLINKS", "SYS_MEM", "P2P")
    assert "`WARP`" in findings(machine, "cufile-value")[0].message


def test_routing_without_addresses_is_said():
    text = b'{"properties": {"rdma_dynamic_routing": true, "allow_compat_mode": "maybe"}}'
    machine = told(shipped("dgx-h100"), text)
    assert findings(machine, "routing-addresses")[0].place.column == 41
    assert "not `maybe`" in findings(machine, "cufile-value")[0].message
    assert machine.settings.compat_mode is None


@pytest.mark.parametrize(
    ("properties", "setting", "value"),
    [
        ('"force_compat_mode": true, "allow_compat_mode": false', "compat_mode", "forced"),
        ('"gds_rdma_write_support": false', "direct_writes", "off"),
        ('"use_pci_p2pdma": true', "p2pdma", "on"),
    ],
)
def test_properties(properties, setting, value):
    text = f'{{"properties": {{{properties}}}}}'.encode()
    assert getattr(told(built(ONE_SOCKET), text).settings, setting) == value


def test_sections_beside_the_properties():
    weka = ONE_SOCKET.replace("iommu: off", "iommu: off, filesystem: weka")
    text = b'{"fs": {"weka": {"rdma_write_support": false}}, "denylist": {"filesystems": ["zfs"]}}'
    assert told(built(weka), text).settings.direct_writes == "off"
    assert told(built(ONE_SOCKET), text).settings.direct_writes is None
    assert told(built(ONE_SOCKET), text).settings.gds_denied == ("zfs",)
    nvme = b'{"block": {"nvme": {"use_pci_p2pdma": true}}, "properties": {"use_pci_p2pdma": false}}'
    assert told(built(ONE_SOCKET), nvme).settings.p2pdma == "on"


def test_forced_compatibility_answers_with_compat():
    text = b'{"properties": {"force_compat_mode": true}}'
    found = compare(told(built(ONE_SOCKET), text), workload="load").workloads[0]
    assert [path.name for path in found.paths] == ["legacy", "direct", "compat"]
    assert sentence(found.insights[0]) == (
        "direct becomes compat: cuFile's compatibility mode is forced (cufile.json:1)."
    )


def test_without_the_fallback_a_refusal_is_an_error():
    text = b'{"properties": {"allow_compat_mode": false}}'
    machine = told(built(ONE_SOCKET.replace(" p2p: yes", " p2p: no")), text)
    first = sentence(compare(machine, workload="load").workloads[0].insights[0])
    assert first.endswith("; with its compatibility mode off cuFile returns an error.")


# --- gdscheck -------------------------------------------------------------------------------------


def test_what_gdscheck_says():
    found = read_gdscheck(gdscheck(2), "gdscheck.txt")
    assert found.versions == {"release": "1.13.0.11", "driver": "2.17", "library": "2.12"}
    assert found.direct == ("nvme", "nvmeof", "nfs")
    assert [(gpu.name, gpu.supported) for gpu in found.gpus] == [
        ("NVIDIA H100 80GB HBM3", True)
    ] * 2
    assert (found.iommu.text, found.verified) == ("off", True)
    assert found.facts["properties.allow_compat_mode"].flag is True


def test_lists_of_modes_and_other_wordings():
    text = gdscheck(1, NVMe="nvfs, p2pdma, compat", NVMeOF="compat", NFS="c2c, compat")
    assert read_gdscheck(text, "x").direct == ("p2pdma", "nvme", "nfs")
    old = b"GDS release version (beta): 0.9.1.5\n cuFile CONFIGURATION:\n LUSTRE  : Supported\n"
    found = read_gdscheck(old + b"GPU index 0 P400 bar:1 bar size (MiB):256 supports GDS\n", "x")
    assert (found.versions["release"], found.direct) == ("0.9.1.5", ("lustre",))
    assert found.gpus[0].supported


@pytest.mark.parametrize(
    ("said", "iommu"),
    [("disabled", "off"), ("enabled", "on"), ("Pass-through or enabled", "passthrough-or-on")],
)
def test_the_iommu(said, iommu):
    text = ONE_SOCKET.replace("settings: {iommu: off}\n", "")
    machine = told(built(text), check=gdscheck(1, iommu=said))
    assert machine.settings.iommu == iommu
    assert machine.settings.places["iommu"].file == "gdscheck.txt"
    assert findings(machine, "host-contradiction") == []


def test_a_contradiction_says_which_was_used():
    machine = told(built(ONE_SOCKET), check=gdscheck(1, iommu="enabled"))
    (finding,) = findings(machine, "host-contradiction")
    assert finding.message == (
        "`settings.iommu` is on by gdscheck.txt, and off in the file; used is on"
    )
    assert finding.notes == ("the file says it at <text>:4",)
    (reason,) = [
        one
        for one in compare(machine, workload="load")["direct"].reasons
        if one.effect == "refused"
    ]
    assert (reason.code, reason.place.file) == ("iommu", "gdscheck.txt")


def test_what_the_caller_sets_stays():
    machine = told(
        built(ONE_SOCKET, {"settings.iommu": "off", "gpu.p2p": "yes"}),
        check=gdscheck(1, iommu="enabled", supports="does not support GDS"),
    )
    assert (machine.settings.iommu, machine["gpu0"].part.flag("p2p")) == ("off", True)
    said = [one.message for one in findings(machine, "host-contradiction")]
    assert len(said) == 2
    assert all("by --set; used is" in text for text in said)


def test_passthrough_is_what_gdscheck_cannot_tell_from_on():
    text = ONE_SOCKET.replace("iommu: off", "iommu: passthrough")
    machine = told(built(text), check=gdscheck(1, iommu="Pass-through or enabled"))
    assert (machine.settings.iommu, findings(machine, "host-contradiction")) == ("passthrough", [])


def test_gpus_that_do_not_take_part():
    machine = told(shipped("dgx-h100"), check=gdscheck(8, supports="does not support GDS"))
    (finding,) = findings(machine, "host-contradiction")
    assert finding.message.startswith("`gpu[0-7].p2p` is no by gdscheck.txt, and yes in the file")
    reasons = compare(machine, workload="load")["direct"].reasons
    (reason,) = [one for one in reasons if one.code == "no-peer-to-peer"]
    assert reason.place.file == "gdscheck.txt"
    assert findings(told(shipped("dgx-h100"), check=gdscheck(4)), "gdscheck-gpus")


def test_drivers_that_are_not_there():
    machine = told(built(ONE_SOCKET), check=gdscheck(1, NVMeOF="Unsupported"))
    assert machine.settings.gds_support == ("nvme", "nfs")
    assert compare(machine, workload="load")["direct"].verdict == "unknown"
    none = gdscheck(1, NVMeOF="Unsupported", NVMe="Unsupported", NFS="compat")
    assert compare(told(built(ONE_SOCKET), check=none), workload="load")["direct"].verdict == (
        "refused"
    )


def test_access_control_at_switches():
    found = " Found ACS enabled for switch 86:10.0\n"
    machine = told(built(SWITCHED), check=gdscheck(2, extra=found))
    assert machine["sw0"].part.flag("acs") is True
    assert findings(machine, "host-contradiction")[0].message.startswith("`sw0.acs` is yes")
    assert compare(machine, workload="load")["direct"].verdict == "ok-slower"
    agreed = built(SWITCHED.replace("acs: off", "acs: on"))
    assert findings(told(agreed, check=gdscheck(2, extra=found)), "host-contradiction") == []
    elsewhere = built(SWITCHED.replace("acs: off}", "acs: off, pci: 17:00.0}"))
    assert findings(told(elsewhere, check=gdscheck(2, extra=found)), "gdscheck-acs")


def test_of_the_two_the_library_s_own_word_counts():
    machine = told(shipped("dgx-h100"), ROUTED, gdscheck())
    assert machine.settings.dynamic_routing == ()
    (finding,) = findings(machine, "host-contradiction")
    assert finding.place.file == "cufile.json"
    assert "used is what the library read, 0" in finding.message


@pytest.mark.parametrize("data", [b"", b"hello\n", b"\x00", CUFILE, b"GPU0 X NV18\n"])
def test_another_text_is_no_gdscheck(data):
    with pytest.raises(ExchangeError) as caught:
        read_gdscheck(data, "x.txt")
    assert caught.value.findings[0].code == "wrong-kind"


# --- damage ---------------------------------------------------------------------------------------

LIMIT_S = 5


def survives(cufile=b"", check=b""):
    start = time.process_time()
    try:
        machine = told(built(ONE_SOCKET), cufile, check)
        compare(machine, workload="load")
        said = machine.findings
    except TopoError as error:
        said = error.findings
    assert all(finding.code and finding.message for finding in said)
    assert time.process_time() - start < LIMIT_S


@given(data=damaged([CUFILE, ROUTED]))
def test_damaged_configurations(data):
    survives(cufile=data)


@given(data=damaged([gdscheck(1), gdscheck(2, iommu="Pass-through or enabled")]))
def test_damaged_checks(data):
    survives(check=data)


@pytest.mark.parametrize(
    "line",
    [
        b"properties.a :" + b"x " * 40_000 + b" " * 10_000 + b"x",
        b"NVMe :" + b" " * 90_000 + b"x",
        b"GPU index 0 " + b"a " * 40_000,
        b"ACS " * 20_000,
        b"IOMMU :" + b" a" * 40_000,
        b" " * 90_000 + b"x",
    ],
    ids=lambda line: repr(line[:12]),
)
def test_long_lines_are_read_soon(line):
    survives(check=gdscheck(1) + line + b"\n")
    survives(cufile=b"{" + line + b"}")


@given(data=st.binary(min_size=1, max_size=200))
def test_any_bytes(data):
    survives(cufile=data)
    survives(check=data)


VALUES = st.sampled_from(
    ["true", "0", '"no"', "null", "[]", '["P2P", 1]', "{}", "[[1]]", '"\\u0000"']
)
KEYS = st.sampled_from(
    [
        "allow_compat_mode",
        "force_compat_mode",
        "rdma_dynamic_routing",
        "rdma_dynamic_routing_order",
        "gds_rdma_write_support",
        "use_pci_p2pdma",
        "use_poll_mode",
        "rdma_dev_addr_list",
    ]
)


@given(values=st.dictionaries(KEYS, VALUES))
def test_any_value_under_any_key(values):
    inner = ", ".join(f'"{key}": {value}' for key, value in values.items())
    survives(cufile=f'{{"properties": {{{inner}}}}}'.encode())


@given(value=VALUES)
def test_any_value_for_a_section(value):
    survives(cufile=f'{{"properties": {value}, "denylist": {{"drivers": {value}}}}}'.encode())
