"""What a file is, told by what stands in it."""

from __future__ import annotations

import bz2
import gzip
import lzma

import pytest

from tests.discovery.twins import MATRIX, two_sockets
from topo.discovery.file_kinds import file_kind
from topo.discovery.importing import discover, import_text
from topo.errors import ExchangeError


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (two_sockets(), "nccl"),
        (b"<!-- made by hand -->\n" + two_sockets(), "nccl"),
        (b'<?xml version="1.0"?>\n<!DOCTYPE topology SYSTEM "hwloc2.dtd">\n<topology/>', "hwloc"),
        (MATRIX.encode(), "nvidia-smi"),
        (b"\x1b[4m\tGPU0\tCPU Affinity\x1b[0m\nGPU0\t X \t0-3\n", "nvidia-smi"),
        (b"-[0000:00]-+-00.0  Host bridge\n", "lspci"),
        (b"00:00.0 Host bridge: Intel\n", "lspci"),
        (b"============ ROCm System Management Interface ============\n", "rocm-smi"),
        (b"\x1f\x8b\x08", "sysfs"),
        (b"host:1:2 [0] NCCL INFO Bootstrap\n", "nccl-log"),
        (b"[1,0]<stdout>:host:1:2 [0] NCCL INFO Bootstrap\n", "nccl-log"),
    ],
)
def test_kinds_that_are_read(data, kind):
    assert file_kind(data).importer == kind


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'{"nvbandwidth": {}}', "results of nvbandwidth"),
        (b'{"fio version": "fio-3.36"}', "results of fio"),
        (b"[1, 2]", "a JSON file"),
        (b"topo: 1\nname: x\n", "a topology file of topo"),
        (b"<svg/>", "an SVG picture"),
        (b"< >", "does not say what it is"),
        (b"\x00\x01\x02", "a binary file"),
        (b"   \n", "an empty file"),
        (b"dear all", "a text of no kind that topo knows"),
        (b"[Link Test 1.0]\nDevice: 1\n", "a text of no kind that topo knows"),
    ],
)
def test_others_are_named(data, words):
    assert words in file_kind(data).words
    with pytest.raises(ExchangeError, match=words) as caught:
        import_text(None, data, "x")
    assert [one.code for one in caught.value.findings] == ["wrong-kind"]


def test_a_kind_that_is_not_there():
    with pytest.raises(ExchangeError, match="no importer reads `visio`"):
        import_text("visio", b"", "x")


def test_a_wrong_kind_says_the_right_command():
    with pytest.raises(ExchangeError) as caught:
        import_text("nvidia-smi", two_sockets(), "a.xml")
    assert caught.value.findings[0].help == "write `topo import nccl a.xml`"


@pytest.mark.parametrize(
    ("data", "words", "help"),
    [
        (b"Machine (P#0 total=1)\n", "text of lstopo, not what `nccl` reads", "import lstopo x"),
        (b"GPU0 X OK\nGPU1 OK X\n", "topo -p2p, not what `nccl`", "topo import p2p x"),
        (b"     MLU0  MLU1\nMLU0 SELF  MLK\n", "output of cnmon topo -m", "run `lspci -tv`"),
        (b"# note\nname: x\nlanes: 4\n", "a YAML file, not what `nccl` reads", "topo imports"),
        (b"topo: 1\nname: x\n", "a topology file of topo", "it needs no import"),
        (b"dear all", "no XML, so not what `nccl` reads", "topo imports"),
    ],
)
def test_an_explicit_kind_is_told_what_the_file_is(data, words, help):
    with pytest.raises(ExchangeError, match=words) as caught:
        import_text("nccl", data, "x")
    (said,) = caught.value.findings
    assert said.code == "wrong-kind"
    assert help in said.help


@pytest.mark.parametrize("module", [bz2, gzip, lzma])
def test_a_text_may_be_compressed(module):
    plain = discover(None, MATRIX.encode(), "a.txt")
    assert discover(None, module.compress(MATRIX.encode()), "a.txt") == plain
    with pytest.raises(ExchangeError, match="is no tar archive that can be read"):
        discover(None, module.compress(b"\x00\x01" * 400), "a")
