"""`nvidia-smi topo -p2p`: between which GPUs peer-to-peer is allowed."""

from __future__ import annotations

import pytest

from tests.discovery.test_combine import codes, smi
from topo.discovery.file_kinds import file_kind
from topo.discovery.importing import discover, import_text, import_together
from topo.errors import ExchangeError

LEGEND = """
Legend:

  X    = Self
  OK   = Status Ok
  CNS  = Chipset not supported
  GNS  = GPU not supported
  TNS  = Topology not supported
  NS   = Not supported
  U    = Unknown
"""


def matrix(*rows):
    head = "".join(f"\tGPU{at}" for at in range(len(rows)))
    lines = (f" GPU{at}\t" + "\t".join(codes.split()) for at, codes in enumerate(rows))
    return "\n".join([f" {head}", *lines]) + "\n" + LEGEND


OK = matrix("X OK", "OK X")
NONE = matrix("X GNS", "GNS X")
MIXED = matrix("X OK CNS", "OK X CNS", "CNS CNS X")
PLAIN = {"OK": OK, "none": NONE, "mixed": MIXED, "not supported": matrix("X NS", "NS X")}


def told(text):
    data = text if isinstance(text, bytes) else text.encode()
    return discover(None, data, "p.txt")


@pytest.mark.parametrize("text", PLAIN.values(), ids=PLAIN)
def test_it_is_known_and_refused_alone(text):
    assert file_kind(text.encode()).importer == "p2p"
    with pytest.raises(ExchangeError, match="tells which GPUs may reach each other, and not what"):
        import_text(None, text.encode(), "p.txt")


def test_what_is_allowed_or_not_asked_for_is_no_fact():
    for text in (OK, PLAIN["not supported"]):
        machine = told(text)
        assert not machine.findings
        assert not any(gpu.facts for gpu in machine.devices)


def test_a_single_gpu_is_no_mistake():
    machine = discover("p2p", matrix("X").encode(), "p.txt")
    assert [(gpu.id, gpu.facts) for gpu in machine.devices] == [("gpu 0", ())]


def test_gpus_that_support_none_have_none():
    found = import_together([discover(None, smi(), "a.txt"), told(NONE)])
    assert "gpu[0-1]: {part: gpu-unknown, fabric: unknown, p2p: no}  # p2p from p.txt" in found.yaml
    (finding,) = (each for each in found.findings if each.code == "peers-refused")
    assert finding.message == (
        "no peer-to-peer for GPU 0-1 among each other: the GPU is not supported (GNS)"
    )


def test_pairs_that_are_refused_are_named():
    (finding,) = told(MIXED).findings
    assert finding.message == (
        "no peer-to-peer for 2 pairs of GPUs (0 and 2 and 1 and 2): the chipset is not supported "
        "(CNS)"
    )


def test_a_matrix_beside_it_in_one_text():
    issue = f"$ nvidia-smi topo -m\n{smi().decode()}\n$ nvidia-smi topo -p2p r\n{NONE}"
    found = import_text(None, issue.encode(), "issue.txt")
    assert "p2p: no" in found.yaml
    assert "text-skipped" not in codes(found)


def test_a_legend_alone_is_no_matrix():
    with pytest.raises(ExchangeError, match="has no matrix of GPUs"):
        told(LEGEND)
