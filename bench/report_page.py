"""How large the page of a report is, and how soon a browser shows it and what a slider changed.

Each page is opened in Debian's Chromium, a few times; the medians count. Bytes are those of the
file, and of what a server would send with gzip. `first paint` is the browser's own figure from the
start of loading; `redraw` is all that the page's script does after a slider moved, its solves among
it, and `frame` until the browser has laid it out as well.

    python -m bench.report_page [MACHINE ...]

It reports and never fails: a number over its budget is for a person to judge.
"""

from __future__ import annotations

import gzip
import shutil
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import topo
from topo.study.report import report
from topo.views.report.page import report_page

MACHINES = ("gds-textbook", "dgx-h100", "dgx-a100", "pod-32", "cluster-125")
CLUSTER = """topo: 1
name: cluster-125
title: 125 DGX H100 and ten appliances
devices:
  node[0-124]: {use: dgx-h100}
  leaf[0-4]: quantum-2
  appliance[0-9]: {part: nvme-of-target, ports: 5, read: 90 GB/s, write: 60 GB/s}
links:
  - node.slot1 -- leaf in blocks: infiniband ndr
  - appliance -- leaf all to all: infiniband ndr
workloads:
  load: {read: 80 GB each, from: appliance, to: node.gpu}
  checkpoint: {write: 140 GB, from: node.gpu, to: appliance}
"""
OPENED = 5  # times
MOVES = """async () => {
  const {model} = topo, redraws = [], frames = [];
  const {knob} = model.resources[model.chosen.matrix.resources.at(-1)];
  for (let step = 1; step <= 20; step++) {
    const start = performance.now();
    model.change(knob, String(10 * step));
    redraws.push(performance.now() - start);
    document.body.getBoundingClientRect();
    frames.push(performance.now() - start);
  }
  const [paint] = performance.getEntriesByName('first-paint');
  return {redraws, frames, paint: paint ? paint.startTime : NaN};
}"""


def main(machines: list[str]) -> None:
    """Print a line for each machine."""
    chromium = shutil.which("chromium")
    print("page             kB  gzip kB  made in s  first paint ms  redraw ms  frame ms")
    print("at most         300                               200         16   (a cluster 2,000 kB)")
    with tempfile.TemporaryDirectory() as folder:
        pages, made = {}, {}
        for name in machines:
            path = Path(folder) / f"{name}.html"
            machine = topo.loads(CLUSTER) if name == "cluster-125" else topo.load(name)
            start = time.perf_counter()
            path.write_text(report_page(report(machine), command=(name,)), encoding="utf-8")
            pages[name], made[name] = path, time.perf_counter() - start
        times = seen_in(chromium, pages) if chromium else {}
        for name, path in pages.items():
            data = path.read_bytes()
            sizes = f"{len(data) / 1e3:6.0f}  {len(gzip.compress(data)) / 1e3:7.0f}"
            paint, redraw, frame = times.get(name, (float("nan"),) * 3)
            print(
                f"{name:12} {sizes}  {made[name]:9.1f}  {paint:14.0f}  {redraw:9.1f}  {frame:8.1f}"
            )
    if not chromium:
        print("no browser: `make setup-browser` installs Chromium")


def seen_in(chromium: str, pages: dict[str, Path]) -> dict[str, tuple[float, float, float]]:
    """Open the pages in a browser: first paint, redraw and frame in milliseconds."""
    from playwright.sync_api import sync_playwright

    times = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name, path in pages.items():
            answers: list[dict[str, Any]] = []
            for _ in range(OPENED):
                page = browser.new_page(viewport={"width": 1440, "height": 1000})
                page.goto(f"file://{path}")
                page.wait_for_timeout(200)
                answers.append(page.evaluate(MOVES))
                page.close()
            times[name] = (
                median(answer["paint"] for answer in answers),
                median(time for answer in answers for time in answer["redraws"]),
                median(time for answer in answers for time in answer["frames"]),
            )
        browser.close()
    return times


if __name__ == "__main__":
    main(sys.argv[1:] or list(MACHINES))
