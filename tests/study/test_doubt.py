"""How sure answers are: bands, tornado, ranges, and what a measurement settles."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import topo
from topo.catalogue.part import Figure
from topo.description.locating import builtin_names, builtin_text
from topo.flows.demands import System
from topo.solve.maxmin import max_min
from topo.study.answer import completion, shared
from topo.study.bands import Band, Uncertain, band_of, positions, value_at, values_at
from topo.study.doubt import LEVEL, Doubt, PathDoubt, doubt
from topo.study.question import ask, ask_collective, ask_need
from topo.topology.build import build_topology, load
from topo.topology.varying import Varying

MACHINES = ["gds-textbook", "dgx-h100", "dgx-a100", "kv-cache", "workstation-4gpu", "gds-loses"]

_BOX = """
topo: 1
name: box
devices:
  {filer}: {{part: nvme-of-target, ports: 2x infiniband ndr, read: {read}, outside: yes}}
  nic0: connectx-7-dual-port
  cpu0: xeon-8480c
  {ram}: {{part: ddr5-4800, channels: 2, efficiency: {ram_efficiency}}}
  gpu[0-1]: h100-pcie-80gb
links:
  - {filer} -- nic0: 2x infiniband ndr
  - nic0 -- cpu0: {{medium: pcie 5 x16, efficiency: {slot}}}
  - {ram} -- cpu0: memory-bus
  - gpu -- cpu0: pcie 5 x16
settings: {{iommu: off}}
workloads:
  load: {{read: 100 GB, from: {filer}, to: gpu}}
"""
_FIGURE = "{{value: {0}, range: {1} - {2}, kind: guess, source: here}}"


def _box(**words: str) -> topo.Topology:
    usual = {"filer": "filer", "ram": "ram0", "read": "40 GB/s", "slot": "89 %"}
    usual["ram_efficiency"] = "70 %"
    return topo.loads(_BOX.format(**usual | words))


def _ranged(value: float, low: float, high: float, unit: str) -> str:
    return _FIGURE.format(*(f"{number:.6g} {unit}" for number in (value, low, high)))


def _of(result: Doubt, path: str) -> PathDoubt:
    return next(answer for answer in result.answers if answer.answer.name == path)


# --- what is a band -------------------------------------------------------------------------------


def test_a_guess_is_half_to_one_and_a_half_and_a_stated_range_is_itself() -> None:
    guess = band_of("read", Figure(10e9, "guess", "x"))
    assert guess is not None
    assert (guess.low, guess.high, guess.stated) == (5e9, 15e9, False)
    stated = band_of("read", Figure(10e9, "measured", "x", range=(9e9, 10e9)))
    assert stated is not None
    assert (stated.low, stated.high, stated.stated) == (9e9, 10e9, True)


@pytest.mark.parametrize("kind", ["formula", "datasheet", "measured", "quoted"])
def test_what_is_no_guess_and_has_no_range_is_certain(kind: str) -> None:
    assert band_of("read", Figure(10e9, kind, "x")) is None  # type: ignore[arg-type]
    assert band_of("read", Figure(None, "guess", "x")) is None


def test_a_share_of_a_whole_stays_one() -> None:
    ratio = band_of("efficiency", Figure(0.8, "guess", "x"))
    duplex = band_of("duplex", Figure(0.9, "guess", "x"))
    assert ratio is not None
    assert duplex is not None
    assert (ratio.low, ratio.high) == (0.4, 1.0)
    assert (duplex.low, duplex.high) == (0.5, 1.0)


def test_every_guess_of_the_catalogue_on_a_way_has_a_width() -> None:
    for name in MACHINES:
        for band in doubt(load(name)).bands:
            assert 0 < band.low <= band.middle <= band.high
            assert band.low < band.high


@pytest.mark.parametrize("name", builtin_names())
def test_every_band_holds_its_figure(name: str) -> None:
    """A range that is in another unit than its figure would not: a share beside a rate, say."""
    comparison = topo.compare(load(name), at="achievable")
    for answer in comparison.workloads:
        for path in answer.paths:
            if path.matrix is None:
                continue
            for band in Uncertain(comparison.topology, path.matrix.resources, "achievable").bands:
                assert 0 < band.low <= band.middle <= band.high
                assert band.low < band.high


def test_switches_that_reduce_are_in_doubt_by_their_share() -> None:
    machine = load("dgx-h100").replace({"settings.nvlink-sharp": "on"})
    reduce = ask_collective(machine, "all-reduce", over="gpu[0-7]", size=8e9)
    answer = _of(doubt(machine, workload=reduce, via=["peer-nvlink"]), "peer-nvlink")
    (swing,) = answer.swings
    assert swing.high_rate == answer.answer.rate
    assert swing.low_rate == pytest.approx(swing.high_rate * 82 / 85)


# --- what models ask for --------------------------------------------------------------------------


def test_a_guessed_computation_time_is_a_band_of_what_a_model_asks_for() -> None:
    """MLPerf Storage has no time of 3D U-Net on a B200: half of an H100's is a guess."""
    machine = load("dell-xe9685l")
    need = ask_need(machine, "unet3d")
    answer = _of(doubt(machine, workload=need, via=["legacy"]), "legacy")
    (swing,) = answer.swings
    assert swing.band.owners == ("unet3d",)
    assert swing.band.figure.source == "146.6 MB x 7 / 162 ms"
    rate = 8 * 146.600628e6 * 7 / 0.162
    assert answer.answer.rate == pytest.approx(rate)
    assert (swing.low_rate, swing.high_rate) == pytest.approx((0.5 * rate, 1.5 * rate))
    published = load("dgx-h100")
    assert _of(doubt(published, workload=ask_need(published, "unet3d")), "legacy").certain


def test_the_range_of_a_computation_time_is_one_of_the_rate() -> None:
    words = "{value: 0.3 s, range: 0.2-0.4 s, source: three runs}"
    text = builtin_text("gds-textbook").replace(
        "\ndevices:", f"\nneeds:\n  ours: {{like: unet3d, step: {{h100: {words}}}}}\ndevices:", 1
    )
    machine = topo.loads(text)
    answer = _of(doubt(machine, workload=ask_need(machine, "ours"), via=["direct"]), "direct")
    (swing,) = answer.swings
    slow, fast = (8 * 146.600628e6 * 7 / seconds for seconds in (0.4, 0.2))
    assert (swing.low_rate, swing.high_rate) == pytest.approx((slow, fast))
    assert swing.band.stated


# --- other figures without new routes -------------------------------------------------------------


@pytest.mark.parametrize("name", [*MACHINES, "pod-32"])
@pytest.mark.parametrize("at", ["theoretical", "achievable", "measured"])
def test_capacities_of_the_figures_as_they_are_are_those_of_the_machine(name: str, at: str) -> None:
    comparison = topo.compare(load(name), at=at)  # type: ignore[arg-type]
    for answer in comparison.workloads:
        for path in answer.paths:
            if path.matrix is None:
                continue
            varying = Varying(comparison.topology, path.matrix.resources)
            made = varying.capacities(lambda _key, figure, _owner: figure)
            for number, resource in zip(varying.classes, path.matrix.resources, strict=True):
                assert made[number] == resource.capacity or resource.kind == "workload-limit"


@pytest.mark.parametrize(
    ("machine", "change", "key", "end"),
    [
        ("dgx-h100", {"ram.efficiency": "60 %"}, "efficiency", "low"),
        ("dgx-h100", {"ram.efficiency": "75 %"}, "efficiency", "high"),
        ("workstation-4gpu", {"nvme.read": "14.5 GB/s"}, "read", "high"),
    ],
)
@pytest.mark.parametrize("path", ["legacy"])
def test_a_swing_is_what_the_machine_with_that_figure_answers(
    machine: str, change: dict[str, str], key: str, end: str, path: str
) -> None:
    """The routes are not laid anew; a machine that is read anew says the same."""
    answer = _of(doubt(load(machine), workload="load"), path)
    (swing,) = (
        swing
        for swing in answer.swings
        if swing.band.key == key and "pcie 5" not in swing.band.owners
    )
    changed = topo.compare(
        load(machine).replace(change), workload="load", via=[path], at="achievable"
    )[path]
    assert getattr(swing, f"{end}_rate") == pytest.approx(changed.rate, rel=1e-9)
    bound = getattr(swing, f"{end}_binds")
    assert {r.id for r in bound} == {r.id for r in changed.bound}


@pytest.mark.parametrize("name", [*MACHINES, "l40s-two-switches", "pod-32"])
def test_products_are_what_the_parts_compute(name: str) -> None:
    """A capacity that is taken for a product of figures is it anywhere between their ends."""
    generator = random.Random(1)
    comparison = topo.compare(load(name), at="achievable")
    for answer in comparison.workloads:
        for path in answer.paths:
            if path.matrix is None:
                continue
            uncertain = Uncertain(comparison.topology, path.matrix.resources, "achievable")
            for _ in range(10):
                values = [generator.uniform(band.low, band.high) for band in uncertain.bands]
                exact = uncertain.exactly(values)
                assert uncertain.rates(values) == pytest.approx(exact, rel=1e-11)


def test_one_part_eight_times_moves_together() -> None:
    """Eight drives of one guess: all of them are slow, or none; eight of their own make it up."""
    answer = _of(doubt(load("dgx-a100"), workload="local"), "legacy")
    (swing,) = (swing for swing in answer.swings if swing.band.key == "read")
    assert {r.name for r in swing.touches} == {f"nvme{number}/read" for number in range(8)}
    assert swing.high_rate == pytest.approx(8 * 0.88 * 7.877e9, rel=1e-3)


_DRIVES = """
topo: 1
name: drives
devices:
  nvme[0-1]: {part: nvme-gen5-7.68tb, write: 4 GB/s}
  cpu0: xeon-8480c
  ram0: {part: ddr5-4800, channels: 8, efficiency: 70 %}
  gpu0: h100-pcie-80gb
links:
  - nvme -- cpu0: pcie 5 x4
  - ram0 -- cpu0: memory-bus
  - gpu0 -- cpu0: pcie 5 x16
workloads:
  load: {read: 100 GB, from: nvme, to: gpu0}
"""


@pytest.mark.parametrize(
    ("sources", "upper", "lower"),
    [
        # One figure: the rate is twice it, and nine tenths of its way up and down hold 90 %.
        (("a class", "a class"), 0.9, 0.9),
        # Two figures: the rate is twice the less. Both have to be above x for more, each in half of
        # the draws: ((1 - x) / 2)^2 = 5 %; for less one is enough: 1 - ((1 + x) / 2)^2 = 5 %.
        (("one drive", "the other"), 1 - 2 * 0.05**0.5, 2 * 0.95**0.5 - 1),
    ],
)
def test_one_figure_is_drawn_once_and_two_are_drawn_apart(
    sources: tuple[str, str], upper: float, lower: float
) -> None:
    figure = "{{value: 6 GB/s, range: 5-8 GB/s, kind: guess, source: {0}}}"
    changes = {f"nvme{number}.read": figure.format(text) for number, text in enumerate(sources)}
    text = _DRIVES.replace("nvme[0-1]: {", "nvme0: {read: FIRST, ", 1)
    first, second = changes.values()
    text = text.replace("FIRST", first).replace(
        "  cpu0:", f"  nvme1: {{read: {second}, part: nvme-gen5-7.68tb, write: 4 GB/s}}\n  cpu0:", 1
    )
    answer = _of(doubt(topo.loads(text), via=["legacy"]), "legacy")
    assert answer.answer.rate == pytest.approx(12e9)
    expected = (12e9 - lower * 2e9, 12e9 + upper * 4e9)
    assert answer.rate_range == pytest.approx(expected, rel=0.01)


def test_serial_stages_take_a_core_at_its_least() -> None:
    serial = topo.loads(
        builtin_text("gds-textbook").replace(
            "\ndevices:", "\ndata-paths:\n  legacy: {stages: serial, workers: 2}\ndevices:", 1
        )
    )
    answer = _of(doubt(serial, workload="load"), "legacy")
    (swing,) = (swing for swing in answer.swings if swing.band.key == "core-copy")
    slow = serial.replace({"root.core-copy": "5 GB/s"})
    expected = topo.compare(slow, workload="load", via=["legacy"], at="achievable")["legacy"]
    assert swing.low_rate == pytest.approx(expected.rate)
    assert swing.low_rate < swing.high_rate


# --- the range ------------------------------------------------------------------------------------

_CUTS = st.floats(0.5, 1.0)
_RISES = st.floats(1.0, 1.4)


@st.composite
def _bands(draw: st.DrawFn) -> dict[str, tuple[float, float, float, str]]:
    """Draw a figure with a least and a most for what binds in the box."""
    figures = {}
    for key, middle, most, unit in (
        ("read", draw(st.floats(30, 60)), 200.0, "GB/s"),
        ("slot", draw(st.floats(50, 75)), 100.0, "%"),
        ("ram_efficiency", draw(st.floats(50, 75)), 100.0, "%"),
    ):
        low, high = middle * draw(_CUTS), min(middle * draw(_RISES), most)
        figures[key] = (middle, low, high, unit)
    return figures


def _asked(figures: dict[str, tuple[float, float, float, str]]) -> Doubt:
    return doubt(_box(**{key: _ranged(*figure) for key, figure in figures.items()}))


@settings(max_examples=15)
@given(_bands(), st.data())
def test_a_wider_band_never_makes_the_range_narrower(
    figures: dict[str, tuple[float, float, float, str]], data: st.DataObject
) -> None:
    key = data.draw(st.sampled_from(sorted(figures)))
    middle, low, high, unit = figures[key]
    factor = data.draw(st.floats(0.6, 1.0))
    most = 200.0 if unit == "GB/s" else 100.0
    wider = (middle, low * factor, min(high / factor, most), unit)
    narrow, wide = _asked(figures), _asked({**figures, key: wider})
    for before, after in zip(narrow.answers, wide.answers, strict=True):
        assert before.rate_range is not None
        assert after.rate_range is not None
        assert after.rate_range[0] <= before.rate_range[0] * (1 + 1e-6)
        assert after.rate_range[1] >= before.rate_range[1] * (1 - 1e-6)


@settings(max_examples=15)
@given(_bands())
def test_the_answer_lies_in_the_range_and_the_range_in_what_was_tried(
    figures: dict[str, tuple[float, float, float, str]],
) -> None:
    for answer in _asked(figures).answers:
        assert answer.rate_range is not None
        assert answer.extremes is not None
        assert answer.answer.rate is not None
        (low, high), (least, most) = answer.rate_range, answer.extremes
        tolerance = 1 + 1e-9
        assert least <= low * tolerance
        assert low <= answer.answer.rate * tolerance
        assert answer.answer.rate <= high * tolerance
        assert high <= most * tolerance
        for swing in answer.swings:
            assert swing.low_rate <= swing.high_rate * tolerance  # all of them limit, none helps
            assert 0 <= swing.settles <= 1


@pytest.mark.parametrize("name", ["dgx-a100", "l40s-two-switches", "workstation-4gpu"])
def test_nine_of_ten_other_draws_lie_in_the_range(name: str) -> None:
    """Draws by another generator, each machine with those figures solved as a whole."""
    comparison = topo.compare(load(name), at="achievable")
    result = doubt(load(name))
    generator = random.Random(name)
    answers = [path for answer in comparison.workloads for path in answer.paths]
    for path, answer in zip(answers, result.answers, strict=True):
        if path.matrix is None or answer.rate_range is None or answer.certain:
            continue
        uncertain = Uncertain(comparison.topology, path.matrix.resources, "achievable")
        inside = 0
        for _ in range(300):
            draw = [generator.uniform(-1, 1) for _ in uncertain.bands]
            rates = uncertain.rates(values_at(uncertain.bands, draw))
            capacities = tuple(rates[number] for number in uncertain.classes)
            matrix = replace(path.matrix, system=replace(path.matrix.system, capacities=capacities))
            rate = completion(matrix, shared(matrix.system), sized=answer.workload.sized).rate
            low, high = answer.rate_range
            inside += low * (1 - 1e-9) <= rate <= high * (1 + 1e-9)
        assert inside >= 300 * (LEVEL - 0.04)


def test_more_capacity_can_be_less_in_all() -> None:
    """Max-min fair totals are not monotone: who gets more of one thing takes more of two others.

    So a range is made of the draws themselves and never of the corners alone.
    """

    def total(first: float) -> float:
        uses = [{0: 1.0, 1: 1.0, 2: 1.0}, {1: 1.0}, {2: 1.0}]
        return sum(max_min(System.of([first, 10.0, 10.0], uses)).rates)

    assert (total(2.0), total(8.0)) == (18.0, 15.0)


def test_names_change_nothing() -> None:
    words = {"slot": _ranged(80, 60, 90, "%"), "read": _ranged(45, 30, 60, "GB/s")}
    plain, renamed = doubt(_box(**words)), doubt(_box(**words, filer="zz9", ram="a1"))
    for answer, other in zip(plain.answers, renamed.answers, strict=True):
        assert answer.rate_range == other.rate_range
        assert answer.extremes == other.extremes
        assert [(s.low_rate, s.high_rate, s.settles) for s in answer.swings] == [
            (s.low_rate, s.high_rate, s.settles) for s in other.swings
        ]


def test_many_servers_answer_as_written_out() -> None:
    text = """
topo: 1
name: pod
devices:
  node[0-3]: {use: gds-textbook}
  leaf: quantum-2
  filer: {part: nvme-of-target, ports: 4x infiniband ndr, read: READ, write: 60 GB/s}
links:
  - node.slot1 -- leaf: 2x infiniband ndr
  - node.slot2 -- leaf: 2x infiniband ndr
  - filer -- leaf: 4x infiniband ndr
workloads:
  load: {read: 320 GB, from: filer, to: node.gpu}
""".replace("READ", _ranged(190, 150, 210, "GB/s"))
    pod = topo.loads(text)
    folded = build_topology(pod.description.folded or pod.description, fold_from=2)
    assert folded.folding is not None
    for plain, small in zip(doubt(pod).answers, doubt(folded).answers, strict=True):
        assert plain.rate_range == pytest.approx(small.rate_range)
        assert plain.extremes == pytest.approx(small.extremes)
        assert [s.settles for s in plain.swings] == pytest.approx([s.settles for s in small.swings])


# --- what to measure first ------------------------------------------------------------------------


def test_the_widest_is_measured_first() -> None:
    words = {"slot": _ranged(60, 30, 62, "%"), "read": _ranged(36, 34, 40, "GB/s")}
    answer = _of(doubt(_box(**words)), "direct")
    assert answer.best is not None
    assert answer.best.band.key == "efficiency"
    settled = {swing.band.key: swing.settles for swing in answer.swings}
    assert answer.swings[0] == answer.best
    assert settled["efficiency"] == max(settled.values()) > 2 * settled["read"]


_THREE = [
    # RAM's efficiency, the storage's rate in GB/s, the slot's efficiency: value, least and most
    ((70, 50, 75), (13.5, 12, 15), (21.5, 19, 24)),
    ((70, 62, 75), (13.5, 8, 15), (21.5, 20, 23)),
    ((70, 66, 72), (13.4, 12, 18), (21.5, 12, 26)),
    ((70, 60, 90), (13.5, 11, 16), (22.0, 18, 28)),
    ((70, 40, 72), (13.0, 12.8, 13.2), (20.0, 19, 30)),
]


@pytest.mark.parametrize("figures", _THREE)
def test_what_is_measured_first_settles_most_by_brute_force(
    figures: tuple[tuple[float, float, float], ...],
) -> None:
    """The box by legacy: a byte crosses the RAM's bus four times, the slot and the storage once.

    rate = min(76.8 GB/s x RAM's efficiency / 4, storage, 63.0 GB/s x slot's efficiency)
    """
    ram, read, slot = figures
    machine = _box(
        ram_efficiency=_ranged(*ram, "%"), read=_ranged(*read, "GB/s"), slot=_ranged(*slot, "%")
    )
    answer = _of(doubt(machine, workload="load"), "legacy")
    middle, low, high = numpy.array(figures).T

    def rates(places: numpy.ndarray) -> numpy.ndarray:
        values = middle + abs(places) * (numpy.where(places > 0, high, low) - middle)
        return (values * (0.768 / 4, 1.0, 63.0153846 / 100)).min(axis=1)

    draws = numpy.random.default_rng(3).uniform(-1, 1, (4000, 3))

    def spread(measured: int | None = None, outcome: float = 0.0) -> float:
        places = draws.copy()
        if measured is not None:
            places[:, measured] = outcome
        ordered = numpy.sort(rates(places))
        return ordered[int(0.95 * len(ordered))] - ordered[int(0.05 * len(ordered))]

    outcomes = [(2 * step + 1) / 20 - 1 for step in range(20)]
    settled = [
        1 - sum(spread(number, outcome) for outcome in outcomes) / len(outcomes) / spread()
        for number in range(3)
    ]
    assert answer.answer.rate == pytest.approx(rates(numpy.zeros((1, 3)))[0] * 1e9, rel=1e-6)
    assert answer.best is not None
    found = {(swing.band.key, swing.band.middle): swing.settles for swing in answer.swings}
    keys = [("efficiency", ram[0] / 100), ("read", read[0] * 1e9), ("efficiency", slot[0] / 100)]
    told = [found.get(key, 0.0) for key in keys]
    assert told == pytest.approx([max(part, 0.0) for part in settled], abs=0.06)
    assert settled[told.index(max(told))] > max(settled) - 0.06


def test_what_alone_moves_the_answer_settles_all_of_it() -> None:
    answer = _of(doubt(load("dgx-a100"), workload="load"), "legacy")
    assert [swing.settles for swing in answer.swings] == [1.0]


def test_two_that_bind_together_move_it_together() -> None:
    """Both must be better for the answer to be: neither alone does anything upwards."""
    slot = _ranged(63.47, 63.47, 90, "%")  # 63.47 % of 63.0 GB/s is 40 GB/s
    answer = _of(doubt(_box(slot=slot, read=_ranged(40, 40, 60, "GB/s"))), "direct")
    assert answer.rate_range is not None
    assert max(swing.high_rate for swing in answer.swings) < 40.1e9
    assert answer.rate_range[1] > 44e9
    assert {swing.band.key for swing in answer.swings} >= {"read", "efficiency"}


def test_without_a_guess_nothing_is_in_doubt() -> None:
    result = doubt(load("gds-textbook"), at="theoretical")
    assert result.bands == ()
    assert all(answer.certain for answer in result.answers)


def test_a_measured_rate_ends_the_doubt_about_it() -> None:
    lines = "\nmeasured:\n  - ram0 -> cpu0: {rate: 55 GB/s, source: pcm}\nworkloads:"
    measured = topo.loads(
        _BOX.format(
            filer="filer", ram="ram0", read="90 GB/s", slot="89 %", ram_efficiency="70 %"
        ).replace("\nworkloads:", lines)
    )
    before = _of(doubt(measured, at="achievable"), "legacy")
    after = _of(doubt(measured, at="measured"), "legacy")
    assert before.certain  # a figure that the file quotes stands
    assert after.certain
    guessed = _box(ram_efficiency="{value: 70 %, kind: guess, source: me}", read="90 GB/s")
    assert not _of(doubt(guessed), "legacy").certain


def test_what_nobody_knows_is_said_with_where_it_matters() -> None:
    answer = _of(doubt(load("dgx-a100"), workload="load"), "direct")
    assert answer.at_most
    assert answer.unknown
    assert answer.answer.matrix is not None
    assert {unknown.resource.id for unknown in answer.unknown} == set(answer.answer.unknowns)
    assert all(unknown.load > 0 for unknown in answer.unknown)


def test_a_refused_path_has_no_range() -> None:
    answer = _of(doubt(load("workstation-4gpu"), workload="load"), "direct")
    assert (answer.rate_range, answer.time_range, answer.swings) == (None, None, ())


def test_two_ends_have_rates_and_no_times() -> None:
    machine = load("dgx-a100")
    result = doubt(machine, workload=ask(machine, "nvme0", "gpu0"), via=["legacy"])
    assert result.answers[0].time_range is None
    assert result.answers[0].rate_range is not None


# --- draws ----------------------------------------------------------------------------------------


def _bands_of(*values: float) -> list[Band]:
    figures = [Figure(value, "guess", "x") for value in values]
    return [Band("read", (), figure, 1.0, 100.0, stated=True) for figure in figures]


def test_draws_are_even_in_each_band_and_the_same_every_time() -> None:
    three = _bands_of(4.0, 5.0, 6.0)
    draws = positions(three, 40)
    assert draws == positions(three, 40)
    for column in zip(*draws, strict=True):
        assert sorted(column) == pytest.approx([(2 * n + 1) / 40 - 1 for n in range(40)])
    first, _, last = zip(*draws, strict=True)
    alone = positions([three[2], three[0]], 40)
    assert [tuple(draw) for draw in alone] == list(zip(last, first, strict=True))


def test_figures_that_differ_in_their_width_only_are_drawn_apart() -> None:
    (narrow,) = _bands_of(4.0)
    wide = replace(narrow, high=200.0)
    (alone,), both = zip(*positions([narrow], 40), strict=True), positions([narrow, wide], 40)
    first, second = zip(*both, strict=True)
    assert first == alone
    assert second != first


def test_a_position_is_between_the_figure_and_an_end() -> None:
    band = Band("read", (), Figure(10.0, "guess", ""), 4.0, 12.0, stated=True)
    assert [value_at(band, position) for position in (-1, -0.5, 0, 0.5, 1)] == [4, 7, 10, 11, 12]
