"""Files made to do harm are refused, or read as what little they are: soon, small, inside."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import time
import tracemalloc
import zipfile

import pytest

from topo.discovery import foreign
from topo.discovery.file_kinds import KINDS
from topo.discovery.importing import discover, import_text
from topo.discovery.sources import file_tree
from topo.errors import DescriptionError, ExchangeError

DEADLINE_S = 20  # of the slowest; most take milliseconds
XML = {"nccl": "system", "hwloc": "topology"}
HEADS = {
    "nvidia-smi": b"\tGPU0\tGPU1\nGPU0\t X \tSYS\nGPU1\tSYS\t X \n",
    "lspci": b"00:00.0 VGA compatible controller: NVIDIA Corporation Device\n",
    "rocm-smi": b"=== ROCm System Management Interface ===\nGPU[0] : x\n",
}


def said_of(kind, data):
    """Read it within the bounds; return the code of the refusal, or ``read``."""
    start = time.process_time()
    try:
        discover(kind, data, "x")
        code = "read"
    except ExchangeError as error:
        (finding,) = error.findings
        code = finding.code
    assert time.process_time() - start < DEADLINE_S
    return code


def xml(kind, inside=b"", *, doctype="", attributes=b""):
    root = XML[kind].encode()
    head = doctype.replace("ROOT", XML[kind]).encode()
    return head + b"<" + root + b' version="1" ' + attributes + b">" + inside + b"</" + root + b">"


def tar(*members):
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for name, content, kind, target in members:
            info = tarfile.TarInfo(name)
            info.size, info.type, info.linkname = len(content), kind, target
            archive.addfile(info, io.BytesIO(content))
    return raw.getvalue()


# --- XML ------------------------------------------------------------------------------------------

LAUGHS = '<!DOCTYPE ROOT [<!ENTITY a "ha"><!ENTITY a0 "&a;&a;">' + "".join(
    f'<!ENTITY a{n + 1} "{f"&a{n};" * 10}">' for n in range(9)
)


@pytest.mark.parametrize("kind", XML)
@pytest.mark.parametrize(
    "doctype",
    [
        LAUGHS + "]>",
        '<!DOCTYPE ROOT [<!ENTITY a9 SYSTEM "file:///etc/passwd">]>',
        '<!DOCTYPE ROOT [<!ENTITY % x SYSTEM "http://127.0.0.1:9/x.dtd">%x;]>',
    ],
    ids=["billion laughs", "external entity", "parameter entity"],
)
def test_entities_are_refused(kind, doctype):
    assert said_of(kind, xml(kind, b"&a9;", doctype=doctype)) == "refused-xml"


def test_a_document_type_is_not_fetched(monkeypatch):
    def refuse(*_):
        raise AssertionError

    monkeypatch.setattr("socket.socket.connect", refuse)
    external = '<!DOCTYPE ROOT SYSTEM "http://127.0.0.1:9/x.dtd">'
    assert said_of("nccl", xml("nccl", doctype=external)) == "refused-xml"
    assert said_of("hwloc", xml("hwloc", doctype=external)) == "nothing-there"


@pytest.mark.parametrize("kind", XML)
@pytest.mark.parametrize(
    ("inside", "code"),
    [
        (b"<a>" * 100_000, "import-too-big"),
        (b"<a/>" * 60_000, "import-too-big"),
        (b"<!--" + b"<" * 8_000_000 + b"-->", "nothing-there"),
        (b"x" * 8_000_000, "nothing-there"),
        (b'<a b="' + b"1" * 8_000_000 + b'"/>', "nothing-there"),
        (b"<a/>" * 5_000_000, "import-too-big"),
    ],
    ids=["deep", "many", "long comment", "long text", "long value", "20 MB"],
)
def test_large_xml_is_bounded(kind, inside, code, monkeypatch):
    monkeypatch.setattr(foreign, "_MOST_ELEMENTS", 50_000)
    assert said_of(kind, xml(kind, inside)) == code


@pytest.mark.parametrize("kind", XML)
def test_a_tag_of_very_many_attributes(kind):
    many = b" ".join(b'a%d="1"' % n for n in range(200_000))
    assert said_of(kind, xml(kind, attributes=many)) == "nothing-there"


# --- text -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", HEADS)
def test_large_text_is_bounded(kind):
    assert said_of(kind, HEADS[kind] + b"x y z\n" * 300_000) in ("read", "nothing-there")
    assert said_of(kind, HEADS[kind] + b"x y z\n" * 2_000_000) == "import-too-big"
    assert said_of(kind, HEADS[kind] + b"x" * 200_000) == "import-too-big"


@pytest.mark.parametrize("kind", KINDS)
def test_a_hundred_megabytes_of_anything(kind):
    start = {**HEADS, "infragraph": b"name: x\n", "sysfs": b"\x1f\x8b"}
    start |= {one: f"<{XML[one]}>".encode() for one in XML}
    data = start.get(kind, b"") + b" " * (100 * 2**20)
    tracemalloc.start()
    try:
        assert said_of(kind, data) == "import-too-big"
        assert tracemalloc.get_traced_memory()[1] < 50 * 2**20
    finally:
        tracemalloc.stop()


# --- archives -------------------------------------------------------------------------------------


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_archives_that_swell_are_refused(pack, monkeypatch):
    monkeypatch.setattr(file_tree, "_MOST_BYTES", most := 16 * 2**20)
    packed = pack(bytes(most + 1))
    tracemalloc.start()
    try:
        assert said_of("sysfs", packed) == "import-too-big"
        assert tracemalloc.get_traced_memory()[1] < 2.5 * most
    finally:
        tracemalloc.stop()


def test_an_archive_of_very_many_members(monkeypatch):
    monkeypatch.setattr(file_tree, "_MOST_MEMBERS", 1000)
    many = tar(*((f"sys/{n}", b"", tarfile.REGTYPE, "") for n in range(1500)))
    assert said_of("sysfs", many) == "import-too-big"


def test_a_zip_is_named():
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("sys/x", bytes(10 * 2**20))
    with pytest.raises(ExchangeError, match="is a zip file"):
        discover("sysfs", raw.getvalue(), "x")


@pytest.mark.parametrize(
    "member",
    [
        ("../../etc/passwd", b"x", tarfile.REGTYPE, ""),
        ("/etc/passwd", b"x", tarfile.REGTYPE, ""),
        ("sys/bus/pci/devices", b"", tarfile.SYMTYPE, "/etc"),
        ("sys/bus/pci/devices", b"", tarfile.SYMTYPE, "../../../../../../../etc"),
        ("sys/bus/pci/devices", b"", tarfile.SYMTYPE, "devices"),
        ("sys/devices/system/node", b"", tarfile.LNKTYPE, "/sys/devices/system/node"),
        ("sys/x", b"", tarfile.CHRTYPE, ""),
        ("sys/x", b"", tarfile.FIFOTYPE, ""),
        ("/".join(["sys", *(["a"] * 5000)]), b"x", tarfile.REGTYPE, ""),
    ],
    ids=lambda member: f"{member[0][:20]} {member[2].decode()}",
)
def test_members_stay_in_the_archive(member, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert said_of("sysfs", tar(member)) in ("nothing-there", "broken-archive")
    assert not list(tmp_path.iterdir())  # nothing is ever unpacked


def test_very_many_links_are_refused_in_time():
    def address(at):
        return f"{at // 256:04x}:{at % 256:02x}:00.0"

    gpus = "".join(
        f'<pci busid="{address(at)}" class="0x030200" vendor="0x10de" device="0x2330" '
        f'link_speed="32.0 GT/s PCIe" link_width="16"><gpu dev="{at}" sm="90" rank="{at}" gdr="1">'
        + "".join(
            f'<nvlink target="{address((at + step) % 1000)}" count="1" tclass="0x030200"/>'
            for step in range(1, 41)
        )
        + "</gpu></pci>"
        for at in range(1000)
    )
    text = f'<system version="1"><cpu numaid="0" arch="x86_64">{gpus}</cpu></system>'
    start = time.process_time()
    with pytest.raises(DescriptionError, match="41,001 links are in one server"):
        import_text("nccl", text.encode(), "many.xml")
    assert time.process_time() - start < 10
