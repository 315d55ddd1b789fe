"""The document of a report, which drives the page and is what ``topo report --json`` prints."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from topo.catalogue.fields import FIGURE_KEYS
from topo.flows.demands import stage_limit
from topo.study.answers import OwnLimit
from topo.study.bottleneck import NOT_FOR_SALE
from topo.views.documents import comparison_document
from topo.views.json import Shape, keys_of
from topo.views.keys import Document, Exact
from topo.views.report.doubt import doubt_part
from topo.views.resources import CLASS_WORDS
from topo.views.sentences import cited, sentence

if TYPE_CHECKING:
    from topo.description.description import Basis
    from topo.flows.demands import Demand, UseMatrix
    from topo.study.report import PathReport, Report
    from topo.study.timeline import Simulation
    from topo.topology.resources import Resource
    from topo.topology.topology import Link, Topology


# Of the data paths that `topo compare` does not ask about by itself; the page computes the rest.
_OTHER_PATHS: Final[Shape] = (
    "name:data_path data_path.title verdict",
    lambda path: {"waypoints": path.routes[0].waypoints if path.routes else ()},
    "logical_hops physical_links *counts dram_bytes rate start_rate at_most time",
    lambda path: {"cores_needed": path.cores.cores if path.cores else 0},
)


class ResourceTable:
    """The resources of a report, each once, by the places that matrices and pictures name.

    Resources of the machine come first; what a route brings along (a stage, a limit) follows.
    """

    def __init__(self, topology: Topology, basis: Basis) -> None:
        self.topology, self.basis = topology, basis
        self.resources: list[Resource] = []
        self._places: dict[tuple[str, float], int] = {}
        self._of_device: dict[str, list[int]] = {}
        self._of_link: list[list[int]] = []
        self._bundles: dict[tuple[str, str], list[Link]] = {}  # what is cabled alike in one line
        for link in topology.links:
            if link.forward is not None:
                ends = (link.a.device, link.b.device)
                self._bundles.setdefault(ends, []).append(link)
        self._link_of: dict[str, Link] = {}
        links: set[str] = set()
        for link in topology.links:
            directions = list(filter(None, (link.forward, link.backward)))
            joint = filter(None, (topology.both_ways.get(way.id) for way in directions))
            together = dict.fromkeys((*directions, *joint))
            self._of_link.append(list(map(self._placed, together)))
            links |= {resource.id for resource in together}
            if link.forward is not None and topology.folding is None:
                self._link_of[link.forward.id] = link
        for resource in topology.all_resources:
            if resource.id not in links:
                place = self._placed(resource)
                self._of_device.setdefault(resource.device, []).append(place)

    def _placed(self, resource: Resource) -> int:
        """Return where a resource stands, or what is named for it and all that are alike."""
        if self.topology.folding is not None and resource.id in self.topology.alike_resources:
            resource = self.topology.alike_resources[resource.id].resource
        return self.place(resource, resource.capacity.rate(self.basis))

    def place(self, resource: Resource, capacity: float) -> int:
        """Return where a resource of that capacity stands, which may be new."""
        key = (resource.id, capacity)
        if key not in self._places:
            self._places[key] = len(self.resources)
            self.resources.append(resource)
        return self._places[key]

    def of_device(self, device: str) -> list[int]:
        """Return the places of what a device has by itself, its links apart."""
        return self._of_device.get(device, [])

    def of_link(self, number: int) -> list[int]:
        """Return the places of a link's two directions, and of both at once where that counts."""
        return self._of_link[number]

    def document(self) -> Document:
        """Return each resource with its figure at the basis, and what its slider moves.

        `source` is the place of kind, source and limit in the list of those; what is no, none or
        unknown of the other keys is left out, and so is a name that is the `id`.
        """
        knobs = self._knobs()
        sources: dict[tuple[str, str, str], int] = {}
        ends = {
            resource.id: (a, b)
            for link in self.topology.links
            for resource, a, b in (
                (link.forward, link.a.device, link.b.device),
                (link.backward, link.b.device, link.a.device),
            )
            if resource is not None
        }
        rows = []
        for place, resource in enumerate(self.resources):
            figure, capacity = resource.capacity.at(self.basis), resource.capacity.rate(self.basis)
            guess, used = resource.capacity.achievable, resource.capacity.used(self.basis)
            source, target = ends.get(resource.id, (None, None))
            optional = {
                "resource": resource.name if resource.name != resource.id else None,
                "direction": resource.direction,
                "count": resource.count if resource.count > 1 else None,
                "from": source,
                "to": target,
                "unlimited": capacity == math.inf and not figure.unknown,
                "at_most": figure.at_most,
                "unknown": figure.unknown,
                "guess_bytes_per_s": guess.value
                if figure.unknown and guess is not None and not guess.unknown
                else None,
                "basis": used if used != self.basis else None,
                "line": _line(self.topology, resource.place),
                "set": self._set(resource) if knobs[place] == place else None,
            }
            origin = (figure.kind, figure.source, resource.limited_by)
            rows.append(
                {
                    "id": resource.id,
                    **keys_of(resource, "kind:class device"),
                    "capacity_bytes_per_s": Exact(capacity),
                    "source": sources.setdefault(origin, len(sources)),
                    "knob": knobs[place],
                    **{key: value for key, value in optional.items() if value},
                }
            )
        return {
            "sources": [
                {"kind": kind, "source": source, **({"limited_by": limit} if limit else {})}
                for kind, source, limit in sources
            ],
            "resources": rows,
        }

    def _set(self, resource: Resource) -> list[str | int] | None:
        """Return what ``--set`` writes before a rate, and of how many cables that rate is.

        `None` where no one key says it: what stands for many, or goes by what was measured.
        """
        device, _, side = resource.name.rpartition("/")
        if device in self.topology.devices and side in FIGURE_KEYS:
            return [f"{device}.{side}=", 1]
        link = self._link_of.get(resource.id)
        if link is None or resource.capacity.used(self.basis) == "measured":
            return None
        bundle = self._bundles[link.a.device, link.b.device]
        if len(bundle) == 1:
            return [f"{link.name}.rate=", link.cable.count]
        if len({(link.place, link.cable) for link in bundle}) > 1:
            return None
        return [f"{link.a.device} -- {link.b.device}.rate=", link.cable.count]

    def _knobs(self) -> list[int]:
        """Return for each resource the first of those that one figure of the file decides.

        Both directions of a link or of a card's chip are one thing to buy, and so are cables
        between the same two devices that one line of the file makes.
        """
        firsts = list(range(len(self.resources)))
        bundles: dict[tuple[object, ...], int] = {}
        for number, link in enumerate(self.topology.links):
            bundle = (link.a.device, link.b.device, link.place, link.cable)
            for place in self.of_link(number):
                firsts[place] = bundles.setdefault(bundle, place)
        chips: dict[str, int] = {}
        for place, resource in enumerate(self.resources):
            if resource.kind == "nic-chip":
                firsts[place] = chips.setdefault(resource.name, place)
        return firsts


def report_document(report: Report, *, command: Sequence[str]) -> Document:
    """Return ``topo.report/1``: ``topo compare``'s answers, and all that the page computes with.

    `resources` are listed once, and so are `matrices`, which name them by their places; a path has
    the place of its own, null where it is refused. Numbers that are computed with have all their
    digits, so that whoever solves it again gets topo's own answer.

    Parameters
    ----------
    report
        What it says.
    command
        The words after ``topo compare`` that ask the same.
    """
    topology, basis = report.topology, report.comparison.basis
    table = ResourceTable(topology, basis)
    compared = comparison_document(report.comparison, report.together)
    matrices: list[Document] = []
    workloads = []
    for shown, plain_answer in zip(report.workloads, compared["workloads"], strict=True):
        usual = keys_of(plain_answer)
        usual["paths"] = [_path(topology, path, table, matrices) for path in shown.paths]
        workloads.append(usual)
    timelines = [
        _timeline(name, simulation, table, matrices)
        for name, simulation in (report.together.runs if report.together else ())
    ]
    return {
        **compared,
        "schema": "topo.report/1",
        "title": topology.title,
        "command": list(command),
        "asks_workload": bool(topology.description.workloads)
        and all(
            answer.workload in topology.description.workloads
            for answer in report.comparison.workloads
        ),
        "workloads": workloads,
        "timelines": timelines,
        "doubt": doubt_part(report.doubt),
        "matrices": matrices,
        "classes": {
            kind: {"one": words[0], "many": words[1], "for_sale": kind not in NOT_FOR_SALE}
            for kind, words in CLASS_WORDS.items()
        },
        "devices": [
            {
                "name": device.name,
                "kind": device.kind,
                "label": device.label or None,
                "title": device.part.title or device.part.name,
                "line": _line(topology, device.place),
            }
            for device in topology.devices.values()
        ],
        "localities": report.localities,
        **table.document(),
        "file": topology.description.file,
        "changes": {
            key: value
            for key, value in topology.description.overrides.items()
            if isinstance(value, str)
        },
    }


def _line(topology: Topology, place: Any) -> int | None:
    """Return the line of the machine's own file at which something stands."""
    document = topology.description.document
    return place.line if place and document and place.file == document.name else None


def _path(
    topology: Topology, path: PathReport, table: ResourceTable, matrices: list[Document]
) -> Document:
    answer = path.answer
    definition = answer.data_path
    demands = answer.matrix.demands if answer.matrix else ()
    model = next((demand.model for demand in demands), "")
    workers = OwnLimit(definition.workers, definition.stages == "serial", definition.near_end)
    pairs: dict[str, dict[str, float | None]] = {}
    for pair in path.pairs:
        pairs.setdefault(pair.far, {})[pair.endpoint] = pair.rate
    ladder = {
        "ladder": [
            {
                **keys_of(rung, "rate time at_most"),
                "resources": [resource.id for resource in rung.resources],
            }
            for rung in path.ladder
        ],
        "ladder_end": sentence(path.end).removesuffix(".") if path.end else None,
        "pairs_bytes_per_s": pairs,
    }
    bound = {"bottlenecks": [bottleneck.resource.id for bottleneck in answer.bottlenecks]}
    return {
        **keys_of(answer, *(() if path.usual else _OTHER_PATHS)),
        **(bound if path.usual else {}),
        "usual": path.usual,
        "why": [cited(topology, reason) for reason in answer.reasons],
        "limit_words": [sentence(OwnLimit(model=model)), sentence(workers)],
        **(ladder if path.usual else {}),
        "matrix": None if answer.matrix is None else _matrix(answer.matrix, table, matrices),
    }


def _matrix(matrix: UseMatrix, table: ResourceTable, matrices: list[Document]) -> int:
    """Return where a use matrix stands among `matrices`: in compressed rows, null is no limit."""
    system = matrix.system
    demands = matrix.demands
    serial: Document = {}
    if any(demand.route.data_path.stages == "serial" for demand in demands):
        serial["stages"] = [_stages(demand, table) for demand in demands]
        serial["workers"] = [demand.route.data_path.workers for demand in demands]
    document = {
        "resources": [
            table.place(resource, resource.capacity.rate(matrix.basis))
            for resource in matrix.resources
        ],
        "starts": list(system.starts),
        "columns": list(system.resources),
        "multiplicities": _numbers(system.multiplicities),
        "weights": _numbers(system.weights),
        "limits": _numbers(system.limits),
        "own_limits": _numbers([demand.own_limit for demand in demands]),
        **serial,
        "sizes": _numbers([demand.size for demand in demands]),
        "arrivals": _numbers([demand.start for demand in demands]),
        "workloads": [demand.workload for demand in demands],
        "endpoints": [demand.names for demand in demands],
        "counts": [demand.count for demand in demands],
    }
    if document not in matrices:
        matrices.append(document)
    return matrices.index(document)


def _stages(demand: Demand, table: ResourceTable) -> list[Document] | None:
    """Return the stages that one worker does one after the other; `None` where they overlap."""
    route = demand.route
    if route.data_path.stages != "serial":
        return None
    return [
        {
            "share": Exact(subflow.share),
            "rate": stage_limit(table.topology, transfer),
            "uses": [
                [
                    table.place(resource, resource.capacity.rate(table.basis)),
                    Exact(transfer.use[name]),
                ]
                for name, resource in route.resources(table.topology, transfer.use).items()
            ],
        }
        for subflow in route.subflows
        for transfer in subflow.transfers
    ]


def _numbers(values: Iterable[float]) -> list[float | None]:
    return [Exact(value) if math.isfinite(value) else None for value in values]


def _timeline(
    name: str, simulation: Simulation, table: ResourceTable, matrices: list[Document]
) -> Document:
    assert simulation.matrix is not None, "it was run"
    return {
        "data_path": name,
        **keys_of(simulation, "end at_most runs certified"),
        "matrix": _matrix(simulation.matrix, table, matrices),
    }
