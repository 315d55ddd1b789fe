"""A bundle: nothing in it tells whose host it is, and it reads as the host itself does."""

from __future__ import annotations

import contextlib
import gzip
import io
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.discovery.trees import sysfs_box, with_target
from tests.host.made_up import config as config_with
from topo.discovery.importing import discover, import_machine
from topo.discovery.sources.config_space import (
    config_largest_window,
    config_links,
    config_redirects,
    without_identity,
)
from topo.discovery.sources.file_tree import Folder
from topo.host.bundle import stand_ins_for
from topo.host.gathering import HostCommand
from topo.host.stand_ins import StandIns
from topo.host.this_host import gather_host

# Everything that tells whose the host is, in each spelling that a tool has for it.
PLANTED = (
    *("gpu07", "zurich.example-bank.com", "mmueller", "S6EVNA0R501234", "PHAB1234000K3P8EGN"),
    *("b83fd2000a1b2c3d", "b83f:d200:0a1b:2c3d", "b8-3f-d2-00-0a-1b-2c-3d", "b8:3f:d2:0a:1b:2c"),
    *("b83fd20a1b2c", "10.77.12.9", "10.77.12.1", "192.168.44.5", "090C4D0A", "0a4d:0c01"),
    *("2001:db8:77::5", "4c4c4544-0042-3510", "GPU-8f7d1c3a-1111", "MT2231X01234", "9876543210"),
    *("kbuild3", "fm01.example-bank", "jdoe", "RACK42-U7", "303041423939", "10-77-12-99"),
    *("nqn.2014-08.com.bank", "eui.0025384b21f4a6e1", "0025384b21f4a6e1", "deadbeefcafe0042"),
)

DMIDECODE = """\
Memory Device
\tManufacturer: Samsung
\tSerial Number: 80CE0112345
\tAsset Tag: 9876543210
\tUUID: 4c4c4544-0042-3510-8051-b5c04f4e3133
\tSpeed: 4800 MT/s
Slot on gpu07.zurich.example-bank.com, seen by mmueller
/home/jdoe/dmi: fm01.example-bank.com (ip-10-77-12-99.ec2.internal) does not answer
"""
NVME = """\
Node                  SN                   Model                    Namespace Usage
--------------------- -------------------- ------------------------ --------- -----
/dev/nvme0n1          PHAB1234000K3P8EGN   INTEL SSDPF2KX038T1      1         3.84  TB
/dev/nvme1n1          S6EVNA0R501234       SAMSUNG MZQL23T8HCLS     1         3.84  TB
"""
IBSTAT = """\
CA 'mlx5_0'
\tSystem image GUID: 0xb83fd2000a1b2c3d
\tNode GUID: 0xb83fd2000a1b2c3d
\tPort 1: MAC b8:3f:d2:0a:1b:2c on enxb83fd20a1b2c, 192.168.44.5, 2001:db8:77::5
"""
LSPCI = """\
0000:44:00.0 Infiniband controller [0207]: Mellanox MT28908 [15b3:101b]
\tCapabilities: [148 v1] Device Serial Number b8-3f-d2-00-0a-1b-2c-3d
\tCapabilities: [48] Vital Product Data
\t\t[SN] Serial number: MT2231X01234
\t\t[V3] Vendor specific: deadbeefcafe0042
\t\t[Y0] System specific: RACK42-U7
\t\t[FN] Unknown: 303041423939
\t\t[PN] Part number: MCX653105A
\tGPU UUID GPU-8f7d1c3a-1111-2222-3333-444455556666, eui.0025384b21f4a6e1
"""


def planted_tree():
    """The usual box with a target over RDMA, and identities wherever a host has them."""
    tree = with_target(sysfs_box(), "traddr=10.77.12.9,trsvcid=4420,src_addr=10.77.12.1")
    tree.put("sys/devices/virtual/nvme-fabrics/ctl/nvme1/subsysnqn", "nqn.2014-08.com.bank:gpu07")
    card = "sys/devices/pci0000:40/0000:40:01.1/0000:41:00.0/0000:42:04.0/0000:44:00.0"
    gids = f"{card}/infiniband/mlx5_0/ports/1/gids"
    tree.put(f"{gids}/0", "0000:0000:0000:0000:0000:ffff:0a4d:0c01")
    tree.put(f"{gids}/1", "fe80:0000:0000:0000:b83f:d200:0a1b:2c3d")
    tree.put(f"{card}/net/enxb83fd20a1b2c/address", "b8:3f:d2:0a:1b:2c")
    tree.put("proc/sys/kernel/hostname", "gpu07.zurich.example-bank.com")
    tree.put("proc/net/route", "Iface\tDestination\tGateway\tFlags\nib0\t090C4D0A\t0100000A\t0003")
    drive = "sys/devices/pci0000:00/0000:00:03.1/0000:01:00.0/nvme/nvme0"
    tree.put(f"{drive}/serial", "S6EVNA0R501234      ")
    tree.link("sys/class/nvme/nvme0", f"../../{drive.removeprefix('sys/')}")
    tree.put(f"{card}/config", planted_config())
    tree.put("proc/driver/nvidia/version", "NVRM version: Open Kernel Module (root@kbuild3.lab)")
    return tree


def planted_config():
    """A config space with a link, ACS redirect, and a serial number in two places."""
    config = bytearray(4096)
    config[0x06], config[0x34] = 0x10, 0x60
    config[0x60:0x62] = bytes([0x10, 0x80])
    config[0x6C:0x70] = (0x4 | 16 << 4).to_bytes(4, "little")
    config[0x80:0x82] = bytes([0x09, 0x00])  # the vendor's own
    config[0x88:0x90] = bytes.fromhex("deadbeefcafe0042")
    config[0x100:0x104] = (0x0003 | 1 << 16 | 0x148 << 20).to_bytes(4, "little")
    config[0x104:0x10C] = bytes.fromhex("b83fd2000a1b2c3d")
    config[0x148:0x14C] = (0x000D | 1 << 16).to_bytes(4, "little")
    config[0x14E] = 0x04
    return bytes(config)


@pytest.fixture
def gathered(tmp_path, monkeypatch):
    """A host with all that and the texts of its tools, and its bundle."""
    folder = tmp_path / "bin"
    folder.mkdir()
    texts = {"dmidecode": DMIDECODE, "nvme": NVME, "ibstat": IBSTAT, "lspci": LSPCI}
    for name, text in texts.items():
        (folder / name).write_text(f"#!/bin/sh\ncat <<'END'\n{text}END\n")
        (folder / name).chmod(0o755)
    (folder / "nvidia-smi").write_text("#!/bin/sh\necho 'no driver on gpu07' >&2; exit 9\n")
    (folder / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("USER", "mmueller")
    root = planted_tree().write(tmp_path / "box")
    lines = ("nvidia-smi topo -m", "dmidecode -t slot", "nvme list", "ibstat", "lspci -D")
    host = gather_host(root, tuple(HostCommand(tuple(line.split()), "x") for line in lines))
    return host, host.packed(Folder(root))


def everything_in(packed):
    """Yield each text of an archive, its names, links and heads, and the raw bytes."""
    raw = gzip.decompress(packed)
    yield "the archive", raw
    yield "the compressed archive", packed
    with tarfile.open(fileobj=io.BytesIO(raw)) as archive:
        for member in archive:
            yield member.name, f"{member.name} {member.linkname} {member.uname}".encode()
            if member.isreg():
                yield member.name, archive.extractfile(member).read()


def test_nothing_tells_whose_host_it_is(gathered):
    _, packed = gathered
    for where, data in everything_in(packed):
        for identity in PLANTED:
            spellings = {identity.encode(), identity.lower().encode(), identity.upper().encode()}
            with contextlib.suppress(ValueError):
                spellings.add(bytes.fromhex(identity))
            spellings = {spelling for spelling in spellings if len(spelling) > 3}
            assert not [one for one in spellings if one in data], (where, identity)


def test_every_planted_identity_is_in_the_host(gathered):
    # or the test above would hold of anything
    host, _ = gathered
    files = b"\n".join(content for content in host.tree.seen.values() if isinstance(content, bytes))
    names = "\n".join("/".join(place) for place in host.tree.seen).encode()
    texts = b"\n".join(result.data for result in host.results)
    all_of_it = files + names + texts + files.hex().encode() + DMIDECODE.encode()
    assert [one for one in PLANTED if one.encode() not in all_of_it] == []


def test_the_head_of_the_archive_has_no_name_or_time(gathered):
    _, packed = gathered
    flags, time = packed[3], packed[4:8]
    assert (flags, time) == (0, bytes(4))
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        heads = {(m.uid, m.gid, m.uname, m.gname, m.mtime) for m in archive}
    assert heads == {(0, 0, "", "", 0)}


def test_the_same_host_gives_the_same_bytes(gathered, tmp_path):
    host, packed = gathered
    assert host.packed(Folder(tmp_path / "box")) == packed


def test_a_bundle_reads_as_the_host(gathered):
    host, packed = gathered
    copy = discover(None, packed, "box.tar.gz")
    mine, theirs = (import_machine(machine) for machine in (host.host.machine, copy))
    lines = [imported.yaml.split("\n") for imported in (mine, theirs)]
    differing = [mine for mine, theirs in zip(*lines, strict=True) if mine != theirs]
    # the names of the machine, the target's address and an interface called by its MAC
    assert [line.split(":")[0].strip() for line in differing] == [
        "# Imported from this machine (Linux's /sys).",
        "name",
        "storage0",
        "nic0",
    ]
    assert copy.of_kind("storage")
    assert not any(finding.code == "guessed-storage" for finding in copy.findings)


def test_every_text_is_in_it_also_of_kinds_that_nothing_reads(gathered):
    _, packed = gathered
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        names = {member.name for member in archive}
        told = archive.extractfile("host/gathered.txt").read().decode()
    assert {
        f"host/texts/{name}.txt" for name in ("04+ibstat", "03+nvme+list", "05+lspci+-D")
    } <= names
    assert "nvidia-smi topo -m: failed: no driver on name" in told


def test_an_unpacked_bundle_reads_the_same(gathered, tmp_path):
    _, packed = gathered
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        for member in archive:  # by hand: Debian 12's tarfile knows no filters
            path = tmp_path / "out" / member.name
            path.parent.mkdir(parents=True, exist_ok=True)
            if member.isdir():
                path.mkdir(exist_ok=True)
            elif member.issym():
                path.symlink_to(member.linkname)
            elif member.isfile():
                path.write_bytes(archive.extractfile(member).read())
    from topo.discovery.importing import discover_folder

    folder = discover_folder(None, tmp_path / "out", "box")
    assert folder.devices == discover(None, packed, "box").devices


# --- config space ---------------------------------------------------------------------------------


def test_a_config_space_keeps_what_is_read_of_it():
    config = planted_config()
    kept = without_identity(config)
    assert config_links(kept) == config_links(config)
    assert config_redirects(kept) is config_redirects(config) is True
    assert len(kept) == len(config)
    gpu = config_with(windows=[256, 2**17])
    assert config_largest_window(without_identity(gpu)) == config_largest_window(gpu) == 2**37


@pytest.mark.parametrize("length", [0, 1, 63, 64, 65, 100, 255, 256, 257, 300, 4095])
def test_a_cut_config_space_keeps_its_length(length):
    assert len(without_identity(planted_config()[:length])) == length


# --- stand-ins ------------------------------------------------------------------------------------


def test_one_value_has_one_stand_in_however_it_is_spelled():
    stand_ins = StandIns()
    spelled = [
        stand_ins.replaced(text).removeprefix("0x")
        for text in ("0xB83FD2000A1B2C3D", "b83f:d200:0a1b:2c3d", "b8-3f-d2-00-0a-1b-2c-3d")
    ]
    digits = {text.replace(":", "").replace("-", "").lower() for text in spelled}
    assert len(digits) == 1
    link_local = stand_ins.replaced("fe80:0000:0000:0000:b83f:d200:0a1b:2c3d")
    assert link_local.replace(":", "").endswith(digits.pop())


def test_an_interface_called_by_its_address_goes_with_it():
    stand_ins = StandIns()
    mac = stand_ins.replaced("link/ether b8:3f:d2:0a:1b:2c").split()[-1]
    assert stand_ins.replaced("enxb83fd20a1b2c: up") == f"enx{mac.replace(':', '')}: up"


def test_addresses_of_one_network_stay_so():
    stand_ins = StandIns()
    a, b, c = (
        stand_ins.replaced(f"addr {ip}").split()[1] for ip in ("10.1.2.3", "10.1.2.4", "10.1.9.3")
    )
    assert a.rpartition(".")[0] == b.rpartition(".")[0] != c.rpartition(".")[0]
    assert len({a, b, c}) == 3
    assert stand_ins.replaced("net 10.1.2.0/24") == f"net {a.rpartition('.')[0]}.0/24"
    mapped = stand_ins.replaced("0000:0000:0000:0000:0000:ffff:0a01:0203")
    octets = [int(mapped.replace(":", "")[at : at + 2], 16) for at in range(24, 32, 2)]
    assert ".".join(map(str, octets)) == a


@pytest.mark.parametrize(
    "text",
    [
        "0000:1b:00.0 NVIDIA H100 [10de:2330] (rev a1)",
        "GPU0\t X \tNV18\tPIX\t0-55,112-167\t0",
        "LnkSta: Speed 32GT/s, Width x16 CESta: 00:15",
        "Memory at 38c000000000 (64-bit, prefetchable) [size=256M]",
        "driver 580.159.04, firmware 28.39.1002",
        "Serial Number: Not Specified",
        "\tAsset Tag: None",
        "localhost root",
        "node 0 cpus: 0 1 2 3",
        "CA 'mlx5_0' at :: and ::1, 0.0.0.0, 127.0.0.1",
    ],
)
def test_what_tells_nothing_stays(text):
    assert StandIns(["localhost", "node", "x"], ["123"]).replaced(text) == text


def test_a_name_of_two_letters_is_replaced_where_a_label_says_what_it_is():
    stand_ins = StandIns(["c3"])
    assert stand_ins.replaced("Host name: c3\nc3:00.0 3D controller") == (
        "Host name: name1\nc3:00.0 3D controller"
    )


@pytest.mark.parametrize(
    ("text", "identity"),
    [
        ("Release Build  (builder@kbuild3.corp.example)", "builder@kbuild3"),
        ("/Users/jdoe/x: denied", "jdoe"),
        ("\t[YA] Asset tag: A-0099123", "0099123"),
        ("SN: S6EVNB0R777777", "777777"),
        ('{"SerialNumber":"S6EVNB0R888888","ModelNumber":"X"}', "888888"),
        ('{"id":"4c4c454400423510805ab5c04f4e3133"}', "4c4c4544"),
        ("Base MAC: b83fd20a1b2d", "b83fd20a1b2d"),
        ("mac-address b83f.d20a.1b2e", "b83f.d20a"),
        ("Base GUID: b83fd203000a1b2c", "b83fd203000a1b2c"),
        ("WWPN = 10000090FA1B2C3D", "10000090fa1b2c3d"),
        ("traddr=[2001:db8:77::9]:4420", "db8:77"),
        ("fe80::ba3f:d2ff:fe0a:1b2c%ib0", "ba3f:d2ff"),
        ("inet6 2001:DB8:77::AB/64", "77::ab"),
        ("traddr=nn-0x20014000a1b2c3d4:pn-0x21014000a1b2c3d4", "4000a1b2c3d4"),
        ("nqn.2014.08.org.nvmexpress:144d144dS6EVNA0R501234   SAMSUNG", "s6evna0r501234"),
        ("/dev/nvme1 vol0abcd1234ef567890 Amazon Elastic Block Store", "0abcd1234ef567890"),
        ("Chassis Serial Number : 1652826071981", "1652826071981"),
        ("Unique ID: 0x8a1b2c3d4e5f6071", "8a1b2c3d4e5f6071"),
    ],
)
def test_what_tells_by_its_form_goes(text, identity):
    assert identity in text.lower()
    assert identity not in StandIns().replaced(text).lower()


@pytest.mark.parametrize(
    "text",
    [
        "GPU 0: NVIDIA H100 80GB HBM3, mlx5_0 on dgx",
        "Model name: Intel(R) Xeon(R) Gold 6248R CPU@3.00GHz",
        "firmware 2039.1002.0028, hash 00000000000000000000000000000000",
    ],
)
def test_a_host_called_by_what_it_is_tells_nothing(text):
    assert StandIns(["h100", "mlx5", "dgx", "xeon"], ["Not Specified"]).replaced(text) == text


def test_a_known_name_is_replaced_as_a_word():
    stand_ins = StandIns(["gpu07.lab.example", "gpu07"])
    assert "gpu07" not in stand_ins.replaced("gpu07 GPU07-ib0 (gpu07.lab.example)").lower()
    assert stand_ins.replaced("gpu070 mygpu07") == "gpu070 mygpu07"


@given(st.text(max_size=200), st.text(st.sampled_from("0123456789abcdef:.-x "), max_size=80))
def test_a_known_name_never_stays(text, digits):
    planted = f"{text} gpu07 {digits}"
    replaced = StandIns(["gpu07"], ["S6EVNA0R501234"]).replaced(planted)
    assert "gpu07" not in replaced.split()


def test_a_line_without_end_costs_no_time():
    text = "serial:" * 200_000 + "\n" + "a:" * 500_000 + "\n" + "0" * 2_000_000
    assert len(StandIns(["gpu07"]).replaced(text)) < 200


def test_this_host_is_known_by_its_files(tmp_path, monkeypatch):
    monkeypatch.setenv("USER", "mmueller")
    tree = Folder(planted_tree().write(tmp_path / "box"))
    text = stand_ins_for(tree).replaced("gpu07 mmueller example-bank S6EVNA0R501234")
    assert not {"gpu07", "mmueller", "S6EVNA0R501234"} & set(text.split())
