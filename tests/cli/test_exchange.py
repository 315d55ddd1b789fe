"""`topo import`, `topo export`, `topo matrix --rules`."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.discovery.twins import MATRIX, two_sockets
from topo.exports.formats import EXPORTS


def test_import_prints_a_file_to_edit(topo, tmp_path):
    (tmp_path / "host.xml").write_bytes(two_sockets())
    done = topo("import", "nccl", "host.xml")
    assert done.code == 0
    assert done.out.startswith("# Imported from host.xml (an NCCL topology file).")
    assert "guessed-storage" in done.err
    assert topo("import", "host.xml").out == done.out


def test_import_writes_what_other_verbs_read(topo, tmp_path):
    (tmp_path / "smi.txt").write_text(MATRIX, encoding="utf-8")
    assert topo("import", "smi.txt", "-o", "box.yaml", "--storage", "mlx5_0").code == 0
    assert topo("check", "box.yaml").code == 0
    assert " PIX " in topo("matrix", "box.yaml").out


def test_import_from_a_pipe(topo):
    done = topo("import", "-", stdin=MATRIX.encode())
    assert done.code == 0
    assert "name: stdin" in done.out


def test_import_as_json(topo, tmp_path):
    (tmp_path / "host.xml").write_bytes(two_sockets())
    document = topo("import", str(tmp_path / "host.xml"), "--json").document
    assert document["schema"] == "topo.import/1"
    assert document["document"]["name"] == document["topology"] == "host"
    assert str(tmp_path) not in json.dumps(document)


def test_import_of_something_else(topo, tmp_path):
    (tmp_path / "x.xml").write_text("<graphs version='1'/>", encoding="utf-8")
    done = topo("import", "x.xml")
    assert done.code == 1
    assert "an NCCL graph dump" in done.err
    assert topo("import").code == 2
    assert topo("import", "a", "b", "c").code == 2


def test_every_format_is_in_the_help_and_in_the_documentation(topo):
    shown = " ".join(topo("export", "--help").out.split())
    text = (Path(__file__).parents[2] / "docs" / "importing.md").read_text(encoding="utf-8")
    table = text.partition("`topo export KIND FILE`")[2]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == list(EXPORTS)
    for kind, form in EXPORTS.items():
        assert (f"{kind} ({form.note})" if form.note else kind) in shown


def test_export(topo):
    done = topo("export", "nccl", "dgx-h100")
    assert done.code == 0
    assert done.out.startswith('<system version="1">')
    assert "not-held" in done.err
    assert topo("export", "visio", "dgx-h100").code == 2
    document = topo("export", "csv", "gds-textbook", "--json").document
    assert document["schema"] == "topo.export/1"
    assert topo("export", "mermaid", "gds-textbook", "-o", "x.mmd").out == ""


def test_a_flowchart_marks_what_binds_the_asked_workload(topo):
    assert "bottleneck" not in topo("export", "mermaid", "gds-textbook").out
    asked = ("export", "mermaid", "gds-textbook", "--workload", "load")
    assert "class d1,d2 bottleneck" in topo(*asked, "--via", "direct").out
    assert "class d1,d2,d5,d6 bottleneck" in topo(*asked, "--via", "legacy").out
    done = topo("export", "csv", "gds-textbook", "--via", "direct")
    assert done.code == 2
    assert "are for mermaid" in done.err


def test_matrix_by_other_rules(topo):
    done = topo("matrix", "dgx-h100", "--rules", "nccl")
    assert "PXB 48" in done.out
    assert "NVL 370.8" in done.out
    document = topo("matrix", "dgx-h100", "--rules", "nccl", "--json").document
    assert document["matrix"]["gpu0"]["gpu1"]["bandwidth_bytes_per_s"] == 370.8e9
    gds = topo("matrix", "dgx-h100", "--rules", "gds")
    assert gds.out.split("\n")[1].split()[:3] == ["gpu0", "nic0", "3"] or "gpu0  nic0" in gds.out
    peers = topo("matrix", "dgx-h100", "--rules", "gds", "--json").document["gpus"]["gpu0"]
    assert peers[0]["distance"] == 3
    assert topo("matrix", "dgx-h100", "--rules", "nccl", "--functions").code == 2
    assert topo("matrix", "dgx-h100", "--release", "current").code == 2
    old = ("--rules", "nccl", "--release", "before-sapphire-rapids")
    assert "SYS 10" in topo("matrix", "dgx-h100", *old).out


def test_import_of_two_sources(topo, tmp_path):
    (tmp_path / "host.xml").write_bytes(two_sockets())
    (tmp_path / "smi.txt").write_text(MATRIX, encoding="utf-8")
    done = topo("import", "nccl", "host.xml", "--and", "nvidia-smi", "smi.txt")
    assert done.code == 0
    assert "# Combined with smi.txt (output of nvidia-smi topo -m)." in done.out
    assert "sources-disagree" in done.err  # NVLinks to switches, and four between the pair
    assert topo("import", "host.xml", "--and", "smi.txt").out == done.out
    assert topo("import", "--and=smi.txt", "host.xml").out == done.out
    assert topo("import", "host.xml", "--and", "-", stdin=MATRIX.encode()).code == 0
    document = topo("import", "host.xml", "--and", "smi.txt", "--json").document
    assert document["together"] == ["smi.txt (output of nvidia-smi topo -m)"]


def test_import_of_a_second_source_that_is_none(topo, tmp_path):
    (tmp_path / "host.xml").write_bytes(two_sockets())
    assert topo("import", "host.xml", "--and").code == 2
    assert topo("import", "-", "--and", "-").code == 2
    wrong = topo("import", "host.xml", "--and", "nvidia-smi", "host.xml")
    assert wrong.code == 1
    assert "an NCCL topology file, not what `nvidia-smi` reads" in wrong.err


def test_import_of_an_endless_file(topo):
    done = topo("import", "lspci", "/dev/zero")
    assert done.code == 1
    assert "has more than 64 MiB" in done.err
