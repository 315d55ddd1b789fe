"""Ask SimGrid (Debian's python3-simgrid, or a wheel) for rates and completion times.

    /usr/bin/python3 bench/solve_simgrid.py QUESTION ANSWER

Stands alone: it runs under the Python that has SimGrid. QUESTION is JSON: capacities (bytes/s),
rows (for each demand the resource of each crossing, so that multiplicity 2 is named twice), sizes
(whole bytes), arrivals (s), limits (bytes/s, null for none). ANSWER is JSON: finishes (s) or rates
(bytes/s, if sizes are null: what has moved after a second of everybody), and the processor
seconds of building the platform and of running.

The settings make SimGrid's network a pure fluid: no latency, no protocol overhead, no
cross-traffic, every link shared (SimGrid's manual, "Configuring SimGrid").
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from simgrid import (  # type: ignore[import-not-found]  # it is of another Python
    Actor,
    Comm,
    Engine,
    LinkInRoute,
    NetZone,
    this_actor,
)

Question = dict[str, Any]
Pairs = list[tuple[Any, Any]]

SETTINGS = [
    "network/model:CM02",
    "network/weight-S:0",
    "network/bandwidth-factor:1",
    "network/latency-factor:1",
    "network/crosstraffic:0",
    "network/TCP-gamma:0",
    "network/loopback-lat:0",
]
# Named otherwise since SimGrid 3.36.
PRECISIONS = [
    ("maxmin/precision:1e-12", "surf/precision:1e-12"),
    ("precision/work-amount:1e-12", "precision/timing:1e-12"),
]


def main() -> None:
    """Read the question, run, write the answer."""
    question = json.loads(Path(sys.argv[1]).read_text())
    start = time.process_time()
    engine = _engine()
    pairs = _platform(question)
    built = time.process_time()
    answer: Question = {}
    host = pairs[0][0]
    Actor.create("all", host, _run, question, pairs, answer)
    engine.run()
    answer["build_s"] = built - start
    answer["run_s"] = time.process_time() - built
    Path(sys.argv[2]).write_text(json.dumps(answer))


def _engine() -> Any:
    import simgrid

    new = tuple(map(int, simgrid.simgrid_version.split(".")[:2])) >= (3, 36)
    options = [*SETTINGS, *PRECISIONS[new]]
    return Engine(["oracle", "--log=root.thresh:error", *(f"--cfg={one}" for one in options)])


def _platform(question: Question) -> Pairs:
    """Give every demand a pair of hosts of its own, out of just enough hosts."""
    root = NetZone.create_full_zone("root")
    count = 2
    while count * (count - 1) < len(question["rows"]):
        count += 1
    hosts = [root.create_host(f"h{n}", 1e9) for n in range(count)]
    links = [root.create_link(f"l{n}", c) for n, c in enumerate(question["capacities"])]
    limits = {
        demand: root.create_link(f"limit{demand}", limit)
        for demand, limit in enumerate(question["limits"])
        if limit is not None
    }
    for link in [*links, *limits.values()]:
        link.set_latency(0.0)
        link.seal()
    pairs = [(a, b) for a in hosts for b in hosts if a is not b][: len(question["rows"])]
    for demand, row in enumerate(question["rows"]):
        source, target = pairs[demand]
        # A demand's own limit is a link that nobody else uses.
        own = [limits[demand]] if demand in limits else []
        route = [LinkInRoute(link) for link in [*(links[resource] for resource in row), *own]]
        root.add_route(source.netpoint, target.netpoint, None, None, route, False)
    root.seal()
    return pairs


def _run(question: Question, pairs: Pairs, answer: Question) -> None:
    count = len(pairs)
    comms: list[Any] = [None] * count
    sizes = question["sizes"]
    huge = int(100 * max(question["capacities"]))
    for demand in sorted(range(count), key=lambda d: question["arrivals"][d]):
        this_actor.sleep_until(question["arrivals"][demand])
        comms[demand] = Comm.sendto_async(*pairs[demand], sizes[demand] if sizes else huge)
    if sizes:
        Comm.wait_all(comms)
        answer["finishes"] = [comm.finish_time for comm in comms]
    else:
        this_actor.sleep_for(1.0)
        answer["rates"] = [huge - comm.remaining for comm in comms]
        for comm in comms:
            comm.cancel()


if __name__ == "__main__":
    main()
