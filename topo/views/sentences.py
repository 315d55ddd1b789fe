"""The facts of `topo.study` in the words of the field."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import singledispatch
from typing import TYPE_CHECKING, Final

from topo.errors import Finding
from topo.phrases import counted, listed, ranges, shortened
from topo.solve.system import TIE
from topo.study import answers, insights
from topo.units import format_duration, format_rate, format_size
from topo.views.resources import binds, class_words, classes_of, limited_by, plural

if TYPE_CHECKING:
    from topo.routes.route import Reason
    from topo.study.check import Judgement
    from topo.study.diff import AnswerPair
    from topo.study.prediction import Sample
    from topo.study.timeline import AtOnce, Simulation
    from topo.study.upgrade import Upgrade, Upgrades
    from topo.topology.resources import Resource
    from topo.topology.topology import Topology


ENDPOINT_WORDS: Final[dict[str, tuple[str, str]]] = {
    "gpu": ("GPU", "GPUs"),
    "ram": ("memory", "memories"),
    "card": ("network card", "network cards"),
    "storage": ("drive", "drives"),
}
"""What is filled or emptied: one, and several."""

_MOST: Final = 4  # names in a list before "and 3 more"


def cited(topology: Topology, reason: Reason) -> str:
    """Return a reason's sentence, with file and line where another file than the machine's says it.

    cufile.json and gdscheck's text say things of the host; what the machine's own file says, its
    reader has before him.
    """
    place, document = reason.place, topology.description.document
    own_files = (document.name if document else "", "--set")
    if place is None or not place.line or place.file in own_files:
        return reason.text
    if place.file.endswith((".yaml", ".yml")):
        return reason.text
    return f"{reason.text} ({place.file}:{place.line})"


def _an_endpoint(path: answers.PathAnswer) -> str:
    return f"a {ENDPOINT_WORDS[path.data_path.near_end][0]}"


def rate_words(path: answers.PathAnswer) -> str:
    """Return "at most 50 GB/s"; nothing for a refused path."""
    return "" if path.rate is None else "at most " * path.at_most + format_rate(path.rate)


def bus_rate_words(path: answers.PathAnswer) -> str:
    """Return "at most 46.4 GB/s" for the bus bandwidth of a collective; nothing for another."""
    return "" if path.bus_rate is None else "at most " * path.at_most + format_rate(path.bus_rate)


def time_words(path: answers.PathAnswer) -> str:
    """Return "at least 6.4 s"; nothing for a refused path, or where nobody said a size."""
    return "" if path.time is None else "at least " * path.at_most + format_duration(path.time)


def limit_words(path: answers.PathAnswer) -> str:
    """Return what stops a path: "the cards' chips and the RAM buses", else its own limits."""
    return listed(_classes(path.bound) or sentences(path.own_limits), most=_MOST)


def _classes(resources: Iterable[Resource]) -> list[str]:
    counts: Counter[str] = Counter()
    for resource in resources:
        counts[resource.kind] += resource.count
    return [class_words(kind, count) for kind, count in counts.items()]


def caption(path: answers.PathAnswer) -> str:
    """Return what a picture says of a path: its rate, its time, what limits it."""
    busbw = f"busbw {bus_rate_words(path)}" if path.bus_rate else ""
    figures = ", ".join(filter(None, (rate_words(path), busbw, time_words(path))))
    return ": limited by ".join(filter(None, (figures, limit_words(path))))


def caption_after(path: answers.PathAnswer, before: answers.PathAnswer) -> str:
    """Return what a picture says of a path when something failed, and of the same `before`."""
    figures = ", ".join(filter(None, (rate_words(before), time_words(before))))
    left = caption(path)
    return f"{left}{'; w' if left else 'W'}ith nothing failed {figures}"


# --- one fact, one sentence -----------------------------------------------------------------------


@singledispatch
def sentence(fact: object) -> str:
    """Return a fact of `topo.study.answers` in words.

    What follows from a comparison is a whole sentence, with its full stop; why a ladder ends, what
    stops a demand by itself and what came of an expectation are parts of one.
    """
    raise TypeError(f"no words for a {type(fact).__name__}")


def sentences(facts: Iterable[object]) -> tuple[str, ...]:
    """Return facts in words, one after another."""
    return tuple(map(sentence, facts))


@sentence.register
def _refused(fact: insights.Refused) -> str:
    path = fact.path
    reasons = [reason for reason in path.reasons if reason.effect == "refused"]
    why = listed((cited(fact.topology, reason) for reason in reasons), most=_MOST)
    taken_instead = dict.fromkeys(reason.instead for reason in reasons)
    if all(taken_instead):
        return f"{path.name} becomes {listed(taken_instead, most=_MOST)}: {why}."
    ending = f"; it falls back to {fact.fallback}" if fact.fallback else ""
    settings = {fact.topology.settings_of(route.endpoint).compat_mode for route in path.routes}
    if fact.fallback == "compat" and settings == {"off"}:
        ending = "; with its compatibility mode off cuFile returns an error"
    return f"{path.name} is refused: {why}{ending}."


@sentence.register
def _not_known(fact: insights.NotKnown) -> str:
    reasons = [reason for reason in fact.path.reasons if reason.effect == "unknown"]
    why = listed((cited(fact.topology, reason) for reason in reasons), most=_MOST)
    return f"Whether {fact.path.name} works here is not known: {why}."


@sentence.register
def _ok_slower(fact: insights.OkSlower) -> str:
    reasons = [reason for reason in fact.path.reasons if reason.effect == "slower"]
    why = listed((cited(fact.topology, reason) for reason in reasons), most=_MOST)
    return f"{fact.path.name} works, but is slower than it could be: {why}."


@sentence.register
def _slower_cards(fact: insights.SlowerCards) -> str:
    several, path = len(fact.cards) > 1, fact.path
    at_most = "at most " * path.at_most
    without, best = f"{at_most}{format_rate(fact.without)}", f"{at_most}{format_rate(fact.best)}"
    return (
        f"{listed(fact.cards, most=_MOST)} {'slow' if several else 'slows'} {path.name} down to "
        f"{_rate(path)}, since every card of {_an_endpoint(path)} carries the same: without "
        f"{'them' if several else 'it'} there are {without}, by --nics best {best}."
    )


@sentence.register
def _idle_links(fact: insights.IdleLinks) -> str:
    carry = "carries" if len(fact.links) == 1 else "carry"
    return (
        f"{listed(fact.links, most=_MOST)} {carry} nothing: of ways that are equally short, data "
        "takes the widest."
    )


@sentence.register
def _against(fact: insights.NoFaster | insights.Faster | insights.Slower) -> str:
    path, rival = fact.path, fact.rival
    if isinstance(fact, insights.Faster) and path.at_most:
        against = f"{rate_words(path)} against {rate_words(rival)}"
        return f"Whether {path.name} is faster than {rival.name} is not known: {against}."
    # a bound proves that a path loses, and never that one wins
    unproven = rival.at_most or (path.at_most and isinstance(fact, insights.NoFaster))
    known = "By the known capacities alone, " * unproven
    if isinstance(fact, insights.NoFaster):
        end = f"both stop at {limited_by(fact.shared)}," if fact.shared else "both reach"
        also = ""
        if fact.shared and fact.only_rival:
            be = "are" if plural(fact.only_rival) else "is"
            also = f"; on {rival.name} {limited_by(fact.only_rival)} {be} full as well"
        return f"{known}{path.name} is no faster than {rival.name} here: {end} {_rate(path)}{also}."
    slower = path if isinstance(fact, insights.Slower) else rival
    why = limited_by(slower.bound) or listed(sentences(slower.own_limits), most=_MOST)
    if isinstance(fact, insights.Slower):
        by = f": it stops at {why}" if why else ""
        apart = path.finish_apart or rival.finish_apart  # then no moment has these rates
        figures = " against ".join(
            time_words(side) if apart else rate_words(side) for side in (path, rival)
        )
        return f"{known}{path.name} loses to {rival.name}, {figures}{by}."
    by = f", which stops at {why}" if why else ""
    ratio = f"{'at least ' * rival.at_most}{fact.ratio:.2f}"
    return f"{path.name} is {ratio} times as fast as {rival.name}{by}."


def _rate(path: answers.PathAnswer) -> str:
    return format_rate(path.rate or 0.0)


@sentence.register
def _measured_otherwise(fact: insights.MeasuredOtherwise) -> str:
    does = {"faster": "beats", "same": "is no faster than", "slower": "loses to"}[fact.result]
    bounds = (path.at_most_by_basis["measured"] for path in (fact.path, fact.rival))
    words = zip(fact.rates, bounds, strict=True)
    rates = " against ".join("at most " * bound + format_rate(rate) for rate, bound in words)
    return (
        f"By what was measured, {fact.path.name} {does} {fact.rival.name}: {rates} (--at measured)."
    )


@sentence.register
def _of_a_model(fact: insights.NeedMet | answers.Fed) -> str:
    from topo.views.needs import fed_words, need_sentence

    path = fact.path
    if isinstance(fact, insights.NeedMet):
        return need_sentence(path)
    words = f"it feeds {fed_words(path)}, limited by {limit_words(path)}"
    return words + f": {_unknown(path)}" * path.at_most


@sentence.register
def _through_ram(fact: insights.ThroughRam) -> str:
    path, traversals = fact.path, fact.path.counts.ram_traversals
    times = {1: "once", 2: "twice"}.get(traversals, f"{traversals} times")
    start = f"{path.name} takes every byte through RAM {times}"
    if path.ram_traffic is None or path.dram_bytes is None:
        return f"{start}: {path.counts.dram_bytes} bytes on the memory buses per payload byte."
    return (
        f"{start}: {format_size(path.ram_traffic)} through buffers{_floor(path.ram_floor)}, "
        f"{format_size(path.dram_bytes)} on the memory buses{_floor(path.dram_floor)}."
    )


def _floor(seconds: float | None) -> str:
    return f" (at least {format_duration(seconds)})" if seconds else ""


@sentence.register
def _cores_busy(fact: insights.CoresBusy) -> str:
    cores = fact.cores
    count = f"{cores.cores:.0f}" if cores.cores >= 10 else f"{cores.cores:.2g}"  # noqa: PLR2004
    words = "1 core" if count == "1" else f"{count} cores"
    # what sort of figure it is, without the whole source: `topo show` has that
    kind = cores.source.partition(":")[0]
    sort = {"guess": "a guess", "formula": "computed"}.get(kind, kind)
    per_core = format_rate(cores.rate_per_core)
    most = "at most " * fact.path.at_most
    return f"{fact.path.name} keeps {most}about {words} busy copying ({per_core} a core, {sort})."


@sentence.register
def _all_at_once(fact: insights.AllAtOnce) -> str:
    at_most = "at most " * fact.path.at_most
    which, alone = ("each", "one alone") if fact.alike else ("the slowest", "alone it")
    return (
        f"All at once, {which} of {fact.hosts} hosts has {at_most}{format_rate(fact.each)} by "
        f"{fact.path.name}; {alone} has {format_rate(fact.alone)} "
        f"({fact.alone / fact.each:.3g}:1)."
    )


@sentence.register
def _no_algorithm(fact: insights.NoAlgorithm) -> str:
    bound, best = fact.bound, fact.best
    cut = limited_by(bound.resources)
    more = f"no algorithm has a busbw over {format_rate(bound.bus_rate)}: {cut} let no more pass"
    reached = (best.bus_rate or 0.0) >= bound.bus_rate * (1 - TIE)
    if reached and not best.at_most:
        return f"By any medium, {more}, and {best.name} comes up to it."
    return f"By any medium, {more}."


@sentence.register
def _not_by_nccl(fact: insights.NotByNccl) -> str:
    hops = listed(ranges(f"{source} -> {target}" for source, target in fact.hops), most=_MOST)
    level = "SYS" if "SYS" in fact.classes else "PHB"  # NCCL has no NODE
    classes = listed(fact.classes, "or")
    return (
        f"For {fact.path.name} set NCCL_P2P_LEVEL={level}: by itself NCCL goes through RAM where "
        f"GPUs are {classes} to each other, as {hops}."
    )


@sentence.register
def _no_rdma_by_nccl(fact: insights.NoRdmaByNccl) -> str:
    names = listed(path.name for path in fact.paths)
    pairs = listed(ranges(f"{gpu} to {card}" for gpu, card in fact.pairs), most=_MOST)
    level = "SYS" if "SYS" in fact.classes else "PHB"  # NCCL has no NODE
    return (
        f"For {names} set NCCL_NET_GDR_LEVEL={level}: by itself NCCL goes through RAM "
        f"where a GPU and its network card are {listed(fact.classes, 'or')} to each other, as "
        f"{pairs}."
    )


@sentence.register
def _fallen_back(fact: insights.FallenBack) -> str:
    instead = listed(
        f"{name} takes its place from "
        + listed(ranges(f"{source} -> {target}" for source, target in pairs), most=_MOST)
        for name, pairs in fact.hops
    )
    return f"Not all can go by {fact.path.name}: {instead}."


@sentence.register
def _serial_worker(fact: insights.SerialWorker) -> str:
    most, least = "at most " * fact.path.at_most, "at least " * fact.path.at_most
    faster = f"; {fact.direct.name} is {least}{fact.ratio:.1f} times as fast"
    return (
        f"With one worker {_an_endpoint(fact.path)} that does one stage after the other, "
        f"{fact.path.name} reaches {most}{format_rate(fact.rate)}"
        f"{'' if fact.direct.at_most else faster}."
    )


@sentence.register
def _unlimited(fact: insights.NotModelled | insights.TakenAsUnlimited) -> str:
    if isinstance(fact, insights.TakenAsUnlimited):
        return f"Taken as unlimited: {listed(fact.resources, most=_MOST)}."
    names = listed(fact.storages, most=_MOST)
    if len(fact.storages) == 1:
        return f"{names} is not modelled: its own rate is taken as unlimited."
    return f"{names} are not modelled: their own rates are taken as unlimited."


@sentence.register
def _own_limit(limit: answers.OwnLimit) -> str:
    if not limit.workers:
        return f"what {limit.model} asks for" if limit.model else "the workload's own limit"
    workers = "its one worker" if limit.workers == 1 else f"its {limit.workers} workers"
    each = f"a {ENDPOINT_WORDS[limit.endpoint][0]}"
    return f"{workers} {each}" + ", one stage after the other" * limit.serial


@sentence.register
def _ladder_end(end: answers.LadderEnd) -> str:
    if end.why == "unlimited":
        return "nothing else in the file limits"
    if end.why == "own-limits":
        limits = [sentence(limit) for limit in end.own_limits]
        return f"{listed(limits)} {'is' if len(limits) == 1 else 'are'} all that is left"
    return f"{' and '.join(_classes(end.resources))} cannot be bought apart from the GPU"


# --- what came of an expectation ------------------------------------------------------------------


@sentence.register
def _routing_bound(bound: answers.RoutingBound) -> str:
    rate, cut = format_rate(bound.rate), limited_by(bound.resources)
    if bound.reached:
        most = f"more than {rate} cannot pass {cut}" if cut else f"all may take {rate}, no more"
        return f"Other cards, routes or buffers would not help: {most}."
    where = f", where {cut} {binds(bound.resources)}" if cut else ""
    return (
        f"Other cards, routes or buffers might reach more, at most {rate}{where}: --nics, --routes "
        "and --buffers choose them."
    )


@sentence.register
def _out_of_order(fact: answers.OutOfOrder) -> str:
    return fact.message


@sentence.register
def _verdict(fact: answers.PathRefused | answers.VerdictIs) -> str:
    if isinstance(fact, answers.VerdictIs):
        return f"its verdict is {fact.verdict}"
    why = (reason.text for reason in fact.reasons if reason.effect == "refused")
    return f"{fact.data_path} is refused: {listed(why, most=_MOST)}"


@sentence.register
def _time_or_rate(fact: answers.TimeOrRate) -> str:
    time = fact.quantity == "time"
    value = format_duration(fact.value) if time else format_rate(fact.value)
    if not fact.path.at_most:
        return f"it is {value}"
    return f"it is {'at least' if time else 'at most'} {value}: {_unknown(fact.path)}"


@sentence.register
def _limited_by(fact: answers.LimitedBy) -> str:
    full = limited_by(fact.path.bound)
    text = f"it is limited by {full or 'limits of its own'}"
    return f"{text} at most: {_unknown(fact.path)}" if fact.path.at_most else text


@sentence.register
def _two_rates(fact: answers.TwoRates) -> str:
    rates = ", ".join(
        f"{path.name} {has}{'at most ' * path.at_most}{_rate(path)}"
        for path, has in ((fact.path, "has "), (fact.rival, ""))
    )
    return f"{rates}: {_unknown(fact.path)}" if fact.path.at_most else rates


def _unknown(path: answers.PathAnswer) -> str:
    return f"the capacity of {listed(ranges(path.unknowns), most=_MOST)} is unknown"


@sentence.register
def _other_localities(fact: answers.OtherLocalities) -> str:
    return listed(
        (f"{first} to {second} is {name or 'not joined'}" for first, second, name in fact.pairs),
        most=_MOST,
    )


def broken_expectations(judgements: Iterable[Judgement]) -> tuple[Finding, ...]:
    """Return a finding for every expectation that does not hold."""
    return tuple(
        Finding(
            "expectation-failed",
            f"expected {judgement.expectation.text}; {sentence(judgement.outcome)}",
            place=judgement.expectation.place,
        )
        for judgement in judgements
        if not judgement.holds
    )


# --- time and change ------------------------------------------------------------------------------


def at_once_sentence(together: AtOnce) -> str:
    """Return who is done when, and which data path is first."""
    (name, best), *slower = together.ranked
    if not slower:
        by, done = _done([best])
        return f"Run together{by and f' {by},'} {done}."
    # a bound proves that a path loses, and never that one wins
    same = together.result == "same"
    unproven = bool(together.at_most) if same else best.at_most
    start = "Run together, " + "by the known capacities alone " * unproven
    of_groups = [
        _done([run for by, run in together.runs if by in names]) for names, _ in together.alike
    ]
    (by, done), *later = of_groups
    if by:
        by = f"{name} wins: " if together.result == "wins" else f"{by}{' alike' * same}, "
    words = [start + by + done]
    for (by, done), (_, simulation) in zip(later, together.alike[1:], strict=True):
        words.append(f"{by and f'{by}, '}{done}{_stopped_together(simulation)}")
    return "; ".join(words) + "."


def _stopped_together(simulation: Simulation) -> str:
    """Return what workloads share while several run, else what limits each."""
    if simulation.shared:
        return f", sharing {classes_of(simulation.shared)}"
    return f", limited by {classes_of(simulation.bound)}" if simulation.bound else ""


def _done(simulations: Sequence[Simulation]) -> tuple[str, str]:
    """Return the data paths of runs that come out alike, and when each workload is done.

    Where not all workloads go by the same ones, each says its own.
    """
    runs = list(zip(*(simulation.runs for simulation in simulations), strict=True))
    data_paths = [tuple(dict.fromkeys(run.data_path for run in of_one)) for of_one in runs]
    same = len(set(data_paths)) == 1
    words: list[str] = []
    for (run, *_), names in zip(runs, data_paths, strict=True):
        if not run.goes_on:
            by = "" if same else f" (by {listed(names, 'or')})"
            done = done_words(run.finish, at_most=run.at_most)
            words.append(f"{run.workload.name}{by} {'' if words else 'is done '}{done}")
    return "" if not same else f"by {listed(data_paths[0], 'or')}", listed(words, most=6)


def done_words(seconds: float, *, at_most: bool) -> str:
    """Return "at 6.4 s", or "after at least 6.4 s" past an unknown capacity."""
    return ("after at least " if at_most else "at ") + format_duration(seconds)


def pair_sentence(pair: AnswerPair) -> str:
    """Return what became of an answer, and what bound before and binds now."""
    before, after = pair.before, pair.after
    start = f"{pair.workload} by {pair.data_path}"
    if before is None or after is None:
        return f"{start} is asked about {'after' if before is None else 'before'} only."
    if before.rate is None or after.rate is None:
        refused = after if after.rate is None else before
        why = listed(
            (reason.text for reason in refused.reasons if reason.effect == "refused"), most=_MOST
        )
        if pair.outcome == "same":
            return f"{start} is refused before and after: {why}."
        if pair.outcome == "refused":
            return f"{start} is refused now, {rate_words(before)} before: {why}."
        return f"{start} is possible now, {rate_words(after)}: before it was refused, {why}."
    known = "by the known capacities alone " * pair.unproven
    limits = [limited_by(path.bound) or limit_words(path) for path in (before, after)]
    if pair.outcome == "same":
        still = f"{start} is {known}as fast as before, {rate_words(after)}"
        if limits[0] == limits[1]:
            return f"{still}: {limits[1]} still {_bind(after)}."
        return f"{still}: {limits[0]} before, now {limits[1]}."
    ratio = pair.times_as_fast or 0.0
    least = "at least " * (before.at_most and ratio > 1)
    timed = pair.alike and before.time is not None
    words = f"{start} is {known}{least}{ratio:.3g} times as fast"
    if ratio < 1:
        slower = f"takes {1 / ratio:.3g} times as long" if timed else f"has {ratio:.3g} of the rate"
        words = f"{start} {known}{slower}"
    figures = [time_words(path) if timed else rate_words(path) for path in (before, after)]
    words += f", {figures[1]} instead of {figures[0]}"
    if limits[0] == limits[1]:
        return f"{words}: {limits[1]} {_bind(after)} before and after."
    return f"{words}: {limits[0]} before, now {limits[1]}."


def _bind(path: answers.PathAnswer) -> str:
    return binds(path.bound) if path.bound else "limits it"


def upgrade_reason(upgrades: Upgrades, upgrade: Upgrade) -> str:
    """Return why a change helps or not."""
    before, now = upgrades.now, upgrade.outcome
    bound = classes_of(now.bound) or "nothing stated"
    if now.time < before.time * (1 - TIE):
        bound_before = classes_of(before.bound) or "nothing stated"
        if bound != bound_before:
            return f"{bound_before} before, now {bound}"
        return f"still {bound}, at a higher rate"
    return f"slower: {bound}" if now.time > before.time * (1 + TIE) else f"still {bound}"


def measured_ends(sample: Sample) -> str:
    """Return between what a rate was measured: ``ram0 -> gpu0``."""
    if sample.workers and sample.source == sample.target:
        return f"{counted(sample.workers, 'core')}, within {shortened(sample.source)}"
    if sample.source == sample.target:  # several devices together
        return shortened(sample.source)
    joint = " and " if sample.both else " -> "
    return joint.join(listed(names, most=_MOST) for names in (sample.source, sample.target))
