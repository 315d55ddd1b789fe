"""Sweeps: what a design is, that the quick way is the full way, and which designs are best."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.machines import ONE_SOCKET, PARTS, TWO_SOCKETS, built, shipped
from tests.random_machines import sketches
from topo.description.description import Axis, Choice
from topo.errors import TopoError
from topo.routes.route import Policy
from topo.study.compare import compare
from topo.study.designs import RATES, Designs
from topo.study.front import sweep, swept
from topo.study.question import ask_need
from topo.study.sweep import MOST_DESIGNS, QUESTIONS, axis_of, planned, split_values
from topo.study.variants import Outcome, Question
from topo.topology.topology import Topology


def plan(topology, vary, **question):
    return planned(topology, [axis_of(*item) for item in vary.items()], Question(**question))


def answered(plan, *, quick=True):
    designs = Designs(plan, quick=quick)
    batches = list(designs.batches(range(plan.count)))
    assert sorted(number for batch in batches for number in batch) == list(range(plan.count))
    return dict(pair for batch in batches for pair in designs.outcomes(batch))


def by_compare(plan, number):
    """Return what `compare` says of a design: an implementation that knows no sweep."""
    choices = plan.design(number)
    question = plan.asked_of(choices)
    topology = plan.topology.replace(plan.changes_of(choices))
    (answer,) = compare(
        topology,
        workload=question.workload or topology.description.workloads[0].name,
        via=(question.via,),
        at=question.at,
        policy=question.policy,
    ).workloads
    return answer[question.via]


def agrees(outcome, path):
    return (outcome.verdict, outcome.rate, outcome.time, outcome.at_most) == (
        *(path.verdict, path.rate, path.time, path.at_most),
    )


# --- designs --------------------------------------------------------------------------------------


def test_the_last_axis_is_the_fastest():
    sweep = plan(built(ONE_SOCKET), {"ram.bus": ["1 GB/s", "2 GB/s"], "via": ["legacy", "direct"]})
    labels = [tuple(choice.label for choice in sweep.design(n)) for n in range(sweep.count)]
    assert labels == [
        *[("1 GB/s", "legacy"), ("1 GB/s", "direct"), ("2 GB/s", "legacy"), ("2 GB/s", "direct")]
    ]


def test_a_design_is_what_compare_says_with_the_same_changes():
    machine = shipped("dgx-h100")
    sweep = plan(
        machine,
        {
            "slot1.part": ["connectx-7-dual-port", "connectx-8-dual-port"],
            "ram.channels": ["2", "8"],
            "via": ["legacy", "direct", "legacy-pageable"],
            "workload": ["load", "checkpoint"],
            "at": ["theoretical", "achievable"],
        },
    )
    for number, outcome in answered(sweep).items():
        assert agrees(outcome, by_compare(sweep, number)), sweep.design(number)


def test_a_pod_of_used_machines_is_swept():
    pod = built(
        """
topo: 1
devices:
  node[0-1]: {use: dgx-h100}
  leaf: quantum-2
  storage: {part: nvme-of-target, ports: 4, read: 90 GB/s, write: 60 GB/s}
links:
  - node.slot1 -- leaf: infiniband ndr
  - node.slot2 -- leaf: infiniband ndr
  - storage -- leaf: 4x infiniband ndr
workloads:
  load: {read: 80 GB each, from: storage, to: node.gpu}
"""
    )
    sweep = plan(
        pod,
        {
            "node[0-1].gpu.part": ["h100-sxm-80gb", "h200-sxm-141gb"],
            "node1.ram.channels": ["1", "8"],
            "node1.slot1.chip": ["10 GB/s", "50 GB/s"],
        },
        via="legacy",
    )
    outcomes = answered(sweep)
    assert outcomes == answered(sweep, quick=False)
    assert all(agrees(outcome, by_compare(sweep, n)) for n, outcome in outcomes.items())
    assert len({outcome.time for outcome in outcomes.values()}) > 2


def test_ends_are_asked_about_instead_of_a_workload():
    sweep = plan(
        built(ONE_SOCKET), {"ram.bus": ["20 GB/s", "200 GB/s"]}, source="ram", target="gpu"
    )
    slow, fast = answered(sweep).values()
    assert (slow.rate, slow.time) == (20e9, None)
    assert fast.rate > slow.rate


# --- the quick way --------------------------------------------------------------------------------

_RATES = ("5 GB/s", "20 GB/s", "50 GB/s", "400 GB/s", "unknown", "0 GB/s")
_OF_LINKS = ("5 GB/s", "20 GB/s", "25.000000001 GB/s", "25 GB/s", "50 GB/s", "63 GB/s", "unknown")
_VALUES = {
    "ram.bus": (*_RATES, "unlimited"),
    "ram0.bus": (*_RATES, "unlimited"),
    "nic.chip": _RATES,
    "nic0.chip": _RATES,
    "nic0.efficiency": ("50 %", "90 %"),
    "nic0.duplex": ("60 %", "90 %"),
    "storage.read": _RATES,
    "storage.write": _RATES,
    "cpu.copy": _RATES,
    "cpu.core-copy": ("1 GB/s", "12 GB/s"),
    "cpu0.cores": ("2", "64"),
    "gpu.hbm": ("10 GB/s", "3000 GB/s"),
    "nic0.price": ("0", "1800", "0.1"),
    "ram.price": ("0.2", "400"),
    "gpu0.pcie": ("4 x16", "5 x8"),
    "via": ("legacy", "direct", "legacy-pageable", "serial"),
    "workload": ("load", "save"),
    "at": QUESTIONS["at"],
    "nics": QUESTIONS["nics"],
    "pairing": QUESTIONS["pairing"],
}
SERIAL = """
data-paths:
  serial:
    moves:
      - storage -> kernel-buffer by nic
      - kernel-buffer -> user-buffer by core
      - user-buffer -> gpu by gpu
    stages: serial
    workers: 2
"""


@st.composite
def varied(draw):
    """Draw a machine and some axes over it, of at most 64 designs."""
    machine = built(draw(sketches()).text() + SERIAL)
    stems = {name.rstrip("0123456789") for name in machine.devices}
    links = {f"{link.name}.rate": _OF_LINKS for link in machine.links if link.layer != "memory"}
    workloads = [workload.name for workload in machine.description.workloads]
    possible = {
        key: values
        for key, values in {**_VALUES, "workload": tuple(workloads)}.items()
        if key in QUESTIONS or {key.partition(".")[0].rstrip("0123456789")} <= stems
    }
    keys = st.sampled_from(sorted(possible))
    if links and draw(st.booleans()):
        possible |= links
        keys = keys | st.sampled_from(sorted(links))
    names = draw(st.lists(keys, min_size=1, max_size=4, unique=True))
    vary, count = {}, 1
    for name in names:
        most = min(4, 64 // count)
        values = draw(
            st.lists(st.sampled_from(possible[name]), min_size=1, max_size=most, unique=True)
        )
        vary[name], count = values, count * len(values)
    return machine, vary


@settings(max_examples=60)
@given(varied(), st.data())
def test_the_quick_way_is_the_full_way_to_the_last_digit(drawn, data):
    machine, vary = drawn
    try:
        sweep = plan(machine, vary)
    except TopoError:  # a device of that number is not there
        return
    quick, full = answered(sweep), answered(sweep, quick=False)
    assert quick == full
    number = data.draw(st.integers(0, sweep.count - 1))
    if "via" in vary and quick[number].rate is not None:
        assert agrees(quick[number], by_compare(sweep, number))


@pytest.mark.parametrize(
    "vary",
    [
        # of one device, and of all of its kind
        {"ram.channels": ["2", "8"], "ram0.channels": ["1", "8"], "ram1.transfer-rate": ["2 GT/s"]},
        # legal one by one, illegal together: a CPU has 8 channels
        {"cpu1.memory-channels": ["6", "8"], "ram.channels": ["4", "7", "8"]},
        # a copy is like its model, as that is changed
        {
            "slot3": ["slot1"],
            "slot1.chip": ["9 GB/s", "50 GB/s"],
            "slot3.chip": ["7 GB/s", "50 GB/s"],
        },
        {"ram.dimms-per-channel": ["1", "2"], "ram.transfer-rate-2dpc": ["1 GT/s", "4 GT/s"]},
        {"slot1.chip": ["1 GB/s", "50 GB/s"], "slot1 -- cpu1": ["slot1 -- cpu0", "slot1 -- cpu1"]},
        # of two changes of one thing the later axis' holds, whichever changes more
        {
            "slot1.chip": ["1 GB/s", "50 GB/s"],
            "slot.label": ["a"],
            "slot.chip": ["2 GB/s", "9 GB/s"],
        },
        {"slot1.chip": ["1 GB/s", "50 GB/s"], "nics": ["nearest", "best", "stripe"]},
        # rates of links: of one and of several, beside a chip and each other
        {
            "slot1 -- cpu1.rate": ["10 GB/s", "63 GB/s", "unknown"],
            "slot1.chip": ["9 GB/s", "50 GB/s"],
            "cpu0 -- cpu1.rate": ["5 GB/s", "100 GB/s"],
        },
        {"slot1 -- cpu1.rate": ["10 GB/s", "40 GB/s"], "slot1 -- cpu1": ["slot1 -- cpu0"]},
        {"storage -- slot1.rate": ["10 GB/s", "40 GB/s"], "storage.read": ["30 GB/s", "90 GB/s"]},
        {"slot2 -- cpu0.rate": ["10 GB/s", "40 GB/s"], "at": ["theoretical", "achievable"]},
    ],
    ids=" and ".join,
)
def test_so_it_is_where_axes_meet(vary):
    sweep = plan(shipped("dgx-h100"), {**vary, "via": ["legacy", "direct"]})
    assert answered(sweep) == answered(sweep, quick=False)


@pytest.mark.parametrize("first", [True, False])
def test_the_later_of_two_axes_holds(first):
    rates = Axis("one", tuple(Choice(f"{n}", {"slot1.chip": f"{n} GB/s"}) for n in (5, 40)))
    more = Axis("more", (Choice("x", {"slot.chip": "20 GB/s", "slot.duplex": "80 %"}),))
    axes = [rates, more] if first else [more, rates]
    sweep = planned(shipped("dgx-h100"), axes, Question(via="direct"))
    outcomes = answered(sweep)
    assert outcomes == answered(sweep, quick=False)
    assert len({outcome.rate for outcome in outcomes.values()}) == (1 if first else 2)


def test_one_axis_may_change_machine_and_question():
    axis = Axis(
        "both",
        (
            Choice("a", {"via": "legacy", "ram.bus": "50 GB/s", "nics": "stripe"}),
            Choice("b", {"via": "direct", "ram.bus": "60 GB/s"}),
        ),
    )
    chips = axis_of("nic0.chip", ["40 GB/s", "50 GB/s"])
    sweep = planned(built(ONE_SOCKET), [axis, chips], Question())
    outcomes = answered(sweep)
    assert outcomes == answered(sweep, quick=False)
    assert [outcome.via for outcome in outcomes.values()] == ["legacy"] * 2 + ["direct"] * 2
    assert all(agrees(outcome, by_compare(sweep, n)) for n, outcome in outcomes.items())


def test_two_memories_of_one_cpu_have_its_channels_together():
    # each is legal beside the 2 of the other, and both together are 12 of 8
    text = ONE_SOCKET.replace("ram0: dram", "ram[0-1]: {part: ddr5-4800, channels: 2}")
    text = text.replace("ram0 -- cpu0", "ram -- cpu0").replace("cpu0: socket", "cpu0: xeon-8480c")
    sweep = plan(built(text), {"ram0.channels": ["2", "6"], "ram1.channels": ["2", "6"]})
    outcomes = answered(sweep)
    assert outcomes == answered(sweep, quick=False)
    verdicts = [outcome.verdict for outcome in outcomes.values()]
    assert verdicts == ["ok", "ok", "ok", "illegal"]


def test_serial_workers_are_as_fast_as_what_they_pass():
    text = ONE_SOCKET + SERIAL.replace("workers: 2", "workers: 1")
    sweep = plan(built(text), {"ram.bus": ["40 GB/s", "60 GB/s"]}, via="serial")
    outcomes = answered(sweep)
    assert outcomes == answered(sweep, quick=False)
    assert len({outcome.rate for outcome in outcomes.values()}) == 2
    assert {outcome.limited_by for outcome in outcomes.values()} == {"its workers"}


def test_the_nearest_of_two_is_the_faster():
    text = ONE_SOCKET.replace("storage: target", "drive[0-1]: drive").replace(
        "storage -- nic0: infiniband ndr", "drive[0-1] -- cpu0: pcie 4 x4"
    )
    text = text.replace("  nic0: card\n", "").replace("  - nic0 -- cpu0: pcie 5 x16\n", "")
    text = text[: text.index("workloads:")]
    text += "workloads: {load: {read: 50 GB, from: drive, to: gpu0, pairing: nearest}}\n"
    vary = {"drive0.read": ["1 GB/s", "7.5 GB/s"], "ram.bus": ["100 GB/s", "200 GB/s"]}
    sweep = plan(built(text), vary, via="legacy")
    outcomes = answered(sweep)
    assert outcomes == answered(sweep, quick=False)
    assert [outcome.rate for outcome in outcomes.values()] == [7e9, 7e9, 7.5e9, 7.5e9]


def test_what_a_link_carries_both_ways_is_more_than_a_rate_of_its_device():
    text = ONE_SOCKET.replace("gpu0: accel", "gpu[0-1]: accel").replace(
        "gpu0 -- cpu0", "gpu -- cpu0"
    )
    text = text.replace("to: gpu0", "to: gpu").replace("from: gpu0", "from: gpu")
    text += "  swap: {copy: 9 GB, from: gpu, to: gpu}\n"
    question = {"workload": "swap", "via": "peer-pcie", "at": "achievable"}
    sweep = plan(built(text), {"gpu.duplex": ["60 %", "90 %"], "gpu.hbm": ["3 TB/s"]}, **question)
    outcomes = answered(sweep)
    assert outcomes == answered(sweep, quick=False)
    assert len({outcome.rate for outcome in outcomes.values()}) == 2


@pytest.mark.parametrize(
    ("machine", "figures", "count"),
    [
        ("gds-textbook", ("ram.bus", "slot1.chip"), 30),
        # the order of the two links is one more: the first is always wider
        ("dgx-h100", ("slot2 -- cpu0.rate", "slot1 -- cpu1.rate"), 31),
    ],
)
def test_rates_alone_build_each_value_once(monkeypatch, machine, figures, count):
    starts = zip((*figures, "storage.read"), (100, 30, 60), strict=True)
    vary = {key: [f"{n} GB/s" for n in range(start, start + 10)] for key, start in starts}
    sweep = plan(shipped(machine), vary, via="legacy")
    built_again: list[object] = []
    replace = Topology.replace

    def counted(self, changes):
        built_again.append(changes)
        return replace(self, changes)

    monkeypatch.setattr(Topology, "replace", counted)
    assert len(answered(sweep)) == 1000
    assert len(built_again) == count


# Two cards as near as each other: the one with the wider way to the GPU is taken.
TWO_CARDS = (
    PARTS
    + """
devices:
  storage: target
  nic[0-1]: card
  cpu0: socket
  ram0: dram
  gpu0: accel
links:
  - storage -- nic: infiniband ndr
  - nic -- cpu0: pcie 5 x16
  - gpu0 -- cpu0: pcie 5 x16
  - ram0 -- cpu0: memory-bus
workloads:
  load: {read: 50 GB, from: storage, to: gpu0}
"""
)


def test_the_wider_of_two_ways_is_taken_in_each_design():
    vary = {
        "nic0 -- cpu0.rate": [f"{n} GB/s" for n in (20, 35, 40, 45)],
        "nic1 -- cpu0.rate": [f"{n} GB/s" for n in (10, 30, 42, 45)],
    }
    sweep = plan(built(TWO_CARDS), vary, via="direct")
    outcomes = answered(sweep)
    assert outcomes == answered(sweep, quick=False)
    rates = [outcome.rate / 1e9 for outcome in outcomes.values()]
    assert rates[:-1] == [*(20, 30, 42, 45), *(35, 35, 42, 45), *(40, 40, 42, 45), *(45, 45, 45)]
    assert rates[-1] == pytest.approx(63.015, rel=1e-4)  # both are as wide, and share


def test_links_beside_each_other_share_by_their_rates():
    text = TWO_SOCKETS.replace("cpu[0-1]: socket", "cpu[0-1]: {part: socket, numa: [0-1, 2-3]}")
    text = text.replace(
        "cpu0 -- cpu1: upi 16 GT/s",
        "cpu0/numa0 -- cpu1/numa2: upi 16 GT/s\n  - cpu0/numa1 -- cpu1/numa3: upi 16 GT/s",
    )
    text = text.replace("ram -- cpu:", "ram0 -- cpu0/numa0: memory-bus\n  - ram1 -- cpu1/numa2:")
    vary = {"cpu0/numa1 -- cpu1/numa3.rate": ["5 GB/s", "15 GB/s", "25 GB/s"]}
    sweep = plan(built(text), vary, workload="far", via="legacy")
    outcomes = answered(sweep)
    assert outcomes == answered(sweep, quick=False)
    assert [outcome.rate for outcome in outcomes.values()] == [37e9, 47e9, 50e9]


@pytest.mark.parametrize("figure", sorted(RATES - {"price"}))
def test_what_changes_rates_alone_is_a_figure_of_a_part(figure):
    from topo.catalogue.fields import FIGURE_KEYS

    assert figure in FIGURE_KEYS


# --- what cannot be -------------------------------------------------------------------------------


def test_illegal_designs_are_rows_with_the_reason():
    sweep = plan(
        shipped("gds-textbook"),
        {"slot1.part": ["connectx-7-dual-port", "connectx-6"], "ram.channels": ["8"]},
    )
    legal, illegal = answered(sweep).values()
    assert legal.verdict == "ok"
    assert (illegal.verdict, illegal.rate) == ("illegal", None)
    assert illegal.reason == "slot1 has 1 port, and here are 2 cables"


def test_a_refused_design_is_a_row_with_the_reason():
    sweep = plan(shipped("gds-textbook"), {"gpu.p2p": ["yes", "no"]}, via="direct")
    possible, refused = answered(sweep).values()
    assert (possible.verdict, refused.verdict) == ("ok", "refused")
    assert "peer-to-peer" in refused.reason


@pytest.mark.parametrize(
    ("vary", "code", "words"),
    [
        ({}, "empty-axis", "nothing is varied"),
        ({"ram.channels": []}, "empty-axis", "ram.channels has no values"),
        ({"ram.chanels": ["8"]}, "unknown-key", "`channels`"),
        ({"rma.channels": ["8"]}, "unknown-name", "rma"),
        ({"nic0.part": ["conectx-8"]}, "unknown-part", "connectx-8"),
        ({"ram.channels": ["eight"]}, "bad-number", "`eight`"),
        ({"storage.read": ["40"]}, "bare-number", "40 GB/s"),
        ({"via": ["direkt"]}, "unknown-data-path", "direct"),
        ({"workload": ["lod"]}, "unknown-name", "load"),
        ({"at": ["achieveable"]}, "unknown-word", "achievable"),
    ],
)
def test_a_mistake_of_an_axis_is_said_before_anything_is_computed(vary, code, words):
    with pytest.raises(TopoError) as caught:
        plan(built(ONE_SOCKET), vary)
    (finding,) = caught.value.findings
    assert finding.code == code
    assert words in f"{finding.message} {finding.help}"


def test_ten_to_the_nine_designs_are_refused_at_once():
    values = [f"{n} GB/s" for n in range(1, 1001)]
    vary = {"ram.bus": values, "nic0.chip": values, "storage.read": values}
    with pytest.raises(TopoError, match=f"1,000,000,000 designs, more than {MOST_DESIGNS:,}"):
        plan(built(ONE_SOCKET), vary)


def test_all_mistakes_come_at_once():
    with pytest.raises(TopoError) as caught:
        plan(built(ONE_SOCKET), {"ram.bus": ["40", "50"], "nic7.chip": ["1 GB/s"]})
    assert [finding.code for finding in caught.value.findings] == [
        *("bare-number", "bare-number", "unknown-name")
    ]


def test_a_value_that_another_axis_makes_possible_is_no_mistake():
    sweep = plan(shipped("dgx-h100"), {"slot3": ["slot1"], "slot3.chip": ["10 GB/s", "50 GB/s"]})
    assert sweep.count == 2


def test_commas_in_brackets_separate_nothing():
    assert split_values("[a, b],{c: 1, d: 2}, 'e,f' ,g") == (
        *("[a, b]", "{c: 1, d: 2}", "e,f", "g"),
    )


# --- what it costs, and what is best --------------------------------------------------------------

PRICED = ONE_SOCKET.replace("nic0: card", "nic0: {part: card, price: 100}").replace(
    "ram0: dram", "ram0: {part: dram, price: 0.5}"
)


def test_the_cost_is_the_sum_of_all_prices():
    (outcome,) = answered(plan(built(PRICED), {"ram.bus": ["200 GB/s"]})).values()
    assert outcome.cost == 100.5
    (outcome,) = answered(plan(built(ONE_SOCKET), {"ram.bus": ["200 GB/s"]})).values()
    assert outcome.cost is None


def test_so_does_a_machine_inside_another():
    text = """
topo: 1
devices:
  node[0-1]: {use: gds-textbook, set: {gpu.price: 5}}
  storage: {part: nvme-of-target, ports: 4, read: 90 GB/s, write: 60 GB/s, price: 1}
  leaf: quantum-2
links:
  - node.slot1 -- leaf: 2x infiniband ndr
  - storage -- leaf: 4x infiniband ndr
workloads:
  load: {read: 80 GB each, from: storage, to: node.gpu}
"""
    vary = {"node1.gpu.part": ["h100-sxm-80gb"], "node1.slot1.part": ["connectx-7-dual-port"]}
    gpus, cards = (plan(built(text), {key: value}) for key, value in vary.items())
    assert [outcome.cost for outcome in answered(gpus).values()] == [81.0]
    assert [outcome.cost for outcome in answered(cards).values()] == [None]


def test_a_part_without_a_price_leaves_the_cost_open():
    text = PRICED.replace("{part: card, price: 100}", "priced").replace(
        "parts:", "parts:\n  priced: {like: connectx-7, price: 7}\n  open: {like: connectx-7}"
    )
    priced, unpriced = answered(plan(built(text), {"nic0.part": ["priced", "open"]})).values()
    assert (priced.cost, unpriced.cost) == (7.5, None)


@pytest.mark.parametrize("text", ["1800 EUR", "-1", "1e16", "dear", "1,800"])
def test_a_price_is_a_plain_number(text):
    with pytest.raises(TopoError) as caught:
        built(PRICED.replace("price: 100", f"price: '{text}'"))
    assert [finding.code for finding in caught.value.findings] == ["bad-number"]


def of(*rows):
    """Return a sweep's result with these (cost, time), as if they had been found."""
    prices = [str(n) for n in range(len(rows))]
    plan_of_rows = plan(built(PRICED), {"ram.price": prices or ["0"]})
    outcomes = {
        n: Outcome("load", "direct", "ok", rate=1.0 / time, time=time, cost=cost, limited_by="x")
        for n, (cost, time) in enumerate(rows)
    }
    return swept(plan_of_rows, outcomes)


def test_the_front_is_what_nothing_beats_that_costs_no_more():
    found = of((3, 10), (1, 20), (2, 20), (2, 15), (4, 10), (3, 10), (9, 5))
    assert [each.number for each in found.front] == [1, 3, 0, 6]
    assert [each.alike for each in found.front] == [0, 0, 1, 0]


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=30))
def test_the_front_by_its_definition(rows):
    front = {each.number for each in of(*rows).front}
    best = {
        (cost, time)
        for cost, time in rows
        if not any(c <= cost and t <= time and (c, t) != (cost, time) for c, t in rows)
    }
    assert {rows[number] for number in front} == best
    assert len(front) == len(best)


def test_an_axis_from_python_has_numbers_or_one_value():
    assert axis_of("ram.channels", [8, 12]) == axis_of("ram.channels", ["8", "12"])
    assert axis_of("via", "direct") == axis_of("via", ["direct"])


def test_designs_are_held_against_an_axis_of_numbers():
    found = sweep(
        shipped("gds-textbook"),
        {"ram.bus": ["100 GB/s", "50 GB/s", "300 GB/s"]},
        via="legacy",
        against="ram.bus",
    )
    assert [(each.taken, each.outcome.time) for each in found.front] == [
        *((50e9, 25.6), (100e9, 12.8), (300e9, 6.4))
    ]


def test_what_has_no_order_is_said():
    machine, vary = shipped("gds-textbook"), {"via": ["legacy", "direct"]}
    with pytest.raises(TopoError, match="have no order"):
        sweep(machine, vary, against="via")
    with pytest.raises(TopoError, match="no axis `kost`"):
        sweep(machine, vary, against="kost")
    with pytest.raises(TopoError, match="no design has a cost"):
        sweep(machine, vary, against="cost")


def test_the_policy_is_varied_as_well():
    found = sweep(
        shipped("dgx-h100"), {"nics": ["nearest", "stripe"]}, policy=Policy(routes="first")
    )
    for number, outcome in found.outcomes.items():
        assert agrees(
            outcome,
            compare(
                found.sweep.topology,
                workload=outcome.workload,
                via=(outcome.via,),
                policy=found.sweep.asked_of(found.sweep.design(number)).policy,
            ).workloads[0][outcome.via],
        )


# --- fingerprints ---------------------------------------------------------------------------------


def test_a_fingerprint_is_of_the_whole_question():
    vary = {"ram.bus": ["1 GB/s", "2 GB/s"], "via": ["legacy", "direct"]}
    machine = built(ONE_SOCKET)
    same = plan(machine, vary).fingerprint
    assert plan(built(ONE_SOCKET), vary).fingerprint == same
    others = [
        plan(machine, {**vary, "ram.bus": ["1 GB/s", "3 GB/s"]}),
        plan(machine, dict(reversed(vary.items()))),
        plan(machine, vary, at="achievable"),
        plan(machine, vary, workload="save"),
        plan(machine, vary, policy=Policy(nics="stripe")),
        plan(machine.replace({"nic0.chip": "49 GB/s"}), vary),
        plan(machine.replace({"nic0.price": "49"}), vary),
        plan(built(ONE_SOCKET.replace("50 GB", "51 GB")), vary),
        plan(built(ONE_SOCKET.replace("iommu: off", "iommu: on")), vary),
        plan(machine, {"via": ["legacy", "direct"]}),
        plan(shipped("gds-textbook").without("gpu0"), {"via": ["legacy", "direct"]}),
        plan(shipped("gds-textbook"), {"via": ["legacy", "direct"]}),
    ]
    assert same not in {each.fingerprint for each in others}
    assert len({each.fingerprint for each in others}) == len(others)


def test_what_a_model_needs_ranks_by_what_all_could_have():
    vary = {"slot1.part": ["connectx-7-dual-port", "connectx-8-dual-port"]}
    vary |= {"ram.channels": ["4", "8"], "via": ["legacy", "direct"]}
    sweep = plan(shipped("dgx-h100"), vary, needs="unet3d")
    outcomes = answered(sweep)
    for number, outcome in outcomes.items():
        machine = sweep.topology.replace(sweep.changes_of(sweep.design(number)))
        asked = ask_need(machine, "unet3d")
        feeding = compare(machine, workload=asked, via=[outcome.via])[outcome.via].met
        assert outcome.would_feed == feeding.room
        assert outcome.rate == pytest.approx(feeding.supply)
    assert len({outcome.would_feed for outcome in outcomes.values()}) > 1
