"""The rate of one transfer after the other in SimGrid, which runs this file: PLATFORM PAIRS."""

import json
import sys
from importlib import import_module
from typing import Any

SIZE = 10**12
MODEL = ("network/model:CM02", "network/crosstraffic:0", "network/TCP-gamma:0")


def main() -> None:
    simgrid: Any = import_module("simgrid")
    engine = simgrid.Engine(
        ["rates", "--log=root.thresh:critical", *(f"--cfg={one}" for one in MODEL)]
    )
    engine.load_platform(sys.argv[1])
    pairs: list[list[str]] = json.loads(sys.argv[2])
    rates: list[float] = []

    def send(box: str) -> None:
        simgrid.Mailbox.by_name(box).put("data", SIZE)

    def receive(box: str) -> None:
        simgrid.Mailbox.by_name(box).get()

    def measure() -> None:
        for source, target in pairs:
            began, box = simgrid.Engine.clock, f"{source} {target}"
            simgrid.Actor.create("sender", simgrid.Host.by_name(source), send, box)
            receiver = simgrid.Actor.create("receiver", simgrid.Host.by_name(target), receive, box)
            receiver.join()
            rates.append(SIZE / (simgrid.Engine.clock - began))

    if pairs:
        simgrid.Actor.create("main", simgrid.Host.by_name(pairs[0][0]), measure)
        engine.run()
    sys.stdout.write(json.dumps(rates))


if __name__ == "__main__":
    main()
