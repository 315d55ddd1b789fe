"""What a notebook shows of topo's values, and what programs take from them.

The questions behind are asked here: a document holds what the verb's ``--json`` holds, when all
workloads run at once, and prices, and the answer itself does not carry them.
"""

from __future__ import annotations

from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from topo.description.as_document import to_document
from topo.errors import Finding, LibraryError
from topo.phrases import counted, listed, shortened
from topo.study.answers import Comparison, Ladder
from topo.study.diff import Diff
from topo.study.doubt import Doubt
from topo.study.failures import Failures
from topo.study.front import Swept
from topo.study.prices import Explanation, explain
from topo.study.timeline import Simulation, at_once
from topo.study.upgrade import Upgrades
from topo.topology.topology import Topology
from topo.views import documents
from topo.views.diagram.front import draw_front
from topo.views.diagram.sheet import draw, draw_loss
from topo.views.diagram.timeline import draw_timeline
from topo.views.diagram.tornado import draw_tornado
from topo.views.json import plain
from topo.views.markup import escaped, html
from topo.views.text.answers import bottleneck_page, comparison_page
from topo.views.text.diff import diff_page
from topo.views.text.doubt import doubt_page
from topo.views.text.failures import failures_page
from topo.views.text.page import (
    Block,
    Heading,
    Text,
    grouped,
    right,
    table,
    title_of,
    wide,
    workload_sentence,
)
from topo.views.text.sweep import sweep_page
from topo.views.text.timeline import simulation_page
from topo.views.text.upgrades import upgrades_page

if TYPE_CHECKING:
    from topo.views.diagram.picture import Picture

_ROWS = 12  # of a ranking: as many as the verbs show
_LARGE = 300  # devices: a picture of more says little in a cell of a notebook


# --- what there is of each type -------------------------------------------------------------------


class _Shown(NamedTuple):
    """How a type is shown: its page, its picture, its document, and the rows of its table.

    `pictured` is whether the page holds the picture: where it says more than a table.
    """

    page: Callable[[Any], Iterator[Block]]
    picture: Callable[[Any], Picture]
    document: Callable[[Any], Mapping[str, Any]]
    rows: Callable[[dict[str, Any]], Iterable[dict[str, Any]]]
    pictured: bool = False


def html_of(value: Any) -> str:
    """Return a value's page as HTML: small, escaped, without script."""
    shown = _SHOWN[type(value)]
    page = html(shown.page(value))
    if not shown.pictured or len(_topology_of(value).devices) > _LARGE:
        return page
    # An image runs no script, whatever is in it.
    data = b64encode(shown.picture(value).svg().encode()).decode()
    words = escaped(repr(value).strip("<>"))
    image = f'<img alt="{words}" style="max-width: 100%" src="data:image/svg+xml;base64,{data}">'
    return f"{page.removesuffix('</div>')}{image}\n</div>"


def svg_of(value: Any) -> str:
    """Return a value's picture as SVG."""
    return _SHOWN[type(value)].picture(value).svg()


def document_of(value: Any) -> dict[str, Any]:
    """Return what ``--json`` prints of a value, its findings too."""
    document = _SHOWN[type(value)].document(value)
    findings = documents.findings_document(_findings(value))["findings"]
    written: dict[str, Any] = plain({**document, "findings": findings})
    return written


def _topology_of(value: Any) -> Topology:
    topology: Topology = value if isinstance(value, Topology) else value.topology
    return topology


def _findings(value: Any) -> Iterator[Finding]:
    yield from _topology_of(value).findings
    if not isinstance(value, Topology):
        yield from getattr(value, "findings", ())


def frame_of(value: Any) -> Any:
    """Return the rows of a value's table as a `pandas.DataFrame`.

    Raises
    ------
    LibraryError
        If pandas is not installed.
    """
    try:
        import pandas
    except ImportError as error:
        raise LibraryError("pandas", "a data frame") from error
    rows = _SHOWN[type(value)].rows(document_of(value))
    return pandas.DataFrame([dict(_columns(row)) for row in rows])


def _columns(row: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the cells of a row: what is inside a mapping beside it, lists as names."""
    for key, item in row.items():
        if isinstance(item, Mapping):
            yield from _columns(item, f"{prefix}{key}.")
        elif isinstance(item, list):
            yield f"{prefix}{key}", ", ".join(map(_name_of, item))
        else:
            yield f"{prefix}{key}", item


def _name_of(item: object) -> str:
    """Return what an item of a list is called."""
    if not isinstance(item, Mapping):
        return str(item)
    names = (item[key] for key in ("resource", "words", "names", "name", "code") if key in item)
    return str(next(names, ""))


# --- pages and pictures of their own --------------------------------------------------------------


def _topology_page(topology: Topology) -> Iterator[Block]:
    """Yield what a machine has, in few rows; `topo show` has all of it."""
    yield Heading(title_of(topology))
    parts = grouped(topology.devices.values(), lambda device: (device.kind, device.part.name))
    yield table(
        ("kind", right("how many"), wide("names"), wide("part")),
        (
            (kind, str(len(devices)), shortened(device.name for device in devices), part)
            for (kind, part), devices in parts.items()
        ),
    )
    layers = Counter(link.layer for link in topology.links)
    links = listed(counted(count, f"{layer} link") for layer, count in layers.items())
    yield Text(f"{links}; {counted(len(topology.all_resources), 'resource')} that transfers share.")
    workloads = topology.description.workloads
    if workloads:
        rows = ((workload.name, workload_sentence(workload)) for workload in workloads)
        yield table(("workload", wide("what it does")), rows)


def _explained(ladder: Ladder) -> Explanation | None:
    matrix = ladder.answer.matrix
    if matrix is None:
        return None
    return explain(matrix, rule="max-min", each=False, sized=ladder.workload.sized)


def _comparison_picture(comparison: Comparison) -> Picture:
    answer = next(iter(comparison.workloads), None)
    return draw(comparison.topology, answer=answer, at=comparison.basis)


def _ladder_picture(ladder: Ladder) -> Picture:
    path = ladder.answer
    return draw(
        ladder.topology,
        routes={path.name: path.route},
        bottlenecks={path.name: tuple(resource.id for resource in path.bound)},
        at=ladder.basis,
    )


def _upgrades_picture(upgrades: Upgrades) -> Picture:
    """Return the machine as it is, with what binds."""
    bound = tuple(resource.id for resource in upgrades.now.bound)
    bottlenecks = {upgrades.via: bound}
    return draw(upgrades.topology, answer=None, bottlenecks=bottlenecks, at=upgrades.basis)


def _failures_picture(failures: Failures) -> Picture:
    """Return the worst that can fail; where nothing can, the machine with what binds."""
    if failures.losses:
        return draw_loss(failures, failures.losses[0])
    path = failures.answer
    bound = tuple(resource.id for resource in path.bound)
    return draw(failures.topology, routes={path.name: path.route}, bottlenecks={path.name: bound})


_SHOWN: Mapping[type, _Shown] = {
    Topology: _Shown(
        _topology_page,
        draw,
        lambda topology: documents.topology_document(topology, to_document(topology.description)),
        lambda document: document["resources"],
        pictured=True,
    ),
    Comparison: _Shown(
        lambda comparison: comparison_page(comparison, at_once(comparison)),
        _comparison_picture,
        lambda comparison: documents.comparison_document(comparison, at_once(comparison)),
        lambda document: (
            {"workload": workload["name"], **path}
            for workload in document["workloads"]
            for path in workload["paths"]
        ),
    ),
    Ladder: _Shown(
        lambda ladder: bottleneck_page(ladder, _explained(ladder)),
        _ladder_picture,
        lambda ladder: documents.bottleneck_document(ladder, _explained(ladder)),
        lambda document: (
            {
                **rung,
                "resources": [full for group in rung["classes"] for full in group["resources"]],
            }
            for rung in document["ladder"]
        ),
    ),
    Simulation: _Shown(
        simulation_page,
        draw_timeline,
        documents.simulation_document,
        lambda document: document["runs"],
        pictured=True,
    ),
    Diff: _Shown(
        diff_page,
        lambda diff: draw(diff.after),
        documents.diff_document,
        lambda document: (
            {"workload": (workload["after"] or workload["before"])["name"], **path}
            for workload in document["workloads"]
            for path in workload["paths"]
        ),
    ),
    Doubt: _Shown(
        doubt_page,
        draw_tornado,
        documents.doubt_document,
        lambda document: (
            {"workload": answer["workload"], "data_path": answer["data_path"], **swing}
            for answer in document["answers"]
            for swing in answer["swings"]
        ),
        pictured=True,
    ),
    Upgrades: _Shown(
        lambda upgrades: upgrades_page(upgrades, most=_ROWS),
        _upgrades_picture,
        documents.upgrades_document,
        lambda document: document["upgrades"],
    ),
    Swept: _Shown(
        lambda swept: sweep_page(swept, most=_ROWS),
        lambda swept: draw_front(swept) if swept.front else draw(swept.topology, answer=None),
        documents.sweep_document,
        lambda document: document["designs"],
        pictured=True,
    ),
    Failures: _Shown(
        lambda failures: failures_page(failures, _ROWS),
        _failures_picture,
        documents.failures_document,
        lambda document: document["losses"],
    ),
}
