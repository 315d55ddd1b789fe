"""A file that uses machines answers exactly as the same machines written out by hand."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from tests.machines import PARTS
from tests.random_machines import sketches
from topo.study.bottleneck import bottleneck
from topo.study.compare import compare
from topo.study.prices import explain
from topo.topology.build import load
from topo.topology.locality import matrix
from topo.views.documents import bottleneck_document, comparison_document, matrix_document
from topo.views.json import encoded

if TYPE_CHECKING:
    from tests.random_machines import Sketch

OUTSIDE = ("storage", "leaf")
# What one server has in another way than the rest, and the same at the device itself.
CHANGES = {
    "gpu0.p2p": ("no", "accel", "{part: accel, p2p: no}"),
    "ram0.bus": ("30 GB/s", "", ""),
    "gpu0.part": ("slow", "accel", "slow"),
}
SLOW = "  slow: {like: accel, hbm: 10 GB/s}\n"


def is_outside(name: str) -> bool:
    return name.rstrip("0123456789") in OUTSIDE


def inner_text(sketch: Sketch) -> str:
    """Write a server, its storage and switches as stand-ins."""
    lines = [PARTS + SLOW, "devices:"]
    for name, part in sketch.devices.items():
        of_part = part.strip("{}") if part.startswith("{") else f"part: {part}"
        lines.append(f"  {name}: {{{of_part}{', outside: yes' * is_outside(name)}}}")
    lines += ["links:", *(f"  - {a} -- {b}: {cable}" for a, b, cable in sketch.links)]
    gpus = ", ".join(sketch.names("gpu"))
    lines.append(f"workloads: {{only here: {{read: 1 GB, from: storage0, to: [{gpus}]}}}}")
    lines[-1] = lines[-1].replace("only here", "only-here")
    return "\n".join(lines) + "\n"


def cables(sketch: Sketch, servers: list[str], joint: str) -> list[str]:
    """Write the links that leave a server, for each of them, and those between what is outside."""
    lines = []
    for a, b, cable in sketch.links:
        if is_outside(a) and is_outside(b):
            lines.append(f"  - {a} -- {b}: {cable}")
        elif is_outside(a) or is_outside(b):
            for server in servers:
                ends = [end if is_outside(end) else f"{server}{joint}{end}" for end in (a, b)]
                lines.append(f"  - {ends[0]} -- {ends[1]}: {cable}")
    return lines


def workloads(sketch: Sketch, servers: list[str], joint: str) -> list[str]:
    gpus = ", ".join(f"{server}{joint}{gpu}" for server in servers for gpu in sketch.names("gpu"))
    storages = ", ".join(sketch.names("storage"))
    return [
        "workloads:",
        f"  load: {{read: 100 GB, from: [{storages}], to: [{gpus}]}}",
        f"  save: {{write: 100 GB, from: [{gpus}], to: [{storages}]}}",
    ]


def outer_text(sketch: Sketch, servers: list[str], change: str) -> str:
    last = len(servers) - 1
    lines = [PARTS + SLOW, "devices:"]
    if change:
        lines.append(f"  server[0-{last - 1}]: {{use: ./server.yaml}}" if last else "")
        value = CHANGES[change][0]
        lines.append(f"  server{last}: {{use: ./server.yaml, set: {{{change}: {value}}}}}")
    else:
        lines.append(f"  server[0-{last}]: {{use: ./server.yaml}}")
    lines += [f"  {name}: {part}" for name, part in sketch.devices.items() if is_outside(name)]
    lines += ["links:", *cables(sketch, servers, "."), *workloads(sketch, servers, ".")]
    return "\n".join(lines) + "\n"


def flat_text(sketch: Sketch, servers: list[str], change: str) -> str:
    """Write the same by hand: `server0-gpu0` for `server0.gpu0`."""
    lines = [PARTS + SLOW, "devices:"]
    inside = {name: part for name, part in sketch.devices.items() if not is_outside(name)}
    for server in servers:
        for name, part in inside.items():
            changed = part
            if change.startswith(f"{name}.") and server == servers[-1]:
                _, of_part, new = CHANGES[change]
                changed = new if part == of_part else re.sub("[0-9]+ GB/s", "30 GB/s", part)
            lines.append(f"  {server}-{name}: {changed}")
    lines += [f"  {name}: {part}" for name, part in sketch.devices.items() if is_outside(name)]
    lines.append("links:")
    for server in servers:
        lines += [
            f"  - {server}-{a} -- {server}-{b}: {cable}"
            for a, b, cable in sketch.links
            if not is_outside(a) and not is_outside(b)
        ]
    lines += [*cables(sketch, servers, "-"), *workloads(sketch, servers, "-")]
    return "\n".join(lines) + "\n"


WHERE = {"place", "source", "file", "line", "column", "end_column"}


def without_words(node, names: set[str]):
    """Return a document without places, and without sentences: they name alike servers once."""
    if isinstance(node, dict):
        return {key: without_words(value, names) for key, value in node.items() if key not in WHERE}
    if isinstance(node, list):
        return [without_words(value, names) for value in node]
    return "WORDS" if isinstance(node, str) and " " in node and node not in names else node


def answers(path: Path) -> str:
    """Return what topo says of a file: every number, verdict and name."""
    machine = load(path)
    ladder = bottleneck(machine, workload="save")
    assert ladder.answer.matrix is not None
    documents = [
        comparison_document(compare(machine)),
        bottleneck_document(ladder, explain(ladder.answer.matrix, rule="max-min")),
        matrix_document(machine, matrix(machine), numa=defaultdict(tuple)),
    ]
    names = {name for one in machine.resources.values() for name in (one.name, one.id)}
    plain = [without_words(json.loads(encoded(document)), names) for document in documents]
    return re.sub(r"(server[0-9]+)\.", r"\1-", json.dumps(plain, indent=1))


@given(sketches(), st.integers(1, 3), st.sampled_from(["", *CHANGES]))
def test_used_machines_answer_as_those_written_out(sketch, count, change):
    servers = [f"server{number}" for number in range(count)]
    with TemporaryDirectory() as folder:
        used, flat = Path(folder, "machine.yaml"), Path(folder, "flat", "machine.yaml")
        flat.parent.mkdir()
        Path(folder, "server.yaml").write_text(inner_text(sketch), encoding="utf-8")
        used.write_text(outer_text(sketch, servers, change), encoding="utf-8")
        flat.write_text(flat_text(sketch, servers, change), encoding="utf-8")
        assert answers(used) == answers(flat)


def test_a_change_changes_its_machine_alone(tmp_path):
    """Lest the law above holds because nothing was changed."""
    file = tmp_path / "pair.yaml"
    text = (
        "{topo: 1, devices: {'node[0-1]': {use: gds-textbook, set: {gpu0.hbm: [1 GB/s, 2 GB/s]}}}}"
    )
    file.write_text(text, encoding="utf-8")
    machine = load(file)
    rates = [
        machine.resources[f"node{node}.gpu{gpu}/hbm"].capacity.theoretical.value
        for node in range(2)
        for gpu in range(2)
    ]
    assert rates == [1e9, 3350e9, 2e9, 3350e9]
