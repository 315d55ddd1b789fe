"""`--without`: what is out of order, on every verb that asks about a machine."""

from __future__ import annotations

import json

import click
import pytest

from topo.cli.program import VERBS, program
from topo.exports.formats import EXPORTS
from topo.study.compare import compare
from topo.topology.build import load, loads

_PARTS = """
topo: 1
name: two-rails
devices:
  node[0-3]: {use: gds-textbook}
  leaf[0-1]: quantum-2
  filer[0-1]: {part: nvme-of-target, ports: 2, read: 40 GB/s, write: 40 GB/s}
links:
  - node.slot1 -- leaf0: 2x infiniband ndr
  - node.slot2 -- leaf1: 2x infiniband ndr
  - filer -- leaf all to all: infiniband ndr
workloads:
  load: {read: 320 GB, from: filer, to: node.gpu}
  checkpoint: {write: 32 GB, from: node.gpu, to: filer}
expect:
  - load via direct >= 80 GB/s
  - node0.gpu0 to node0.slot1 is NODE
"""


@pytest.mark.parametrize(
    "verb", ["compare", "bottleneck", "simulate", "paths", "upgrade", "affinity", "failures"]
)
def test_every_asking_verb_says_what_it_is_asked_without(topo, verb):
    result = topo(verb, "dgx-h100", "--without", "nic3")
    assert result.code == 0, result.out + result.err
    assert "(without nic3)" in result.out
    assert topo(verb, "dgx-h100", "--without", "nic3", "--json").document["without"] == ["nic3"]


def test_every_verb_that_takes_a_change_takes_what_is_out_of_order():
    """Those that ask about a machine take both; the others make, list or format something."""
    context = click.Context(program)
    commands = {verb: program.get_command(context, verb) for verb in VERBS}
    options = {
        verb: {option for one in command.params for option in one.opts}
        for verb, command in commands.items()
        if command is not None
    }
    assert options.keys() == VERBS.keys()
    asking = {verb for verb in VERBS if "--set" in options[verb]}
    assert {verb for verb in VERBS if "--without" in options[verb]} == asking
    assert asking >= {
        *("affinity", "bottleneck", "check", "compare", "draw", "export", "failures"),
        *("matrix", "paths", "report", "show", "simulate", "upgrade"),
    }


@pytest.mark.parametrize("form", EXPORTS)
def test_what_is_out_of_order_is_not_exported(topo, form):
    done = topo("export", form, "gds-textbook", "--without", "slot2")
    assert done.code == 0, done.err
    assert "slot2" not in done.out
    whole = topo("export", form, "gds-textbook").out
    assert len(done.out) < len(whole)


def test_a_page_is_of_what_is_left(topo, tmp_path):
    words = ("report", "gds-textbook", "--without", "slot2", "--json")
    document = topo(*words).document
    assert document["without"] == ["slot2"]
    for section in ("resources", "classes", "localities", "matrices"):
        assert document[section]
        assert "slot2" not in json.dumps(document[section])
    assert topo(*words[:-1], "-o", "left.html").code == 0
    page = (tmp_path / "left.html").read_text(encoding="utf-8")
    assert '"--without","slot2"' in page  # the command line that asks the same


def test_a_picture_shows_what_is_out_of_order(topo, tmp_path):
    for suffix in ("svg", "dot", "drawio", "pdf"):
        file = f"left.{suffix}"
        assert topo("draw", "gds-textbook", "--without", "slot2", "-o", file).code == 0
    assert "FAILED" in (tmp_path / "left.svg").read_text(encoding="utf-8")
    assert "FAILED" in (tmp_path / "left.drawio").read_text(encoding="utf-8")
    words = ("draw", "gds-textbook", "--without", "slot2", "-o", "left.svg", "--json")
    assert topo(*words).document["without"] == ["slot2"]


@pytest.mark.parametrize("verb", ["matrix", "show"])
def test_what_is_out_of_order_is_not_shown(topo, verb):
    document = topo(verb, "dgx-h100", "--without", "nic3", "--json").document
    del document["without"]
    if verb == "matrix":
        assert "nic3" not in json.dumps(document)
    else:
        assert "nic3" not in [device["name"] for device in document["devices"]]


@pytest.mark.parametrize("verb", ["compare", "bottleneck", "simulate"])
def test_the_others_are_answered_and_who_stops_is_said(topo, verb):
    """GPU 3 of a DGX H100 hangs on nic3 alone."""
    words = [verb, "dgx-h100", "--without", "nic3", "--via", "direct"]
    assert "gpu3" in topo(*words).out
    document = topo(*words, "--json").document
    if verb == "simulate":
        (load, _) = document["cut_off"]
        assert (load["endpoints"], load["count"], load["whole"]) == (["gpu3"], 1, False)
        assert not [name for name in document["finishes_s"] if name.endswith("gpu3")]
        return
    answer = document["workloads"][0]["paths"][0] if verb == "compare" else document
    assert (answer["stopped"], answer["stopped_endpoints"]) == (["gpu3"], 1)
    assert answer["rate_bytes_per_s"] == pytest.approx(560e9 / 6.4)
    assert set(answer["rates_by_gpu_bytes_per_s"]) == {f"gpu{n}" for n in range(8)} - {"gpu3"}


@pytest.mark.parametrize("verb", ["compare", "bottleneck", "simulate", "check", "failures"])
def test_what_is_cut_off_as_a_whole_is_an_answer(topo, verb):
    result = topo(verb, "gds-textbook", "--without", "storage")
    assert result.code == (verb == "check"), result.out + result.err
    assert "error[unknown-name]" not in result.err
    if verb == "simulate":
        assert "does not run" in result.out
    else:
        assert "refused" in result.out + result.err


def test_together_says_who_does_not_run(topo):
    result = topo("compare", "gds-textbook", "--together", "--without", "storage")
    assert result.code == 0, result.out + result.err
    assert "load by direct does not run" in result.out


def test_an_expectation_of_what_is_out_of_order_fails_and_says_so(topo):
    result = topo("check", "dgx-h100", "--without", "slot1")
    assert result.code == 1
    assert "is limited by slot1/chip; slot1 is out of order" in result.err


def test_asking_about_what_is_out_of_order_says_so(topo):
    result = topo("compare", "dgx-h100", "--from", "storage", "--to", "gpu3", "--without", "gpu3")
    assert result.code == 1
    assert "gpu3 is out of order" in result.err


def test_devices_stems_ranges_machines_and_cables_can_be_named(topo, tmp_path):
    file = tmp_path / "two-rails.yaml"
    file.write_text(_PARTS)
    asked = ["compare", str(file), "--workload", "load", "--via", "direct"]

    def path(*without):
        words = [word for text in without for word in ("--without", text)]
        return topo(*asked, *words, "--json").document["workloads"][0]["paths"][0]

    assert path()["rate_bytes_per_s"] == 80e9
    assert path("filer1")["rate_bytes_per_s"] == 40e9
    assert path("filer")["verdict"] == "refused"
    assert len(path("node[1-2]")["rates_by_gpu_bytes_per_s"]) == 16
    assert len(path("node1.gpu")["rates_by_gpu_bytes_per_s"]) == 24
    # Four cables of 50 GB/s join the filers with the leaves; two of them are one filer's.
    cut = path("leaf0", "leaf1")
    assert cut["verdict"] == "refused"
    assert path("leaf0 -- filer", "leaf1 -- filer")["verdict"] == "refused"
    one_rail = path("node0.slot1", "node0.slot2")
    assert one_rail["stopped_endpoints"] == 8
    assert one_rail["stopped"] == [f"node0.gpu{number}" for number in range(8)]


def test_a_misspelt_name_has_a_near_one(topo):
    result = topo("compare", "dgx-h100", "--without", "slt1", "--without", "nic9")
    assert result.code == 1
    assert "did you mean `slot1`" in result.err
    assert "nic[0-7] exist" in result.err


def test_what_is_out_of_order_stays_so_in_variants():
    machine = load("dgx-h100").without("slot1")
    better = machine.replace({"slot2.part": "connectx-8-dual-port"})
    assert "slot1" not in better.devices
    assert better.description.lost == ("slot1",)


def test_a_stated_reason_refuses_the_whole_all_the_same():
    """A GPU without peer-to-peer is no loss: it is refused as it was before."""
    machine = loads(_PARTS, overrides={"node0.gpu0.p2p": "no"}).without("filer1")
    answer = compare(machine, workload="load", via=["direct"])["direct"]
    assert answer.verdict == "refused"
    assert answer.stopped == ()
