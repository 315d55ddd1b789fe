"""Answers as JSON: units in the names, unknown is null and listed, the same bytes every time.

Any of topo's frozen values can be written: its fields in their order, each under its name and unit,
or what `_SHAPES` says of its type, where documents show less, more, or in another order.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from topo.catalogue.fields import FIELDS, quantity_of
from topo.catalogue.part import Figure, Part
from topo.phrases import ranges, visible
from topo.views.keys import Document, figure_keys, number, words_of

if TYPE_CHECKING:
    from topo.catalogue.needs import Need
    from topo.description.description import ModelNeed, Workload
    from topo.study.answers import PathAnswer, RoutedPath, Rung
    from topo.study.diff import AnswerPair, FieldChange
    from topo.study.inventory import Fact
    from topo.study.needs import Checkpointing, Moved
    from topo.study.prices import ClassPrice, Prices, TiedPrice
    from topo.study.upgrade import Outcome, Upgrades

Shape: TypeAlias = "tuple[str | Callable[[Any], Document], ...]"

_MOST_NAMES: Final = 10_000  # ends that are listed one by one


def encoded(
    document: Mapping[str, Any], *, folder: str | Sequence[str] = "", dense: bool = False
) -> str:
    """Return a document as JSON text that ends in a line break.

    Numbers have at most twelve digits, or are exact where they are whole or `Exact`; infinite and
    undefined ones are null.

    Parameters
    ----------
    document
        Mappings, sequences, texts, numbers and topo's frozen values.
    folder
        A folder that is nobody's business, or several: each is taken off every path.
    dense
        Whether it is one line without spaces.
    """
    layout: dict[str, Any] = {"separators": (",", ":")} if dense else {"indent": 2}
    text = json.dumps(plain(document), ensure_ascii=False, allow_nan=False, **layout)
    text = visible(text, controls=False)  # JSON's escapes are the same
    for path in filter(None, (folder,) if isinstance(folder, str) else folder):
        text = text.replace(json.dumps(f"{path}/", ensure_ascii=False)[1:-1], "")
    return f"{text}\n"


def plain(value: object) -> Any:
    """Return a value as JSON has it: mappings, lists, texts, numbers, flags and null.

    Examples
    --------
    >>> from topo.errors import Place
    >>> plain({"place": Place("box.yaml", 3, 5, 9), "rates": (1e11, float("inf"))})
    {'place': {'file': 'box.yaml', 'line': 3, 'column': 5}, 'rates': [100000000000, None]}
    """
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return number(value)
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    spelled = _TEXTS.get(type(value).__name__)
    return spelled(value) if spelled else plain(keys_of(value))


def keys_of(value: Any, *shape: str | Callable[[Any], Document]) -> Document:
    """Return the keys of a frozen value; with `shape` those that it lists, as in `_SHAPES`."""
    document: Document = {}
    entries = shape or _SHAPES.get(type(value).__name__)
    for entry in entries or [field.name for field in fields(value)]:
        if not isinstance(entry, str):
            document |= entry(value)
            continue
        for word in words_of(entry):
            document |= keys_of(word.item(value)) if word.beside else word.keys(value)
    return document


def size_keys(workload: Workload) -> Document:
    """Return a workload's bytes, and a note where nobody said how many."""
    note = None if workload.sized else "no size is said: rates only"
    return {"bytes": workload.size if workload.sized else None, "note": note}


def _ends(names: tuple[str, ...]) -> Sequence[str]:
    """Return the names of a workload's ends, very many of them as ranges."""
    return ranges(names) if len(names) > _MOST_NAMES else names


def _joined(workload: Workload) -> Document:
    """Return what a workload joins; of a collective also what the GPUs do together."""
    ends: Document = {"from": _ends(workload.sources), "to": _ends(workload.targets)}
    if workload.collective:
        ends |= {"collective": workload.collective, "root": workload.root or None}
    return ends


def _facts(part: Part) -> Document:
    figures = {
        key: figure_keys(figure, FIELDS[key].quantity.unit) for key, figure in part.figures.items()
    }
    sourced = {
        name: {
            key: {"value": value, "source": part.sources.get(key, part.source) or None}
            for key, value in facts.items()
        }
        for name, facts in (("flags", part.flags), ("facts", part.facts))
    }
    return {"figures": figures, **sourced}


def endpoint_key(near_end: str) -> str:
    """Return how keys call what is filled or emptied: ``gpu``, anything else ``endpoint``."""
    return "gpu" if near_end == "gpu" else "endpoint"


def _length(path: PathAnswer) -> Document:
    lengths: Document = {
        "logical_hops": path.logical_hops,
        "logical_hops_range": path.hops_range,
        "physical_links": path.physical_links,
        "physical_links_range": path.links_range,
    }
    if path.rate is None:
        lengths = dict.fromkeys(lengths)
    return lengths | {"waypoints": path.routes[0].waypoints if path.routes else ()}


def _in_target(path: PathAnswer) -> Document:
    """Return what the hosts of drives that are elsewhere do, counted apart from the endpoint's."""
    if path.target_path is None or path.rate is None:
        return {}
    from topo.datapaths.registry import count

    counts, size = count(path.target_path), path.target_size
    target = {
        "data_path": path.target_path.name,
        **keys_of(counts),
        "dram_bytes_per_byte": counts.dram_bytes,
        "ram_traffic_bytes": None if size is None else size * counts.ram_traversals,
    }
    return {"target": target}


def _cores(path: PathAnswer) -> Document:
    cores = path.cores
    return {
        "cores_needed": cores.cores if cores else None if path.rate is None else 0,
        "core_copy_bytes_per_s": cores.rate_per_core if cores else None,
        "core_copy_source": cores.source if cores else None,
    }


def _routed_length(routed: RoutedPath) -> Document:
    refused, first = routed.verdict == "refused", routed.routes[0]
    return {
        "logical_hops": None if refused else first.logical_hops,
        "physical_links": None if refused else first.physical_links,
        "physical_links_range": None if refused else routed.links,
    }


def _in_words(attribute: str) -> Callable[[Any], Document]:
    """Return what writes facts of `topo.study` as the sentences that say them."""

    def keys(holder: object) -> Document:
        from topo.views.sentences import sentence

        facts = getattr(holder, attribute)
        words = [sentence(fact) for fact in facts] if isinstance(facts, tuple) else sentence(facts)
        return {attribute: words}

    return keys


def _met(path: PathAnswer | Outcome) -> Document:
    """Return what comes of what a model asks for, under the name of what it is."""
    return {} if path.met is None else {type(path.met).__name__.lower(): path.met}


def _model_need(need: ModelNeed) -> Document:
    if need.asks == "kv-cache":
        return {"tokens": need.tokens}
    each = {"accelerators_each": need.accelerators or 1} if need.asks == "needs" else {}
    return {**each, **keys_of(need, "accelerator?")}


def _need_figures(need: Need) -> Document:
    return {
        "figures": {
            key: figure_keys(figure, quantity_of(key).unit) for key, figure in need.figures.items()
        },
        "steps": {key: figure_keys(step, "s") for key, step in need.steps.items()},
        "rates": {key: need.rate(key) for key in need.steps},
        "kv_cache_of_a_token": need.token and figure_keys(need.token, "bytes"),
    }


def _rule(_: Checkpointing) -> Document:
    from topo.study.needs import RULE

    return {"rule": RULE}


def _moved_tokens(moved: Moved) -> Document:
    if not moved.tokens or moved.token is None:
        return {}
    return {
        "tokens": moved.tokens,
        "tokens_per_s": moved.tokens / moved.time,
        "token": figure_keys(moved.token, "bytes"),
    }


def _rung_classes(rung: Rung) -> Document:
    from topo.views.resources import class_words

    classes = [
        {"class": kind, "words": class_words(kind, len(group)), "resources": group}
        for kind, group in rung.classes
    ]
    return {"classes": classes}


def _price_sentences(prices: Prices) -> Document:
    from topo.views.prices import price_sentences

    return {"sentences": price_sentences(prices)}


def _class_price(price: ClassPrice) -> Document:
    from topo.views.prices import class_price
    from topo.views.resources import class_words

    return {
        "class": price.kind,
        "words": class_words(price.kind, len(price.resources)),
        "resources": price.resources,
        "one": keys_of(
            price, "single.gain single.cost single_time.saved:saved_s single_time.lost:lost_s"
        ),
        "together": keys_of(price, _TOGETHER),
        "sentence": class_price(price),
    }


def _tied_price(price: TiedPrice) -> Document:
    from topo.views.prices import tied_price

    steps = zip(price.resources, price.steps, strict=True)
    return {
        "resources": [{**keys_of(resource), "step": step} for resource, step in steps],
        **keys_of(price, _TOGETHER),
        "sentence": tied_price(price),
    }


def _ranking(upgrades: Upgrades) -> Document:
    from topo.views.sentences import upgrade_reason

    ranked = [
        {
            "title": upgrade.title,
            "kinds": [candidate.kind for candidate in upgrade.parts],
            "set": upgrade.changes,
            "data_path": upgrade.via or upgrades.via,
            **keys_of(upgrade, "cables count cost *outcome"),
            "reason": upgrade_reason(upgrades, upgrade),
        }
        for upgrade in upgrades.ranked
    ]
    rejected = [
        {**keys_of(candidate, "kind title changes:set via?:data_path"), "reason": reason}
        for candidate, reason in upgrades.rejected
    ]
    return {"upgrades": ranked, "rejected": rejected, "not_asked": upgrades.unasked}


def _field_change(change: FieldChange) -> Document:
    """Return a fact before and after, a figure in its own unit."""

    def fact(fact: Fact | None) -> object:
        if isinstance(fact, Figure):
            return figure_keys(fact, quantity_of(change.key).unit)
        return fact

    return {"key": change.key, "before": fact(change.before), "after": fact(change.after)}


def _answer_pair(pair: AnswerPair) -> Document:
    from topo.views.sentences import pair_sentence

    sides = {
        side: None if path is None else keys_of(path, _IN_BRIEF, _in_words("own_limits"), _met)
        for side, path in (("before", pair.before), ("after", pair.after))
    }
    return {
        **keys_of(pair, "data_path outcome times_as_fast"),
        **sides,
        "sentence": pair_sentence(pair),
    }


_TOGETHER: Final = (
    "at_most together.gain together.cost together.range_up "
    "together_time.saved:saved_s together_time.lost:lost_s next_bound"
)
_OF_COLLECTIVE: Final = "bus_rate:busbw_bytes_per_s collective"  # its algbw is the rate
_DONE: Final = "finish duration:time_s"
_IN_BRIEF: Final = "verdict reasons rate at_most time *counts bottlenecks tied unknowns:unknown"


# What documents show of each type, in their order: words as `topo.views.keys` reads them, of which
# `*a` writes the keys of what `a` holds beside the others, and functions that return keys.
_SHAPES: Final[Mapping[str, Shape]] = {
    "Place": ("file line column",),
    "Finding": (
        "code severity message help? notes place.file place.line place.column place.end_column?",
    ),
    # The machine and the catalogue.
    "Figure": (figure_keys,),
    "PeerCap": ("*rate per_flow",),
    "Slot": ("generation lanes kind source",),
    "Ports": ("count kind source medium rate:rate",),
    "Medium": (
        "name title? family reach rate:rate per_lane transfer_rate:transfer_rate encoding?",
        "bytes_per_transfer efficiency duplex dma source?",
    ),
    "Part": ("kind title? source?", _facts, "slot:pcie ports fabric peer_caps"),
    "Device": (
        "name part.name:part label? role? slot_name?:slot pci rdma numa outside place *part",
    ),
    "Link": (
        "a b cable.medium cable.count:cables cable.lanes layer forward.id:forward",
        "backward.id:backward cable.efficiency cable.duplex cable.p2p:peer_caps place",
    ),
    "Fabric": ("name kind tiers place",),
    "Tier": (
        "switches below:below_bytes_per_s above:above_bytes_per_s storage:storage_bytes_per_s",
        "oversubscription highest:highest_oversubscription",
    ),
    "Resource": ("name:resource direction? kind:class device",),
    # Data paths and routes.
    "Policy": (
        "nics routes",
        lambda policy: (
            {"buffers": dict(policy.buffers)}
            | ({"pairing": policy.pairing} if policy.pairing else {})
        ),
    ),
    "Counts": ("ram_traversals cpu_memory_copies core_copies",),
    "Move": ("source:from target:to mover:by rate.value:rate_bytes_per_s per_worker",),
    "Reason": ("code effect text place instead?",),
    "RoutedPath": (
        "workload.name workload.direction verdict reasons",
        lambda routed: {"stopped": routed.stopped} if routed.stopped else {},
        _routed_length,
    ),
    "Subflow": (
        "share far:storage card?:nic",
        lambda subflow: {"memories": dict(subflow.memories)},
        "transfers:moves",
    ),
    "Transfer": (
        "move.source:from move.target:to move.mover:by engine source target",
        lambda transfer: {
            "links": [
                {"from": step.source, "to": step.target, "medium": step.link.cable.medium}
                for step in transfer.walk
            ]
        },
        "alternatives:equal_walks",
    ),
    # Answers.
    "Workload": (
        "name direction",
        size_keys,
        _joined,
        "efficiency",
        lambda workload: {} if workload.need is None else {"need": workload.need},
    ),
    "WorkloadAnswer": (
        "*workload paths",
        _in_words("insights"),
        lambda answer: keys_of(answer, "bound") if answer.workload.collective else {},
    ),
    "Laid": ("name:collective bus_factor in_switch rings hops",),
    "Ring": ("order:gpus share",),
    "Hop": ("source:from target:to data_path weight:bytes_per_byte",),
    "CollectiveBound": (
        "rate:algbw_bytes_per_s bus_rate:busbw_bytes_per_s",
        lambda bound: {"resources": [resource.name for resource in bound.resources]},
    ),
    "PathAnswer": (
        "name:data_path data_path.title verdict reasons",
        lambda path: (
            keys_of(path, "stopped stopped_count:stopped_endpoints") if path.stopped else {}
        ),
        _length,
        "*counts",
        _in_target,
        "ram_traffic ram_floor dram_bytes dram_floor rate start_rate at_most time",
        "time_range:time_range_s bottlenecks tied",
        _in_words("own_limits"),
        lambda path: {
            f"rates_by_{endpoint_key(path.data_path.near_end)}_bytes_per_s": path.rates,
        },
        lambda path: {
            "rates_by_basis_bytes_per_s": {basis: path.rate_at(basis) for basis in path.by_basis},
            "at_most_by_basis": dict(path.at_most_by_basis),
        },
        "serial_rate",
        _cores,
        "unknowns:unknown unlimited",
        lambda path: {} if path.collective is None else keys_of(path, _OF_COLLECTIVE),
        _met,
    ),
    "Bottleneck": (
        "*resource capacity load figure_basis:basis figure.kind figure.source",
        "resource.limited_by? stops",
        lambda full: {"at_most": True} if full.figure.at_most else {},
    ),
    "Rung": ("rate time at_most", _rung_classes),
    "RoutingBound": (
        "rate reached",
        lambda bound: {"resources": [resource.name for resource in bound.resources]},
    ),
    "Share": (
        "demands",
        lambda share: {
            f"{endpoint_key(share.demands[0].route.data_path.near_end)}s": [
                demand.endpoint for demand in share.demands
            ],
            "count": len(share.demands),
        },
        "rate at_most share stopped_by",
    ),
    "Use": (
        "resources",
        lambda use: {
            "count": len(use.resources),
            "capacity_bytes_per_s": use.capacity,
            "unlimited": use.capacity == math.inf,
            **({"at_most": True} if use.at_most else {}),
        },
        "load utilisation users:used_by",
    ),
    "Prices": (
        "total fair_total:max_min_total_bytes_per_s time at_most classes tie",
        _price_sentences,
    ),
    "ClassPrice": (_class_price,),
    "TiedPrice": (_tied_price,),
    "Run": (
        "workload.name:workload data_path",
        lambda run: {"bytes": None if run.goes_on else run.workload.size},
        "start",
        lambda run: dict.fromkeys(("finish_s", "time_s")) if run.goes_on else keys_of(run, _DONE),
        "at_most",
    ),
    "CutOff": ("workload data_path endpoints count whole",),
    "Moment": ("start end rates:workloads",),
    "WorkloadRate": (
        "workload rate",
        lambda rate: {f"{endpoint_key(rate.near_end)}s": rate.endpoints},
        "stopped_by at_most",
    ),
    "FailedPart": ("kind names count first",),
    "Loss": (
        "parts:fails rate time stopped stopped_count:stopped_endpoints bound:bottlenecks at_most",
        _in_words("own_limits"),
        "fed?",
    ),
    "Change": ("section sort:change names count fields",),
    "FieldChange": (_field_change,),
    "Word": (
        lambda word: {
            "value": word.text or (None if word.flag is None else word.flag),
            "source": word.source or None,
        },
    ),
    "AnswerPair": (_answer_pair,),
    "Outcome": (
        lambda outcome: (
            {"time_s": None, "times_s": None}
            if outcome.rate is not None
            else keys_of(outcome, "time times")
        ),
        _met,
        "rate? at_most bound:bottlenecks",
    ),
    "Upgrades": (
        "topology basis",
        lambda upgrades: {"workloads": [workload.name for workload in upgrades.workloads]},
        "via:data_path now",
        _ranking,
        "certified",
    ),
    "Judgement": ("expectation.text holds", _in_words("outcome"), "expectation.place"),
    # What models ask for, and what comes of it.
    "Need": ("name title? source?", _need_figures),
    "ModelNeed": ("asks model.name:model", _model_need),
    "Feeding": (
        "model utilisation count:accelerators fed unknown:need_unknown room:would_feed",
        "supply:supply_bytes_per_s supply_at_most bound:supply_bottlenecks kinds",
    ),
    "Kind": ("accelerator? count rate:need rates:rates_bytes_per_s",),
    "Checkpointing": (
        "model accelerators mttf mtbf:mtbf_s write:write_s interval:best_interval_s",
        "writing:writing_s_a_day repeating:repeating_s_a_day lost:lost_s_a_day rule_holds",
        _rule,
    ),
    "Moved": ("model size:bytes time", _moved_tokens),
    # Affinity, measurements, other programs' rules.
    "Affinities": (
        "topology rules gpus",
        lambda affinities: {
            "devices": [
                {
                    "device": device,
                    "for": purpose,
                    "rdma": affinities.topology[device].rdma,
                    "gpus": gpus,
                    "as_near_to": affinities.would_do_for(purpose, device),
                }
                for purpose, users in affinities.users.items()
                for device, gpus in users.items()
            ]
        },
    ),
    "GpuAffinity": ("gpu cpu? numa:numa_nodes choices",),
    "Configuration": (
        "server.names:servers server.purpose:for server.processes:gpus",
        lambda told: {"worth": told.advice.worth},
    ),
    "Worth": (
        "via settings",
        lambda worth: {"by_itself": {"slowest": worth.slowest, "fastest": worth.fastest}},
        "is_same:same",
    ),
    "Throughput": ("rate at_most bound:bottlenecks",),
    "Process": ("gpu number cards nearness:near cpu? numa:numa_nodes",),
    "Choice": ("purpose:for device rdma also *nearness shared_with as_near",),
    "Nearness": ("label:near links rate at_most",),
    "Reading": (
        "sample.test sample.source:from sample.target:to sample.both:both_directions",
        "sample.via?:data_path forecast.locality? forecast.theoretical:theoretical_bytes_per_s",
        "forecast.achievable:achievable_bytes_per_s forecast.at_most",
        "sample.rate:measured_bytes_per_s",
        "ratio:ratio_to_achievable judged forecast.limit:limited_by forecast.refused?",
        "sample.unwritten?:not_written_because",
    ),
    "MeasuredLine": ("source:from target:to rate origin:source date?",),
    "Path": ("type", lambda path: {"bandwidth_bytes_per_s": path.bandwidth * 1e9}, "hops"),
    "GdsPeer": ("name:peer distance bandwidth?:link_index rank crosses:through_root_complex",),
}
_TEXTS: Final[Mapping[str, Callable[[Any], str]]] = {
    "Topology": attrgetter("name"),
    "Demand": attrgetter("name"),
    "End": str,
}
