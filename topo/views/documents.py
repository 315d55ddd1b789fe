"""The JSON document of each verb: a schema's name, and topo's own values under their keys.

`topo.views.json` says how the values in them are written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from topo.phrases import ranges
from topo.sweeps.rows import row_of
from topo.topology.capacities import ram_headline, ram_rate
from topo.topology.resources import Resource
from topo.topology.tiers import networks
from topo.topology.topology import Topology
from topo.views.json import endpoint_key, keys_of, size_keys
from topo.views.keys import Document, figure_keys

if TYPE_CHECKING:
    from topo.catalogue.needs import Need
    from topo.catalogue.part import Medium, Part
    from topo.description.description import Basis
    from topo.description.measured_edit import MeasuredLine
    from topo.errors import Finding
    from topo.routes.route import Route
    from topo.study.affinity import Affinities
    from topo.study.answers import Comparison, Ladder, PathRoutes, RoutedPath, WorkloadAnswer
    from topo.study.bands import Band
    from topo.study.check import Judgement
    from topo.study.diff import Diff
    from topo.study.doubt import Doubt, PathDoubt, Swing
    from topo.study.failures import Failures
    from topo.study.front import Swept
    from topo.study.machines import MachineSummary
    from topo.study.prediction import Reading
    from topo.study.prices import Explanation
    from topo.study.timeline import AtOnce, Simulation
    from topo.study.upgrade import Upgrades
    from topo.topology.rules import GdsPeer, NcclNumbers, Path
    from topo.views.diagram.picture import Picture
    from topo.views.explain import Page


def findings_document(findings: Iterable[Finding]) -> Document:
    """Return ``topo.findings/1``: each finding with its place; null for what it has not."""
    return {"schema": "topo.findings/1", "findings": tuple(findings)}


def topology_document(topology: Topology, document: Mapping[str, Any]) -> Document:
    """Return ``topo.show/1``: devices, links, tiers and resources, figures with kind and source.

    Parameters
    ----------
    topology
        The machine.
    document
        What its file says, in the file's own shape: `topo.build` takes it back.
    """
    resources = topology.all_resources
    return {
        "schema": "topo.show/1",
        "topology": topology.name,
        "title": topology.title,
        "devices": tuple(topology.devices.values()),
        "links": topology.links,
        "fabrics": topology.description.fabrics,
        "networks": networks(topology),
        "resources": [
            {"id": resource.id, **keys_of(resource), **keys_of(resource, "limited_by? *capacity")}
            for resource in resources
        ],
        "ram_bytes_per_s": ram_rate(topology),
        "ram_headline_bytes_per_s": ram_headline(topology),
        "unknown": [resource.id for resource in resources if resource.capacity.theoretical.unknown],
        "document": document,
    }


def matrix_document(
    topology: Topology,
    classes: Mapping[str, Mapping[str, str]],
    *,
    numa: Mapping[str, Iterable[int]],
) -> Document:
    """Return ``topo.matrix/1``: the class of every pair; null where nothing joins the two.

    Parameters
    ----------
    topology
        The machine.
    classes
        Class by row and column.
    numa
        OS numbers of the NUMA nodes that each row is attached to.
    """
    return {
        "schema": "topo.matrix/1",
        "topology": topology,
        "matrix": {
            row: {column: name or None for column, name in columns.items()}
            for row, columns in classes.items()
        },
        "numa_affinity": {row: list(numa[row]) or None for row in classes},
    }


def nccl_document(
    topology: Topology, paths: Mapping[str, Mapping[str, Path | None]], numbers: NcclNumbers
) -> Document:
    """Return ``topo.matrix.nccl/1``: type, bandwidth and hops of every pair, null for no way."""
    return {
        "schema": "topo.matrix.nccl/1",
        "topology": topology,
        "release": numbers.release,
        "source": numbers.source,
        "matrix": paths,
    }


def gds_document(topology: Topology, ranking: Mapping[str, Sequence[GdsPeer]]) -> Document:
    """Return ``topo.matrix.gds/1``: each GPU's peers, the best first."""
    return {"schema": "topo.matrix.gds/1", "topology": topology, "gpus": ranking}


def affinity_document(affinities: Affinities) -> Document:
    """Return ``topo.affinity/1``: each GPU's cards and drives, and each of those with its GPUs."""
    return {"schema": "topo.affinity/1", **keys_of(affinities)}


def catalogue_document(
    parts: Iterable[Part], media: Iterable[Medium], needs: Iterable[Need] = ()
) -> Document:
    """Return ``topo.parts/1``: parts, media and needs, each figure with kind and source."""
    return {
        "schema": "topo.parts/1",
        "parts": [{"name": part.name, **keys_of(part)} for part in parts],
        "media": list(media),
        "needs": list(needs),
    }


def machines_document(machines: Iterable[MachineSummary]) -> Document:
    """Return ``topo.machines/1``: the machines that topo ships."""
    shape = "name title group notice? devices links workloads drives appliances outside"
    return {
        "schema": "topo.machines/1",
        "machines": [
            {
                **keys_of(machine, shape),
                "gpus": sum(machine.gpus.values()),
                "gpu_parts": dict(machine.gpus),
                "card_parts": dict(machine.cards),
            }
            for machine in machines
        ],
    }


def check_document(topology: Topology, judgements: Sequence[Judgement]) -> Document:
    """Return ``topo.check/1``: each sentence of `expect:` and whether it holds."""
    return {
        "schema": "topo.check/1",
        "topology": topology,
        "devices": len(topology.devices),
        "links": len(topology.links),
        "expectations": judgements,
    }


def paths_document(
    topology: Topology, surveys: Sequence[PathRoutes], *, basis: Basis, routes: bool = False
) -> Document:
    """Return ``topo.paths/1``: data paths with their moves, counts and verdicts.

    Parameters
    ----------
    topology
        The machine.
    surveys
        The data paths, laid.
    basis
        Which figure of each capacity is shown beside a route's use of it.
    routes
        Whether to add the links walked and the use of each resource.
    """

    def uses(route: Route) -> Iterator[Document]:
        extra = {resource.id: resource for resource in route.extra}
        for name, weight in route.use.items():
            resource: Resource = topology.resources.get(name) or extra[name]
            capacity = resource.capacity
            yield {
                **keys_of(resource),
                "bytes_per_byte": weight,
                "basis": capacity.used(basis),
                **figure_keys(capacity.at(basis), "capacity_bytes_per_s"),
            }

    def workload(routed: RoutedPath) -> Document:
        if not routes:
            return keys_of(routed)
        shown = "verdict reasons waypoints subflows:branches"
        laid = [
            {
                endpoint_key(route.data_path.near_end): route.endpoint,
                **keys_of(route, shown),
                "use": list(uses(route)),
            }
            for route in routed.routes
        ]
        return {**keys_of(routed), "routes": laid}

    shown = (
        "name:data_path title source stages workers needs falls_back_to? to_other_servers? moves"
    )
    return {
        "schema": "topo.paths/1",
        "topology": topology,
        "data_paths": [
            {
                **keys_of(survey.data_path, shown),
                **keys_of(survey, "*counts counts.dram_bytes:dram_bytes_per_byte"),
                "workloads": [workload(routed) for routed in survey.workloads],
            }
            for survey in surveys
        ],
    }


def collective_document(comparison: Comparison) -> Document:
    """Return ``topo.collective/1``: each collective by every data path, as ``topo.compare/1``."""
    return {**comparison_document(comparison), "schema": "topo.collective/1"}


def comparison_document(comparison: Comparison, meeting: AtOnce | None = None) -> Document:
    """Return ``topo.compare/1``: every workload by every data path.

    `meeting` adds when each is done if all run at once, as ``together``.
    """
    from topo.views.sentences import at_once_sentence

    together = meeting and {
        "paths": [
            {
                "data_path": name,
                "at_most": name in meeting.at_most,
                "end_s": simulation.end,
                "finishes_s": {
                    run.workload.name: None if run.goes_on else run.finish
                    for run in simulation.runs
                },
            }
            for name, simulation in meeting.runs
        ],
        "sentence": at_once_sentence(meeting),
    }
    return {
        "schema": "topo.compare/1",
        **keys_of(comparison, "topology basis policy workloads"),
        "together": together,
        "certified": comparison.certified,
    }


def bottleneck_document(ladder: Ladder, explained: Explanation | None = None) -> Document:
    """Return ``topo.bottleneck/1``: what binds one workload by one data path, and what is next.

    `explained` adds who gets what, what is used by whom, and prices: ``gain`` and ``cost`` are
    bytes/s of the total for one byte/s of the resource; ``together`` is for each byte/s on every
    one of the class.
    """
    from topo.views.sentences import sentence, sentences

    answer = ladder.answer
    return {
        "schema": "topo.bottleneck/1",
        **keys_of(ladder, "topology basis workload.name:workload workload.direction"),
        **size_keys(ladder.workload),
        **keys_of(
            answer, "name:data_path verdict reasons rate start_rate at_most time bottlenecks tied"
        ),
        **(keys_of(answer, "stopped stopped_count:stopped_endpoints") if answer.stopped else {}),
        "own_limits": sentences(answer.own_limits),
        f"rates_by_{endpoint_key(answer.data_path.near_end)}_bytes_per_s": answer.rates,
        "ladder": ladder.rungs,
        "ladder_end": sentence(ladder.end).removesuffix("."),
        "any_routing": ladder.any_routing,
        **(
            keys_of(explained, "prices.rule shares:demands uses:resources prices")
            if explained
            else {"demands": (), "resources": (), "prices": None}
        ),
        "unknown": answer.unknowns,
        "certified": answer.certified,
    }


def simulation_document(simulation: Simulation) -> Document:
    """Return ``topo.simulate/1``: runs, spans, and when each demand is done."""
    return {
        "schema": "topo.simulate/1",
        **keys_of(simulation, "topology basis"),
        **_timeline(simulation),
    }


def together_document(simulations: Sequence[tuple[str, Simulation]]) -> Document:
    """Return ``topo.together/1``: the same workloads at once, by each data path."""
    return {
        "schema": "topo.together/1",
        **keys_of(simulations[0][1], "topology basis"),
        "paths": [{"data_path": name, **_timeline(simulation)} for name, simulation in simulations],
    }


def _timeline(simulation: Simulation) -> Document:
    """Return the keys of a timeline, and who is cut off where something is out of order."""
    cut_off = keys_of(simulation, "cut_off") if simulation.cut_off else {}
    return {**keys_of(simulation, _TIMELINE), **cut_off}


_TIMELINE: Final = "end at_most runs moments:spans finishes unknowns:unknown certified"


def upgrades_document(upgrades: Upgrades) -> Document:
    """Return ``topo.upgrade/1``: what is, each change with its overrides, what was rejected."""
    return {"schema": "topo.upgrade/1", **keys_of(upgrades)}


def failures_document(failures: Failures) -> Document:
    """Return ``topo.failures/1``: the answer with nothing failed, and what each failure leaves."""
    words = "workload.name:workload answer.name:data_path answer.rate answer.time answer.at_most"
    return {"schema": "topo.failures/1", **keys_of(failures, "topology basis", words, "losses")}


def diff_document(diff: Diff, failed: Sequence[str] = ()) -> Document:
    """Return ``topo.diff/1``: what differs, and every answer before and after.

    `failed` are the words of ``--fail-on`` that hold.
    """
    return {
        "schema": "topo.diff/1",
        **keys_of(diff, "before after basis changed"),
        "failed": failed,
        "changes": diff.changes,
        "workloads": [
            {"before": before, "after": after, "paths": diff.pairs_of(before or after)}
            for before, after in diff.workloads
        ],
    }


def sweep_document(swept: Swept) -> Document:
    """Return ``topo.sweep/1``: the axes, a row for each design, and the numbers of the best."""
    sweep = swept.sweep
    return {
        "schema": "topo.sweep/1",
        "topology": sweep.topology,
        "sweep": sweep.fingerprint,
        "axes": {axis.name: [choice.label for choice in axis.choices] for axis in sweep.axes},
        "aim": swept.aim,
        "against": swept.against or None,
        "verdicts": swept.verdicts,
        "front": [design.number for design in swept.front],
        "best": [design.number for design in swept.best[:1]],
        "without_effect": swept.without_effect,
        "designs": [row_of(sweep, number, outcome) for number, outcome in swept.outcomes.items()],
    }


def doubt_document(doubt: Doubt) -> Document:
    """Return ``topo.doubt/1``: each answer's range, what each band does, what to measure first.

    The range holds `level` of `draws` draws of all bands at once, or more.
    """
    from topo.study.doubt import DRAWS, LEVEL

    return {
        "schema": "topo.doubt/1",
        **keys_of(doubt, "topology basis"),
        "level": LEVEL,
        "draws": DRAWS,
        "bands": [_band(band) for band in doubt.bands],
        "answers": [_path_doubt(answer) for answer in doubt.answers],
    }


def _band(band: Band) -> Document:
    from topo.views.bands import band_name, band_origin

    unit = band.quantity.unit
    return {
        "name": band_name(band),
        **keys_of(band, "key owners"),
        f"value_{unit}": band.figure.value,
        f"low_{unit}": band.low,
        f"high_{unit}": band.high,
        **keys_of(band, "figure.kind figure.source stated"),
        "width": band_origin(band),
    }


def _path_doubt(doubt: PathDoubt) -> Document:
    from topo.views.bands import band_name, measurement_of

    def keys(swing: Swing) -> Document:
        return {
            "band": band_name(swing.band),
            **keys_of(swing, "low_rate high_rate"),
            "low_bottlenecks": ranges(resource.id for resource in swing.low_binds),
            "high_bottlenecks": ranges(resource.id for resource in swing.high_binds),
            **keys_of(swing, "settles"),
        }

    best = doubt.best
    how = measurement_of(best, doubt) if best else None
    return {
        **keys_of(doubt, "workload.name:workload answer.name:data_path answer.verdict"),
        **keys_of(doubt, "answer.rate answer.time at_most"),
        "rate_range_bytes_per_s": doubt.rate_range,
        "time_range_s": doubt.time_range,
        "extremes_bytes_per_s": doubt.extremes,
        "swings": list(map(keys, doubt.swings)),
        "without_effect": [band_name(band) for band in doubt.idle],
        "unknown": [
            {"resource": unknown.resource.id, "matters_below_bytes_per_s": unknown.load}
            for unknown in doubt.unknown
        ],
        "measure_first": best
        and {
            "band": band_name(best.band),
            "settles": best.settles,
            "command": how and how.command,
            "then": how and how.then,
        },
    }


def measured_document(
    topology: Topology,
    kind: str,
    readings: Sequence[Reading],
    lines: Sequence[MeasuredLine],
    unmapped: Sequence[str],
) -> Document:
    """Return ``topo.measure/1``: each rate beside what was expected, and what was written."""
    return {
        "schema": "topo.measure/1",
        "topology": topology,
        "kind": kind,
        "readings": readings,
        "measured": lines,
        "not_mapped": unmapped,
    }


def picture_document(
    topology: Topology, picture: Picture, file: str, answer: WorkloadAnswer | None
) -> Document:
    """Return ``topo.draw/1``: the file written, its size, and whose routes by which paths it shows.

    `answer` is `None` for the machine alone.
    """
    return {
        "schema": "topo.draw/1",
        "topology": topology,
        "file": file,
        **keys_of(picture, "width:width_points height:height_points"),
        "workload": answer.workload.name if answer else None,
        "data_paths": [path.name for path in answer.paths] if answer else (),
    }


def explanation_document(page: Page) -> Document:
    """Return ``topo.explain/1`` for one word: what it is about, and its page."""
    return {"schema": "topo.explain/1", **keys_of(page)}


def words_document(words: Mapping[str, Sequence[str]]) -> Document:
    """Return ``topo.explain/1`` without a word: every word that has a page, by subject."""
    return {"schema": "topo.explain/1", "words": words}
