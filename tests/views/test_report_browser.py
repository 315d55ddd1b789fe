"""The page in a real browser: topo's numbers, no script of a stranger, no request, no mouse."""

from __future__ import annotations

import math
import random
import re
from dataclasses import replace
from itertools import count

import pytest

import topo
from tests.machines import ONE_SOCKET, UNLIKE
from tests.views.browser import AUDIT, AXE, FAINT, Watched, chromium, needs_axe, needs_browser
from topo.flows.demands import System
from topo.solve.fluid import complete
from topo.solve.maxmin import max_min
from topo.study.answer import bottlenecks_of, completion
from topo.study.report import report
from topo.units import format_rate
from topo.views.bands import advice_words, band_ends, band_name, range_words, settles_words
from topo.views.report.page import report_page
from topo.views.sentences import caption, rate_words, time_words

pytestmark = needs_browser


@pytest.fixture(scope="module")
def browser():
    with chromium() as started:
        yield started


@pytest.fixture
def shown(browser, tmp_path):
    """Show a report of a topology, and look at the end that nothing went wrong."""
    pages: list[Watched] = []

    def show(shown_report, **context) -> Watched:
        html = report_page(shown_report, command=(shown_report.topology.name,))
        pages.append(Watched(browser, html, tmp_path / f"{len(pages)}", **context))
        return pages[-1]

    yield show
    for page in pages:
        assert page.errors == []
        assert len(page.requests) == 1, "the page itself, and nothing else"
        page.close()


def same(value, wanted):
    """Whether a number of the page is topo's to 1e-12; two numbers that are none are the same."""
    return value == wanted or math.isclose(value, wanted, rel_tol=1e-12, abs_tol=0.0)


# --- the solver alone -----------------------------------------------------------------------------


def random_system(draw: random.Random) -> tuple[System, list[float], list[float]]:
    """Return a system with all that one can have, and bytes and arrivals of its demands."""
    resources, demands = draw.randint(1, 12), draw.randint(1, 14)
    even = draw.random() < 0.4  # round figures make ties
    capacities = [
        draw.choice((25e9, 50e9, 100e9, math.inf) if even else (10.0 ** draw.uniform(6, 11), 50e9))
        for _ in range(resources)
    ]
    uses = [
        {
            resource: draw.choice((0.5, 1.0, 1.0) if even else (0.25, 4.0, draw.uniform(0.01, 3)))
            for resource in draw.sample(range(resources), draw.randint(1, min(5, resources)))
        }
        for _ in range(demands)
    ]
    limits = [
        10.0 ** draw.uniform(7, 11)
        if draw.random() < 0.3 or all(capacities[resource] == math.inf for resource in use)
        else math.inf
        for use in uses
    ]
    weights = [1.0 if even else draw.choice((2.0, draw.uniform(0.1, 5))) for _ in range(demands)]
    sizes = [draw.choice((0.0, 1e9, 80e9, draw.uniform(1e6, 1e12))) for _ in range(demands)]
    arrivals = [draw.choice((0.0, 0.0, draw.uniform(0, 10))) for _ in range(demands)]
    return System.of(capacities, uses, weights=weights, limits=limits), sizes, arrivals


def for_the_page(system: System) -> dict:
    """Return a system as JSON can carry it: null is no limit."""

    def finite(values):
        return [None if value == math.inf else value for value in values]

    return {
        "capacities": finite(system.capacities),
        "starts": list(system.starts),
        "columns": list(system.resources),
        "multiplicities": list(system.multiplicities),
        "weights": list(system.weights),
        "limits": finite(system.limits),
    }


SOLVE = """(questions) => questions.map(([system, sizes, arrivals]) => {
  const endless = (values) => values.map((value) => value ?? Infinity);
  system = {...system, capacities: endless(system.capacities), limits: endless(system.limits)};
  const {rates, loads, stops} = topo.maxMin(system);
  const {finishes, spans} = topo.complete(system, sizes, arrivals);
  return {rates: [...rates], loads: [...loads], stops, finishes: [...finishes],
          starts: spans.map((span) => span.start)};
})"""


def test_a_thousand_random_systems_have_topos_rates_and_times(shown):
    draw = random.Random(20261129)
    systems = [random_system(draw) for _ in range(1000)]
    page = shown(report(topo.load("gds-textbook"), workload="load"))
    answers = page.ask(
        SOLVE, [[for_the_page(system), sizes, arrivals] for system, sizes, arrivals in systems]
    )
    stopped = 0
    for (system, sizes, arrivals), answer in zip(systems, answers, strict=True):
        wanted = max_min(system)
        assert all(map(same, answer["rates"], wanted.rates))
        assert all(map(same, answer["loads"], wanted.loads))
        assert [tuple(stops) for stops in answer["stops"]] == list(wanted.stops)
        stopped += any(len(stops) > 1 for stops in wanted.stops)
        timeline = complete(system, sizes, arrivals, spans=True)
        assert all(map(same, answer["finishes"], timeline.finishes))
        assert len(answer["starts"]) == len(timeline.spans)
    assert stopped > 10, "some of them have ties"


# --- the page's answers are topo's ----------------------------------------------------------------

ANSWERS = """() => {
  const {model} = topo;
  return model.page.workloads.map((workload, number) => workload.paths.map((path) => {
    const solved = model.solved(path, workload);
    if (!solved) return null;
    const {rungs, end} = model.ladder(solved);
    const names = (places) => places.map((place) => model.resources[place].id);
    return {
      caption: model.caption(path, workload), rate: solved.rate, time: solved.time,
      start: solved.startRate, full: names(solved.full), unknown: names(solved.unknown),
      ladder: rungs.map((rung) => [rung.rate, names(rung.full)]), end,
    };
  }));
}"""


@pytest.mark.parametrize("name", UNLIKE)
@pytest.mark.parametrize("basis", ["theoretical", "achievable"])
def test_a_worked_machine_says_what_topo_says(shown, name, basis):
    whole = report(topo.load(name), at=basis)
    page = shown(whole)
    answers = page.ask(ANSWERS)
    compared = 0
    for workload, of_paths in zip(whole.workloads, answers, strict=True):
        for path, answer in zip(workload.paths, of_paths, strict=True):
            wanted = path.answer
            if wanted.rate is None:
                assert answer is None
                continue
            compared += 1
            assert same(answer["rate"], wanted.rate)
            assert same(answer["start"], wanted.start_rate)
            assert (answer["time"] is None) == (wanted.time is None)
            assert wanted.time is None or same(answer["time"], wanted.time)
            assert answer["full"] == [resource.id for resource in wanted.bound]
            assert answer["unknown"] == list(wanted.unknowns)
            assert answer["caption"] == caption(wanted)
            assert len(answer["ladder"]) == len(path.ladder)
            for (rate, full), rung in zip(answer["ladder"], path.ladder, strict=True):
                assert same(rate, rung.rate)
                assert sorted(full) == sorted(resource.id for resource in rung.resources)
            assert answer["end"] == path.end.why
    assert compared > 3


TIMELINES = (
    """() => topo.model.page.timelines.map((run) => [...topo.model.timeline(run).finishes])"""
)


@pytest.mark.parametrize("name", ["gds-textbook", "dgx-h100"])
def test_workloads_at_once_are_done_when_topo_says(shown, name):
    whole = report(topo.load(name))
    page = shown(whole)
    for (_, simulation), finishes in zip(whole.together.runs, page.ask(TIMELINES), strict=True):
        assert all(map(same, finishes, simulation.finishes.values()))


COLLECTIVE = """
topo: 1
name: box
devices:
  cpu0: xeon-8480c
  ram0: {part: ddr5-4800, channels: 8}
  gpu[0-3]: h100-sxm-80gb
  nvswitch: nvswitch-3
links:
  - ram0 -- cpu0: memory-bus
  - gpu -- cpu0: pcie 5 x16
  - gpu -- nvswitch: 18x nvlink 4
workloads:
  sum: {all-reduce: 1 GB, over: gpu}
"""


def test_a_collective_is_named_and_opens_with_its_fastest_way(shown):
    page = shown(report(topo.loads(COLLECTIVE)))
    assert page.page.inner_text("#question") == (
        "sum by peer-nvlink: all-reduce 1 GB over gpu[0-3]"
    )


def test_what_reads_on_and_on_does_so_until_all_others_are_done(shown):
    text = LONG.format(title="box", card="slot1", gpu="gpu0")
    whole = report(topo.loads(f"{text}  train: {{needs: unet3d, from: storage, to: gpu0}}\n"))
    page = shown(whole)
    for (_, simulation), finishes in zip(whole.together.runs, page.ask(TIMELINES), strict=True):
        assert all(map(same, finishes, simulation.finishes.values()))
    words = page.page.text_content("#timeline .run p")
    assert words.endswith("train goes on")
    assert page.ask(
        "() => topo.model.page.timelines.map((run) => topo.model.timeline(run).end)"
    ) == pytest.approx([simulation.end for _, simulation in whole.together.runs], rel=1e-12)


MOVED = """([knob, text]) => {
  topo.model.change(knob, text);
  return topo.model.page.workloads.map((workload) => workload.paths.map((path) => {
    const solved = topo.model.solved(path, workload);
    return solved && {rate: solved.rate, time: solved.time,
                      capacities: [...solved.system.capacities],
                      full: solved.full.map((place) => topo.model.resources[place].id)};
  }));
}"""


@pytest.mark.parametrize("name", UNLIKE)
def test_after_a_slider_moved_the_numbers_are_topos_as_well(shown, name):
    whole = report(topo.load(name))
    page = shown(whole)
    knobs = page.ask(
        "() => topo.model.resources.filter((one, at) => one.knob === at"
        " && one.capacity_bytes_per_s).map((one) => one.knob)"
    )
    draw = random.Random(name)
    changed = 0
    for knob in draw.sample(knobs, min(8, len(knobs))):  # one after the other: they add up
        text = f"{10 ** draw.uniform(-0.5, 2.5):.4g}"
        for workload, moved in zip(whole.workloads, page.ask(MOVED, [knob, text]), strict=True):
            for path, answer in zip(workload.paths, moved, strict=True):
                if answer is None:
                    continue
                matrix = path.answer.matrix
                assert matrix is not None
                capacities = tuple(
                    value if value is not None else math.inf for value in answer["capacities"]
                )
                changed += capacities != tuple(matrix.system.capacities)
                matrix = replace(matrix, system=replace(matrix.system, capacities=capacities))
                allocation = max_min(matrix.system)
                end = completion(matrix, allocation, sized=workload.workload.sized)
                assert same(answer["rate"], end.rate)
                assert end.time is None or same(answer["time"], end.time)
                bound = [full.resource.id for full in bottlenecks_of(matrix, allocation, end)]
                assert answer["full"] == bound
    assert changed


def settable(name):
    """Return each resource that one key sets: its id and a change as ``--set`` has it."""
    whole = report(topo.load(name), workload=topo.load(name).description.workloads[0].name)
    from topo.views.report.document import report_document

    resources = report_document(whole, command=(name,))["resources"]
    return whole, [(each["id"], each["knob"], each["set"]) for each in resources if "set" in each]


@pytest.mark.parametrize("name", ["gds-textbook", "dgx-h100", "workstation-4gpu"])
def test_the_command_line_that_the_page_gives_has_its_answer(shown, name):
    whole, targets = settable(name)
    page = shown(whole)
    workload = whole.workloads[0]
    draw = random.Random(name)
    for resource, knob, (before, cables) in draw.sample(targets, min(12, len(targets))):
        text = f"{10 ** draw.uniform(0.5, 2.5):.4g}"
        page.ask("() => topo.model.reset()")
        moved = page.ask(MOVED, [knob, text])[0]
        command = page.ask("() => topo.model.command().text")
        (said,) = re.findall(r"--set (?:'([^']+)'|(\S+))", command)
        key, _, value = "".join(said).partition("=")
        assert f"{key}=" == before
        assert same(float(value.split()[0]) * cables, float(text))
        varied = topo.compare(
            whole.topology.replace({key: value}),
            workload=workload.workload.name,
            via=[path.answer.name for path in workload.paths if path.answer.rate is not None],
        )
        rates = {path.name: path.rate for path in varied.workloads[0].paths}
        for path, answer in zip(workload.paths, moved, strict=True):
            assert answer is None or same(answer["rate"], rates[path.answer.name]), (resource, text)


FLOWS = """() => [...document.querySelectorAll('#flow title')].map((one) => one.textContent)"""


def test_who_fills_what_is_told_link_by_link(shown):
    page = shown(report(topo.load("gds-textbook"), workload="load"))
    flows = page.ask(FLOWS)
    assert "storage to slot1: 50 GB/s, 50 % full" in flows
    assert "slot2 to root1: 50 GB/s, 79 % full" in flows
    assert sum("to gpu" in flow and "12.5 GB/s" in flow for flow in flows) == 8


def test_the_scrubber_says_what_runs_at_a_moment(shown):
    page = shown(report(topo.load("gds-textbook")))
    moments = "() => [...document.querySelectorAll('#moments li')].map((one) => one.textContent)"
    page.page.fill("#scrubber", "100")
    legacy, direct = page.ask(moments)
    assert legacy.startswith("legacy: load 50 GB/s, checkpoint 50 GB/s; full: ram0/bus")
    assert direct.startswith("direct: load 100 GB/s, checkpoint 100 GB/s; full: slot1/chip")
    page.page.fill("#scrubber", "950")
    assert page.ask(moments)[1] == "direct: nothing runs"


def test_pairs_are_what_each_could_do_alone(shown):
    whole = report(topo.load("gds-textbook"), workload="load")
    pairs = whole.workloads[0].paths[1].pairs
    assert {(pair.far, pair.rate) for pair in pairs} == {("slot1", 50e9), ("slot2", 50e9)}
    assert len(pairs) == 16
    page = shown(whole)
    assert page.ask("() => document.querySelectorAll('#pairs tbody td').length") == 16


# --- strangers ------------------------------------------------------------------------------------

HOSTILE = r"""
topo: 1
name: box
title: "</title><script>document.title='owned'</script><img src=x onerror=alert(1)>"
parts:
  acme:
    like: connectx-7-dual-port
    title: "<b onclick=alert(2)>card</b> {{ 7 * 7 }}"
    chip: {value: 40 GB/s, source: "\"><script>alert(3)</script> javascript:alert(4) </script>"}
  odd: {kind: memory, bus: {value: 200 GB/s, source: "<!--<script>"}}
devices:
  storage: {part: nvme-of-target, outside: yes, label: "<svg onload=alert(5)>"}
  slot1: {part: acme, label: "]]><script>alert(6)</script>"}
  cpu0: xeon-8480c
  ram0: odd
  gpu0: h100-sxm-80gb
links:
  - storage -- slot1: 2x infiniband ndr     # <script>alert(7)</script>
  - slot1 -- cpu0: pcie 5 x16
  - ram0 -- cpu0: memory-bus
  - gpu0 -- cpu0: pcie 5 x16
workloads:
  load: {read: 80 GB, from: storage, to: gpu}
"""


def test_no_script_of_a_stranger_runs(shown):
    page = shown(report(topo.loads(HOSTILE, name="'><script>alert(8)</script>.yaml")))
    state = page.ask(
        "() => ({title: document.title, scripts: document.scripts.length,"
        " handlers: [...document.querySelectorAll('*')].filter((each) =>"
        " [...each.attributes].some((one) => one.name.startsWith('on'))).length,"
        " images: document.images.length, heading: document.querySelector('h1').textContent})"
    )
    assert state["title"].startswith("</title><script>")
    assert state["heading"] == state["title"]
    assert (state["scripts"], state["handlers"], state["images"]) == (3, 0, 0)
    assert page.ask("() => document.body.textContent.includes('{{ 7 * 7 }}')")
    page.page.keyboard.press("Tab")
    page.page.hover("figure:not([hidden]) .device")
    page.open("#workload=load&via=direct&set=%3Cimg%20src%3Dx%3E%3D5&set=slot1%2Fchip%20in%3Dx")
    assert page.ask("() => topo.model.changes.size") == 0


def test_a_script_put_into_the_page_is_refused(shown, tmp_path):
    page = shown(report(topo.load("gds-textbook"), workload="load"))
    page.ask(
        "() => { const script = document.createElement('script');"
        " script.textContent = 'globalThis.owned = true'; document.body.append(script); }"
    )
    assert page.ask("() => globalThis.owned") is None
    assert any("Content Security Policy" in error for error in page.errors)
    page.errors.clear()
    page.ask("() => fetch('https://example.org/').catch(() => null)")
    assert any("Content Security Policy" in error for error in page.errors)
    page.errors.clear()
    page.requests[:] = page.requests[:1]


# --- using it -------------------------------------------------------------------------------------


def test_a_slider_moves_the_badge_and_undo_brings_it_back(shown):
    page = shown(report(topo.load("gds-textbook")))
    badges = (
        "() => [...document.querySelectorAll('figure:not([hidden]) .badge:not(.gone)')]"
        ".map((one) => one.textContent)"
    )
    assert page.ask(badges) == ["BOTTLENECK 50 GB/s"] * 2
    for name in ("slot1/chip", "slot2/chip"):
        page.page.fill(f"[aria-label='capacity of {name} in GB/s']", "200")
        page.page.keyboard.press("Enter")
    assert page.page.inner_text("#rate") == "126.03 GB/s"
    assert page.page.inner_text("#time") == "5.078 s"
    assert page.ask(badges) == ["BOTTLENECK 63.02 GB/s"] * 2
    page.wait("location.hash.includes('slot2')")
    address = page.ask("() => location.hash")
    page.page.click("#undo")
    page.page.click("#undo")
    assert page.page.inner_text("#rate") == "100 GB/s"
    page.page.click("#redo")
    page.page.click("#reset")
    assert page.page.inner_text("#rate") == "100 GB/s"
    page.open(address)
    assert page.page.inner_text("#rate") == "126.03 GB/s"


COVERED = """() => {
  const places = (query) => [...document.querySelectorAll(`figure:not([hidden]) ${query}`)]
    .map((node) => [node.textContent.trim(), node.getBoundingClientRect()]);
  const over = (a, b) => a.left + 1 < b.right && b.left + 1 < a.right &&
    a.top + 2 < b.bottom && b.top + 2 < a.bottom;
  const badges = places('.badge:not(.gone)');
  const words = places('text:not(.badge *)').filter(([text]) => /[a-z]/.test(text));
  const things = [...words, ...badges];
  return badges.flatMap(([text, place]) => things.filter(([, other]) => other !== place)
    .filter(([, where]) => over(place, where)).map(([other]) => `${text} over ${other}`));
}"""


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("aws-p5", "workload=reduce&via=peer-pcie"),
        ("aws-p5", "workload=load&via=direct"),
        ("dgx-b300", "workload=feed&via=pinned"),
    ],
)
def test_badges_cover_neither_labels_nor_each_other(shown, name, asked):
    machine = topo.load(name)
    page = shown(report(machine, workload=asked.split("=")[1].split("&")[0]))
    page.open(f"#{asked}")
    assert page.ask("() => document.querySelectorAll('.badge:not(.gone)').length") > 1
    assert page.ask(COVERED) == []


FIGURES = """() => [...document.querySelectorAll('figure:not([hidden])')].map((figure) => ({
  path: figure.querySelector('figcaption b').textContent,
  caption: figure.querySelector('figcaption span').textContent.trim(),
  badges: figure.querySelectorAll('.badge:not(.gone)').length,
  top: Math.round(figure.getBoundingClientRect().top),
}))"""


def test_two_data_paths_stand_beside_each_other_and_move_together(shown):
    whole = report(topo.load("gds-textbook"), workload="load")
    page = shown(whole, viewport={"width": 1920, "height": 1000})
    answers = {path.answer.name: path.answer for path in whole.workloads[0].paths}
    page.page.select_option("#against", "legacy")
    direct, legacy = page.ask(FIGURES)
    assert direct["top"] == legacy["top"]
    assert (direct["path"], direct["badges"]) == ("direct", 2)
    assert (legacy["path"], legacy["badges"]) == ("legacy", 4), "the cards and the RAM buses"
    assert direct["caption"] == caption(answers["direct"])
    assert legacy["caption"] == caption(answers["legacy"])
    assert page.page.inner_text("#was") == "direct is as fast as legacy"
    for name in ("slot1/chip", "slot2/chip"):
        page.page.fill(f"[aria-label='capacity of {name} in GB/s']", "200")
        page.page.keyboard.press("Enter")
    direct, legacy = page.ask(FIGURES)
    assert direct["caption"].startswith("126.03 GB/s, 5.078 s")
    assert legacy["caption"].startswith("100 GB/s, 6.4 s: limited by the RAM buses")
    assert page.page.inner_text("#was").startswith("direct is 1.26 times as fast as legacy")
    page.wait("location.hash.includes('beside=legacy')")
    page.open(page.ask("() => location.hash"))
    assert [each["path"] for each in page.ask(FIGURES)] == ["direct", "legacy"]
    page.page.click("#paths button >> nth=0")  # the two change places
    assert [each["path"] for each in page.ask(FIGURES)] == ["legacy", "direct"]
    page.page.select_option("#against", "mmap")  # which has no picture of its own
    assert [each["path"] for each in page.ask(FIGURES)] == ["legacy", "mmap"]
    page.page.set_viewport_size({"width": 360, "height": 800})
    above, below = page.ask(FIGURES)
    assert above["top"] < below["top"]
    page.page.select_option("#against", "")
    assert len(page.ask(FIGURES)) == 1


def test_a_wrong_number_is_said_and_changes_nothing(shown):
    page = shown(report(topo.load("gds-textbook"), workload="load"))
    field = "[aria-label='capacity of slot1/chip in GB/s']"
    for text in ("fast", "-5", "0", "1e400", "NaN"):
        page.page.fill(field, text)
        page.page.keyboard.press("Enter")
        assert page.page.get_attribute(field, "aria-invalid") == "true"
        assert page.ask("() => topo.model.changes.size") == 0


def test_the_keyboard_alone_reaches_everything(shown):
    page = shown(report(topo.load("gds-textbook")))
    seen: list[str] = []
    for _ in count():
        page.page.keyboard.press("Tab")
        focused = page.ask(
            "() => { const one = document.activeElement; return one === document.body ? '' :"
            " (one.id || one.getAttribute('aria-label') || one.textContent.trim().slice(0, 30)); }"
        )
        if not focused or len(seen) > 200:
            break
        seen.append(focused)
    for wanted in ("tab-0", "copy-link", "theme", "copy-command"):
        assert wanted in seen
    assert any(name.startswith("capacity of slot1/chip") for name in seen)
    page.page.focus("figure:not([hidden]) [data-device=storage]")
    page.page.keyboard.press("ArrowRight")
    told = page.page.inner_text("#details h3")
    page.page.keyboard.press("ArrowRight")
    assert page.page.inner_text("#details h3") != told
    page.page.focus("#tab-0")
    page.page.keyboard.press("ArrowRight")
    assert page.page.inner_text("#question").startswith("checkpoint")


@pytest.mark.parametrize("width", [360, 768, 1440, 2560])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_and_reads_at_every_width(shown, width, scheme):
    page = shown(
        report(topo.load("dgx-h100"), workload="load"),
        viewport={"width": width, "height": 900},
        color_scheme=scheme,
    )
    assert page.ask("() => document.documentElement.scrollWidth") <= width
    assert page.ask(FAINT) == []


@pytest.mark.parametrize("name", ["gds-textbook", "dgx-h100", "dgx-a100", "pod-32", "kv-cache"])
def test_it_prints_on_two_pages_with_dark_ink_on_white(shown, name):
    page = shown(report(topo.load(name)), color_scheme="dark")
    paper = page.page.pdf(prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page\b", paper)) == 2
    page.page.emulate_media(media="print")
    ink = page.ask("() => getComputedStyle(document.querySelector('#rate')).color")
    assert ink == "rgb(21, 25, 30)"


LONG = """
topo: 1
name: box
title: {title}
devices:
  storage: {{part: nvme-of-target, outside: yes}}
  {card}: connectx-7-dual-port
  cpu0: xeon-8480c
  ram0: {{part: ddr5-4800, channels: 8}}
  {gpu}: h100-sxm-80gb
links:
  - storage -- {card}: 2x infiniband ndr
  - {card} -- cpu0: pcie 5 x16
  - ram0 -- cpu0: memory-bus
  - {gpu} -- cpu0: pcie 5 x16
workloads:
  together: {{read: 80 GB, from: storage, to: {gpu}}}
  back: {{write: 80 GB, from: {gpu}, to: storage}}
"""


@pytest.mark.parametrize("width", [360, 1440])
def test_names_without_an_end_are_broken_and_widen_nothing(shown, width):
    text = LONG.format(title="without-a-space" * 20, card="s" * 90, gpu="g" * 90)
    page = shown(report(topo.loads(text)), viewport={"width": width, "height": 900})
    assert page.ask("() => document.documentElement.scrollWidth") <= width


def test_a_workload_may_have_any_name(shown):
    """One of the name that all at once have among the page's answers is not taken for them."""
    whole = report(topo.loads(LONG.format(title="box", card="slot1", gpu="gpu0")))
    page = shown(whole)
    answers = page.ask(ANSWERS)
    for workload, of_paths in zip(whole.workloads, answers, strict=True):
        for path, answer in zip(workload.paths, of_paths, strict=True):
            assert (answer and answer["rate"]) == path.answer.rate
    for (_, simulation), finishes in zip(whole.together.runs, page.ask(TIMELINES), strict=True):
        assert all(map(same, finishes, simulation.finishes.values()))


def test_a_range_in_a_name_stays_in_one_piece_where_there_is_room(shown):
    page = shown(report(topo.load("pod-32"), workload="load"))
    lines = page.ask(
        "() => [...document.querySelectorAll('#rows .piece')].map((piece) => [piece.textContent,"
        " Math.round(piece.offsetHeight / parseFloat(getComputedStyle(piece).lineHeight))])"
    )
    assert ["node[0-31].", 1] in lines
    assert {high for _, high in lines} == {1}
    names = page.ask(
        "() => [...document.querySelectorAll('#rows .name')].map((name) => name.textContent)"
    )
    assert "node[0-31].slot1 -> node[0-31].cpu1" in names, "the same text as before"


def test_a_telephone_sees_what_binds_first(shown):
    page = shown(report(topo.load("pod-32")), viewport={"width": 360, "height": 800})
    badge = page.ask(
        "() => { const {left, right} = document.querySelector('.badge').getBoundingClientRect();"
        " return [left, right]; }"
    )
    assert 0 <= badge[0] < badge[1] <= 360


def test_data_paths_that_run_alike_have_one_timeline(shown):
    page = shown(report(topo.load("kv-cache")))
    headings = page.ask(
        "() => [...document.querySelectorAll('#timeline h3')].map((each) => each.textContent)"
    )
    assert headings == [
        "pinned, pageable, p2pdma and direct: all done after 1.002 s",
        "compat: all done after 1.002 s",
    ]
    assert len(page.ask("() => [...document.querySelectorAll('#moments li')]")) == 2


@pytest.mark.parametrize("width", [1440, 2560])
def test_letters_of_who_fills_what_are_not_stretched(shown, width):
    page = shown(
        report(topo.load("dgx-h100"), workload="load"),
        viewport={"width": width, "height": 900},
    )
    scale = page.ask(
        "() => { const svg = document.querySelector('#flow svg');"
        " return svg.getBoundingClientRect().width / svg.viewBox.baseVal.width; }"
    )
    assert scale == pytest.approx(1, abs=0.02)


def test_every_pair_of_a_server_is_seen_without_scrolling(shown):
    page = shown(report(topo.load("dgx-a100")), viewport={"width": 1440, "height": 900})
    hidden = page.ask(
        "() => { const box = document.querySelector('#locality').parentElement;"
        " return box.scrollWidth - box.clientWidth; }"
    )
    assert hidden <= 0


def test_what_is_first_painted_measures_no_shape(shown):
    """A browser that is asked where a shape lies lays the page out again, for each of them."""
    page = shown(report(topo.load("dgx-h100")))
    page.page.add_init_script(
        "globalThis.asked = 0; const {getBBox} = SVGGraphicsElement.prototype;"
        " SVGGraphicsElement.prototype.getBBox = function () {"
        " globalThis.asked++; return getBBox.call(this); };"
    )
    page.open()
    assert page.ask("() => globalThis.asked") == 0


@pytest.mark.parametrize(
    "fragment",
    [
        "#workload=%E0%A4%A&via=%00&beside=%3Cb%3E&set==&set=x&set==5",
        "#workload=nobody&via=p2pdma&beside=p2pdma",
        "#workload=load&via=constructor&beside=__proto__&set=__proto__%3D5&set=slot1%2Fchip%3D1e5",
        "#line-0x",
        "#",
    ],
)
def test_a_link_with_anything_in_it_opens(shown, fragment):
    page = shown(report(topo.load("gds-textbook")))
    page.open(fragment)
    assert page.page.inner_text("#rate") == "100 GB/s"
    assert page.ask("() => topo.model.changes.size") == 0


# --- how sure the answer is -----------------------------------------------------------------------


def chosen(page, workload: str, path: str) -> str:
    """Choose an answer, and return what the page says of how sure it is."""
    page.ask(
        "([workload, path]) => { const {model} = topo;"
        " model.workload = model.page.workloads.findIndex((each) => each.name === workload);"
        " model.ask(model.workload,"
        " model.question.paths.findIndex((each) => each.data_path === path)); }",
        [workload, path],
    )
    page.wait(f"document.querySelector('#doubt').dataset.of === '{workload} by {path}'")
    return page.page.inner_text("#doubt")


def test_doubt_is_of_the_chosen_answer_in_topos_words(shown):
    whole = report(topo.load("l40s-two-switches"))
    page = shown(whole)
    kinds = set()
    for answer in whole.doubt.answers:
        said = chosen(page, answer.workload.name, answer.answer.name)
        nominal = f"{rate_words(answer.answer)}, {time_words(answer.answer)}"
        kinds.add(answer.certain)
        if answer.certain:
            assert f"{nominal}, whatever is uncertain: " in said
            assert page.ask("() => document.querySelector('#doubt svg')") is None
            continue
        assert f"At 90 %: {range_words(answer)}; as figures are, {nominal}." in said
        assert advice_words(answer) in said
        words = page.page.get_attribute("#doubt svg", "aria-label")
        for swing in answer.swings:
            rates = f"{format_rate(swing.low_rate)} with its least"
            settles = f"settles {settles_words(swing)}"
            assert f"{band_name(swing.band)}, {band_ends(swing.band)}: {rates}" in words
            assert settles in words
            assert settles in said
        assert said.count("It is about achievable rates") == 1
    assert kinds == {True, False}


def test_doubt_of_another_data_path_is_a_command(shown):
    page = shown(report(topo.load("dgx-h100")))
    said = chosen(page, "load", "mmap")
    assert "This page has it of legacy and direct alone." in said
    assert "topo doubt dgx-h100 --workload load --via mmap" in said


def test_sliders_have_no_part_in_the_doubt_and_the_page_says_so(shown):
    page = shown(report(topo.load("dgx-h100"), at="achievable"))
    before = chosen(page, "load", "legacy")
    assert "achievable" not in before, "as all of the page is"
    assert "Sliders" not in before
    page.ask(
        "() => topo.model.change(topo.model.resources.find("
        "(each) => each.id === 'ram0/bus').knob, '90')"
    )
    page.wait("document.querySelector('#doubt .changed-note') !== null")
    after = page.page.inner_text("#doubt")
    assert after.startswith("Sliders have no part in this: it is about the file as written.")
    assert after.endswith(before)


def test_names_and_sources_in_the_doubt_are_text(shown):
    text = "<img src=x onerror=alert(1)>"
    figure = f"{{value: 40 GB/s, range: 20-50 GB/s, kind: guess, source: '{text}'}}"
    box = ONE_SOCKET.replace("ram0: dram", f"ram0: {{part: dram, bus: {figure}}}")
    page = shown(report(topo.loads(box), workload="load", via=["legacy"]))
    page.page.click("#doubt summary")
    assert text in page.page.inner_text("#doubt")
    assert page.ask("() => document.querySelector('#doubt img')") is None


@needs_axe
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["gds-textbook", "l40s-two-switches"])
def test_axe_has_nothing_to_say(shown, scheme, name):
    page = shown(report(topo.load(name)), color_scheme=scheme, bypass_csp=True)
    page.ask(AXE.read_text(encoding="utf-8"))
    assert page.ask(AUDIT) == []
