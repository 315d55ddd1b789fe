"""Every real file given to every wrong importer is refused by the name of what it is.

The corpus lies beside the checkout and is no part of it: without it these tests are skipped.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.discovery.test_corpus import CORPUS, data_of, rows
from topo.discovery.file_kinds import KINDS
from topo.discovery.importing import discover
from topo.errors import ExchangeError

OWN = {"nccl-xml": "nccl", "hwloc-xml": "hwloc", "lstopo-text": "lstopo"}
WORDS = {
    "lstopo": "text of lstopo",
    "nccl": "an NCCL topology file",
    "hwloc": "an hwloc XML file",
    "nvidia-smi": "output of nvidia-smi topo -m",
    "lspci": "output of lspci",
    "sysfs": "archive",
    "numactl": "output of numactl",
    "p2p": "output of nvidia-smi topo -p2p",
}
OWN_OF_FILE = {"asus-esc8000a-numactl": "numactl", "WRONGKIND-topo-p2p-8gpu-OK": "p2p"}
FOLDERS = ("nccl-xml", "hwloc-xml", "lstopo-text", "nvidia-smi", "lspci", "sysfs", "measured")


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_wrong_importer_names_the_file_for_what_it_is(folder):
    if not CORPUS.exists():
        pytest.skip(f"NO CORPUS at {CORPUS}")
    found = rows(folder)
    assert found
    for parameter in found:
        (row,) = parameter.values
        stem = Path(row["file"]).stem
        own = OWN_OF_FILE.get(stem, OWN.get(folder, folder))
        for kind in set(KINDS) - {own}:
            with pytest.raises(ExchangeError) as caught:
                discover(kind, data_of(row), "x")
            (said,) = caught.value.findings
            assert said.code == "wrong-kind"
            assert WORDS.get(own, "a YAML file") in said.message
            assert f"not what `{kind}` reads" in said.message
            if own in KINDS:
                assert said.help == f"write `topo import {own} x`"
