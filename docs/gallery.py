"""The gallery: one page with every machine of `topologies/`, and the page of a report for each.

    python -m docs.gallery [FOLDER]

writes `gallery.html` and `NAME.html` into `renders/` (or FOLDER), and with Chromium a picture of a
report, `report.png`.
"""

from __future__ import annotations

import base64
import hashlib
import re
import shutil
import struct
import sys
import zlib
from collections.abc import Iterable
from itertools import takewhile
from pathlib import Path

from jinja2 import Environment, StrictUndefined

import topo
from topo.study.report import report
from topo.topology.topology import Topology
from topo.units import format_size
from topo.views.report.document import ResourceTable
from topo.views.report.page import page_style, report_page
from topo.views.report.picture import live_picture, markup
from topo.views.sentences import caption

HERE = Path(__file__).parent
ROOT = HERE.parent
SHOWN = "dgx-h100"  # whose report README shows, and how
FRAGMENT = "#workload=load&via=direct&beside=legacy"


def gallery(machines: Iterable[Topology]) -> str:
    """Return the page: what each machine is, its picture, the answer to its first workload."""
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True
    )
    style = page_style() + (HERE / "gallery.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return environment.from_string((HERE / "gallery.html").read_text(encoding="utf-8")).render(
        style=style, style_hash=f"sha256-{digest}", machines=[entry(each) for each in machines]
    )


def entry(machine: Topology) -> dict[str, object]:
    """Return what the page says of a machine; its picture has the way by direct, if there is."""
    first = machine.description.workloads[0]
    answer = topo.compare(machine, workload=first.name).workloads[0]
    possible = [path for path in answer.paths if path.rate is not None]
    shown = next((path for path in possible if path.name == "direct"), possible[0])
    picture = live_picture(
        machine,
        shown.route,
        ResourceTable(machine, "theoretical"),
        "theoretical",
        tuple(resource.id for resource in shown.bound),
    )
    size = f" {format_size(first.size)}" if first.sized else ""
    return {
        "name": machine.name,
        "title": machine.title,
        "what": opening(machine),
        "picture": markup(picture, f"{machine.title}: the way of {first.name} by {shown.name}"),
        "workload": f"{first.name} ({first.direction}{size})",
        "paths": [
            {
                "name": path.name,
                "caption": caption(path)
                or "not possible: " + "; ".join(reason.text for reason in path.reasons),
            }
            for path in answer.paths
        ],
    }


def opening(machine: Topology) -> str:
    """Return the first paragraph of the comment that opens a machine's file."""
    document = machine.description.document
    lines = document.lines if document else ()
    comment = takewhile(lambda line: re.match(r"# ?\S", line), lines)
    return " ".join(line.lstrip("# ").strip() for line in comment)


def main(folder: Path) -> None:
    """Write the gallery, the reports, and with Chromium a picture of one."""
    machines = [topo.load(path.stem) for path in sorted((ROOT / "topologies").glob("*.yaml"))]
    (folder / "gallery.html").write_text(gallery(machines), encoding="utf-8")
    for machine in machines:
        page = report_page(report(machine), command=(machine.name,))
        (folder / f"{machine.name}.html").write_text(page, encoding="utf-8")
    draw_report(folder)


def draw_report(folder: Path) -> None:
    """Write a picture of the page of `SHOWN`, unless the one there was taken of the same page.

    A browser does not give the same bytes twice, so the picture carries the page's digest.
    """
    page, picture = (folder / f"{SHOWN}.html").resolve(), folder / "report.png"
    digest = hashlib.sha256(page.read_bytes() + FRAGMENT.encode()).digest()
    mark = png_text("Source", digest.hex())
    if picture.is_file() and mark in picture.read_bytes():
        return
    chromium = shutil.which("chromium")
    if chromium is None:
        print("no browser: `make setup-browser` installs Chromium, and report.png is drawn anew")
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": 1600, "height": 1110}, reduced_motion="reduce")
        tab.goto(f"file://{page}{FRAGMENT}")
        tab.wait_for_timeout(300)
        taken = tab.screenshot()
        browser.close()
    end = taken.rindex(b"IEND") - 4
    picture.write_bytes(taken[:end] + mark + taken[end:])


def png_text(key: str, text: str) -> bytes:
    """Return the chunk of a PNG that holds a text (PNG specification, 11.3.3)."""
    body = b"tEXt" + key.encode() + b"\0" + text.encode()
    return struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "renders")
