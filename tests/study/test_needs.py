"""Accelerators fed, checkpoints and KV caches: what a machine makes of what models ask for."""

from __future__ import annotations

import math

import pytest

from tests.machines import PARTS, built
from topo.catalogue.needs import needs
from topo.description.as_document import to_document
from topo.errors import DescriptionError, UnknownNameError
from topo.study.bottleneck import bottleneck
from topo.study.check import check
from topo.study.compare import compare
from topo.study.failures import failures
from topo.study.needs import Checkpointing, Feeding, Moved
from topo.study.question import ask_need
from topo.study.timeline import simulate
from topo.study.upgrade import upgrades
from topo.topology.build import build, loads
from topo.views.needs import need_sentence

GB = 1e9
H100 = 146.600628e6 * 7 / 0.323  # bytes/s of unet3d

# Eight GPUs on two sockets, each with a card of 50 GB/s in its own 100 GB/s of storage.
MACHINE = (
    PARTS
    + """
  h100: {like: accel, accelerator: h100}
  a100: {like: accel, accelerator: a100}
  mi300x: {like: accel, accelerator: mi300x}
needs:
  eager: {rate: 10 GB/s, utilisation: 80 %, source: test}
devices:
  storage: STORAGE
  nic[0-1]: card
  cpu[0-1]: socket
  ram[0-1]: dram
  gpu[0-3]: FIRST
  gpu[4-7]: SECOND
links:
  - storage -- nic: infiniband ndr
  - nic -- cpu: pcie 5 x16
  - ram -- cpu: memory-bus
  - cpu0 -- cpu1: 4x upi 16 GT/s
  - gpu -- cpu in blocks: pcie 5 x16
workloads:
  train: {NEED, from: storage, to: gpu}
"""
)


def machine(
    need="needs: unet3d",
    *,
    storage="target",
    first="h100",
    second="h100",
    expect=(),
    to="gpu",
    changes=None,
):
    text = MACHINE.replace("to: gpu", f"to: {to}").replace("NEED", need)
    text = text.replace("STORAGE", storage).replace("FIRST", first).replace("SECOND", second)
    text += "expect:\n" * bool(expect) + "".join(f"  - {line}\n" for line in expect)
    return built(text, changes)


def fed(topology, via="direct"):
    path = compare(topology, via=[via])[via]
    assert isinstance(path.met, Feeding)
    return path, path.met


def test_a_gpu_takes_no_more_than_it_computes_on():
    path, feeding = fed(machine())
    assert path.rate == pytest.approx(8 * H100)
    assert path.bottlenecks == ()
    assert [limit.model for limit in path.own_limits] == ["unet3d"]
    assert (feeding.fed, feeding.count) == (8, 8)
    assert feeding.supply == pytest.approx(100 * GB)
    assert feeding.room == 34  # 100 / 2.859
    assert path.time is None


def test_as_many_are_fed_as_have_their_share_at_once():
    path, feeding = fed(machine(storage="{part: target, read: 16 GB/s}"))
    assert path.rate == pytest.approx(16 * GB)
    assert feeding.fed == 5  # 16 / 2.859 = 5.6
    assert feeding.kinds[0].rates == pytest.approx((2 * GB, 2 * GB))
    assert [full.resource.name for full in path.bottlenecks] == ["storage/read"]
    words = need_sentence(path)
    assert "direct feeds 5 of 8 H100 with unet3d at 90 %" in words
    assert "and has 2 GB/s while all run" in words


def test_all_are_fed_at_just_their_share():
    share = 8 * 0.9 * H100 / GB
    for rate, count in ((share * (1 + 1e-12), 8), (share * (1 - 1e-6), 7)):
        _, feeding = fed(machine(storage=f"{{part: target, read: {rate!r} GB/s}}"))
        assert feeding.fed == count


def test_each_socket_feeds_whole_accelerators():
    # 9 GB/s a card feed three of 2.859 each: six, not the 6.3 of both together
    _, feeding = fed(machine(changes={"nic.chip": "9 GB/s"}))
    assert feeding.fed == 6


def test_generations_ask_for_different_rates():
    path, feeding = fed(machine(second="a100"))
    assert path.rate == pytest.approx(4 * H100 * (1 + 0.323 / 0.636))
    assert [(kind.accelerator, kind.count) for kind in feeding.kinds] == [("h100", 4), ("a100", 4)]
    assert feeding.fed == 8
    assert feeding.room is None
    assert "4 H100 and 4 A100" in need_sentence(path)


def test_of_an_unknown_generation_the_need_is_unknown():
    path, feeding = fed(machine(first="mi300x", second="mi300x"))
    assert (feeding.fed, feeding.unknown, feeding.count) == (0, 8, 8)
    assert path.rate == pytest.approx(100 * GB)
    words = need_sentence(path)
    assert "Whether direct feeds 8 MI300X is not known" in words
    assert "times of a100, h100 and b200 are known, not that of mi300x" in words
    path, feeding = fed(machine(first="accel"))
    assert (feeding.fed, feeding.unknown) == (4, 4)
    assert "Whether direct feeds 4 GPUs is not known" in need_sentence(path)


def test_a_rate_that_is_said_outright_holds_for_any_accelerator():
    path, feeding = fed(machine("needs: eager", first="accel", second="mi300x"))
    assert path.rate == pytest.approx(80 * GB)
    assert feeding.fed == 8
    assert feeding.room == 12  # 100 / 8
    assert feeding.kinds[0].rate.kind == "quoted"


def test_a_workload_says_what_its_gpus_are():
    _, feeding = fed(machine("needs: retinanet, accelerators: b200", first="accel"))
    assert [(kind.accelerator, kind.count) for kind in feeding.kinds] == [("b200", 8)]
    assert feeding.kinds[0].rate.value == pytest.approx(322957 * 24 / 0.04755)


@pytest.mark.parametrize("words", ["20x h100", "10x h100 each"])
def test_accelerators_stand_behind_ram(words):
    path = compare(machine(f"needs: unet3d, accelerators: {words}", to="ram"), via=["odirect"])
    met = path["odirect"].met
    assert isinstance(met, Feeding)
    assert met.count == 20
    assert met.fed == 20
    assert path["odirect"].rate == pytest.approx(20 * H100)


@pytest.mark.parametrize("words", ["8", "4 each"])
def test_where_a_rate_is_stated_those_behind_ram_need_no_name(words):
    path = compare(machine(f"needs: eager, accelerators: {words}", to="ram"), via=["odirect"])
    met = path["odirect"].met
    assert isinstance(met, Feeding)
    assert met.count == 8


def test_a_data_set_of_a_size_takes_as_long_as_its_accelerators_do():
    path, feeding = fed(machine("read: 640 GB, needs: unet3d"))
    assert path.time == pytest.approx(640e9 / (8 * H100))
    assert feeding.fed == 8


def test_expectations_judge_how_many_are_fed():
    slow = "{part: target, read: 16 GB/s}"
    lines = ("train via direct feeds 5", "train via direct feeds 6")
    judgements = check(machine(storage=slow, expect=lines))
    assert [judgement.holds for judgement in judgements] == [True, False]
    # past an unknown capacity nothing is promised
    unknown = machine(storage="{part: target, read: unknown}", expect=lines[:1])
    assert [judgement.holds for judgement in check(unknown)] == [False]


# --- checkpoints ----------------------------------------------------------------------------------


def save(words="", *, via="direct"):
    text = MACHINE.replace("FIRST", "h100").replace("SECOND", "h100").replace("STORAGE", "target")
    text = text.replace("to: gpu}", "to: gpu}\n  save: {checkpoint: llama3-70b, SAID}")
    text = text.replace("NEED", "needs: unet3d")
    said = f"{words}, " * bool(words) + "from: gpu, to: storage"
    path = compare(built(text.replace("SAID", said)), workload="save", via=[via])[via]
    assert isinstance(path.met, Checkpointing)
    return path, path.met


def test_the_best_interval_loses_as_much_by_writing_as_by_failures():
    path, costs = save("accelerators: 1024")
    assert path.size == 912e9
    assert costs.write == path.time == pytest.approx(912 / 80)
    assert costs.mtbf == pytest.approx(50_000 * 3600 / 1024)
    assert costs.interval == pytest.approx(math.sqrt(2 * costs.write * costs.mtbf))
    assert costs.writing == pytest.approx(costs.repeating)
    assert costs.lost == pytest.approx(86400 * math.sqrt(2 * costs.write / costs.mtbf))
    # no other interval loses less
    for factor in (0.5, 0.9, 1.1, 2.0):
        other = costs.interval * factor
        assert costs.write / other + other / 2 / costs.mtbf > costs.lost / 86400


def test_the_gpus_that_write_are_those_that_fail_unless_somebody_says_another_number():
    assert save()[1].accelerators == 8
    assert save("accelerators: 16384x h100")[1].accelerators == 16384
    assert save("mttf: 1000 h")[1].mtbf == pytest.approx(1000 * 3600 / 8)
    assert save("mttf: 1000 h")[1].mttf.source.endswith(":36")


def test_the_rule_does_not_hold_where_a_write_is_as_long_as_failures_are_apart():
    path, costs = save("accelerators: 1000000, mttf: 2 h")
    assert not costs.rule_holds
    assert costs.lost <= 86400
    assert "it is not" in need_sentence(path)


def test_mlcommons_figure_is_what_meta_saw():
    """419 unexpected interruptions in 54 days of 16,384 GPUs: arXiv:2407.21783, section 3.3.4."""
    _, costs = save("accelerators: 16384")
    assert costs.mtbf == pytest.approx(54 * 86400 / 419, rel=0.02)


# --- KV caches ------------------------------------------------------------------------------------


def test_a_kv_cache_has_the_bytes_of_its_tokens():
    text = MACHINE.replace("NEED, from: storage", "kv-cache: llama3-70b, tokens: 128Ki, from: ram")
    for word in ("FIRST", "SECOND"):
        text = text.replace(word, "h100")
    path = compare(built(text.replace("STORAGE", "target")), via=["pinned"])["pinned"]
    assert isinstance(path.met, Moved)
    assert path.size == 2 * 80 * 8 * 128 * 2 * 131072
    assert path.met.tokens == 131072
    assert "131,072 tokens of llama3-70b" in need_sentence(path)


@pytest.mark.parametrize(
    ("model", "size"),
    [
        ("llama3-8b", 131_072),
        ("llama3-405b", 516_096),
        ("qwen3-235b-a22b", 192_512),
        ("deepseek-v3", 70_272),  # a compressed vector instead of keys and values
    ],
)
def test_bytes_of_a_token(model, size):
    token = needs()[model].token
    assert token is not None
    assert token.value == size


# --- together -------------------------------------------------------------------------------------


def test_what_has_no_end_runs_until_all_others_are_done():
    text = MACHINE.replace("NEED", "needs: unet3d").replace("FIRST", "h100")
    text = text.replace("SECOND", "h100").replace("STORAGE", "target")
    text += "  load: {read: 640 GB, from: storage, to: gpu}\n"
    simulation = simulate(built(text), via="direct")
    # training takes what it asks for, the load the rest
    rest = 100 * GB - 8 * H100
    assert simulation["load"].finish == pytest.approx(640 * GB / rest)
    assert simulation["train"].finish == simulation.end == simulation["load"].finish
    assert simulation["train"].goes_on
    assert simulation.certified
    with pytest.raises(DescriptionError, match="nothing here ends"):
        simulate(machine(), via="direct")


def test_the_ladder_of_what_is_fed_has_no_rung():
    ladder = bottleneck(machine(), workload="train", via="direct")
    assert ladder.rungs == ()
    assert ladder.end.why == "own-limits"
    ladder = bottleneck(machine(storage="{part: target, read: 16 GB/s}"), via="direct")
    assert [full.name for full in ladder.rungs[0].resources] == ["storage/read"]


# --- upgrades, questions, files -------------------------------------------------------------------


def test_a_change_feeds_so_many_more():
    slow = machine(storage="{part: target, read: 16 GB/s}")
    ranking = upgrades(slow, workload="train", via="direct")
    assert ranking.now.met is not None
    assert (ranking.now.met.fed, ranking.now.met.count) == (5, 8)
    ranking = upgrades(machine(), workload="train", via="direct")
    assert ranking.now.met is not None
    assert ranking.now.met.room == 34
    assert "storage-read" in {full.kind for full in ranking.now.bound}
    unlimited = machine(storage="{part: target, read: unlimited}")
    best = upgrades(unlimited, workload="train", via="direct").ranked[0]
    assert best.outcome.met is not None
    assert best.outcome.met.supply > 100 * GB


def test_any_machine_is_asked_what_would_feed_more():
    text = MACHINE.replace("STORAGE", "{part: target, read: 16 GB/s}")
    text = text.replace("FIRST", "h100").replace("SECOND", "h100")
    without = built(text[: text.index("workloads:")])
    ranking = upgrades(without, needs="unet3d", via="direct")
    assert ranking.workloads[0].name == "unet3d"
    assert ranking.now.met.fed == 5
    with pytest.raises(UnknownNameError, match="unet3"):
        upgrades(without, needs="unet3")


def test_a_question_names_a_model():
    topology = machine()
    workload = ask_need(topology, "eager")
    path = compare(topology, workload=workload, via=["direct"])["direct"]
    assert isinstance(path.met, Feeding)
    assert path.met.fed == 8
    with pytest.raises(UnknownNameError, match="no model `unet3` is known"):
        ask_need(topology, "unet3")
    with pytest.raises(DescriptionError, match="nobody says what llama3-8b reads"):
        ask_need(topology, "llama3-8b")
    with pytest.raises(DescriptionError, match="computes on GPUs, and ram0 is none"):
        ask_need(topology, "unet3d", "storage", "ram0")


def test_needs_are_written_back():
    text = MACHINE.replace("FIRST", "h100").replace("SECOND", "h100").replace("STORAGE", "target")
    text = text.replace("NEED", "read: 640 GB, needs: ours, accelerators: a100")
    ours = "  ours: {like: unet3d, step: {a100: {value: 1 s, kind: guess}}}\n"
    text = text.replace("needs:\n", f"needs:\n{ours}", 1)
    text += (
        "  save: {checkpoint: llama3-70b, accelerators: 64, mttf: 10 h, from: gpu, to: storage}\n"
    )
    text += "  cache: {kv-cache: llama3-8b, tokens: 7, from: ram, to: gpu}\n"
    text += "  hosts: {needs: eager, accelerators: 2x h100 each, from: storage, to: ram}\n"
    description = built(text).description
    again = build(to_document(description)).description

    def said(of_file):
        needs = {
            name: ({key: figure.value for key, figure in need.figures.items()}, [*need.steps])
            for name, need in of_file.needs.items()
        }
        workloads = [
            (each.size, each.sized, each.direction, each.need.asks, each.need.model.name)
            + (each.need.tokens, each.need.accelerators, each.need.accelerator)
            + ((each.need.mttf.value,) if each.need.mttf else ())
            for each in of_file.workloads
        ]
        return needs, workloads

    assert said(again) == said(description)


def test_a_checkpoint_is_asked_of_any_machine():
    topology = machine()
    workload = ask_need(topology, "llama3-8b", asks="checkpoint")
    assert (workload.direction, workload.sources[0], workload.targets) == (
        "write",
        "gpu0",
        ("storage",),
    )
    path = compare(topology, workload=workload, via=["direct"])["direct"]
    assert isinstance(path.met, Checkpointing)
    assert (path.met.accelerators, path.met.write) == (8, path.time)
    assert path.size == 105 * GB
    back = ask_need(topology, "llama3-8b", "storage", "gpu", asks="checkpoint")
    path = compare(topology, workload=back, via=["direct"])["direct"]
    assert isinstance(path.met, Moved)
    with pytest.raises(DescriptionError, match="how large a checkpoint of unet3d is"):
        ask_need(topology, "unet3d", asks="checkpoint")
    with pytest.raises(DescriptionError, match="GPUs write the checkpoint, and ram0 is none"):
        ask_need(topology, "llama3-8b", "ram0", "storage", asks="checkpoint")


def test_a_checkpoint_out_of_ram_says_how_many_accelerators_may_fail():
    need = "checkpoint: llama3-8b"
    text = "train: {NEED, from: storage, to: gpu}"
    assert text in MACHINE
    out_of_ram = MACHINE.replace(text, "train: {NEED, from: ram, to: storage}")
    out_of_ram = out_of_ram.replace("FIRST", "h100").replace("SECOND", "h100")
    out_of_ram = out_of_ram.replace("STORAGE", "target")
    with pytest.raises(DescriptionError, match="nothing says how many accelerators"):
        built(out_of_ram.replace("NEED", need))
    topology = built(out_of_ram.replace("NEED", f"{need}, accelerators: 8"))
    path = compare(topology, via=["odirect"])["odirect"]
    assert isinstance(path.met, Checkpointing)
    assert path.met.accelerators == 8


def test_one_accelerator_that_fails_is_not_one_of_one():
    workload = ask_need(machine(), "llama3-8b", "gpu0", "storage", asks="checkpoint")
    path = compare(machine(), workload=workload, via=["direct"])["direct"]
    assert "An accelerator fails every 5.7" in need_sentence(path)


def test_a_change_writes_checkpoints_faster():
    ranking = upgrades(machine(), checkpoint="llama3-8b", via="direct")
    assert ranking.workloads[0].direction == "write"
    assert isinstance(ranking.now.met, Checkpointing)
    best = ranking.ranked[0].outcome
    assert isinstance(best.met, Checkpointing)
    assert best.met.lost <= ranking.now.met.lost


def test_a_change_is_ranked_between_two_ends_by_rate():
    ranking = upgrades(machine(), source="storage", target="gpu0", via="direct")
    assert ranking.now.rate == 50 * GB
    assert ranking.now.words == "50 GB/s"
    assert {upgrade.outcome.rate for upgrade in ranking.ranked} >= {50 * GB}


def test_failures_say_how_many_are_still_fed():
    result = failures(machine(), workload=ask_need(machine(), "unet3d"), via="direct")
    left = {loss.parts[0].first: loss for loss in result.losses}
    assert left["storage"].fed == 0
    assert left["nic0"].fed == 8  # the other card has enough for all
    gpu = next(loss for name, loss in left.items() if name.startswith("gpu0 -- "))
    assert (gpu.fed, gpu.stopped_count) == (7, 1)
    assert [limit.model for limit in gpu.own_limits] == ["unet3d"]


def test_the_ladder_ends_with_what_the_model_asks_for():
    ladder = bottleneck(machine(), workload="train", via="direct")
    assert ladder.end.why == "own-limits"
    assert [limit.model for limit in ladder.end.own_limits] == ["unet3d"]


@pytest.mark.parametrize(
    ("question", "faster"), [({"checkpoint": "llama3-8b"}, 2), ({"source": "storage"}, 1)]
)
def test_another_storage_is_a_change_where_no_workload_of_the_file_is_asked(question, faster):
    text = MACHINE.replace("STORAGE", "{part: target, read: 16 GB/s, write: 16 GB/s}")
    text = text.replace("FIRST", "h100").replace("SECOND", "h100")
    text = text.replace("nic[0-1]: card", "nic[0-1]: {part: card, ports: 2x infiniband ndr}")
    ranking = upgrades(built(text[: text.index("workloads:")]), via="direct", **question)
    times = {upgrade.parts[0].kind: upgrade.outcome.time for upgrade in ranking.ranked}
    # `storage` is one device: who asks about that alone has no more of another
    assert ranking.now.time == pytest.approx(faster * times["another-storage"])


@pytest.mark.parametrize("asks", ["needs", "checkpoint"])
def test_a_machine_without_gpus_is_told_how_to_say_what_stands_behind_its_ram(asks):
    model = {"needs": "unet3d", "checkpoint": "llama3-8b"}[asks]
    text = f"{PARTS}\ndevices: {{storage: target, nic0: card, cpu0: socket, ram0: dram}}"
    text += """
links:
  - storage -- nic0: infiniband ndr
  - nic0 -- cpu0: pcie 5 x16
  - ram0 -- cpu0: memory-bus
"""
    with pytest.raises(DescriptionError, match="tiny has none") as refused:
        ask_need(loads(text), model, asks=asks)
    words = refused.value.findings[0].help.partition("`")[2].rstrip("`")
    asked = loads(f"{text}workloads: {{asked: {words}}}")
    assert compare(asked, workload="asked")["odirect"].met is not None
