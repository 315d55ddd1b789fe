"""The gallery of worked machines: as `make renders` writes it, safe, and readable everywhere."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

import pytest

import topo
from docs.gallery import SHOWN, draw_report, gallery, opening
from tests.views.browser import AUDIT, AXE, FAINT, Watched, chromium, needs_axe, needs_browser
from topo.description.locating import builtin_names

RENDERS = Path(__file__).parents[2] / "renders"
HOSTILE = """# </title><script>alert(1)</script><img src=x onerror=alert(2)>
topo: 1
name: box
title: "\\"><script>alert(3)</script>"
devices:
  nvme0: {part: nvme-gen5-4tb, label: "<svg onload=alert(4)>"}
  cpu0: xeon-8480c
  ram0: {part: ddr5-4800, channels: 8}
  gpu0: l40s
links: [nvme0 -- cpu0: pcie 5 x4, gpu0 -- cpu0: pcie 4 x16, ram0 -- cpu0: memory-bus]
workloads: {load: {read: 10 GB, from: nvme0, to: gpu0}}
"""


@pytest.fixture(scope="module")
def page():
    return gallery([topo.load(name) for name in builtin_names()])


def words(html):
    """Return the texts of a page, without where in a picture each stands."""
    return re.findall(r">\s*([^<>]+?)\s*<", html[html.index("<body>") :])


def test_it_is_as_make_renders_writes_it(page):
    assert words((RENDERS / "gallery.html").read_text(encoding="utf-8")) == words(page)


def test_each_machine_has_its_answer_its_picture_and_its_report(page):
    for name in builtin_names():
        (article,) = re.findall(
            rf'<article class="panel" id="{name}">(.*?)</article>', page, re.DOTALL
        )
        assert article.count(f'href="{name}.html"') == 2
        assert "<svg " in article
        assert "BOTTLENECK" in article
        assert opening(topo.load(name))[:40] in article
    assert "load (read 640 GB):" in page
    assert "<dt>by direct</dt><dd>100 GB/s, 6.4 s: limited by the cards" in page
    assert "not possible: " in page, "the workstation's GPUs know no peer-to-peer"


@pytest.mark.parametrize("hostile", [False, True])
def test_nothing_runs_in_it(page, hostile):
    html = gallery([topo.loads(HOSTILE)]) if hostile else page
    assert not re.search(r"<(?:script|img)|<[^<>]*\s(?:on\w+|style)=", html)
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', html)
    (style,) = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy.startswith(f"default-src 'none'; style-src 'sha256-{digest}'")
    assert set(re.findall(r'(?:href|src)="([^"]+)"', html)) == {
        f"{name}.html" for name in (["box"] if hostile else builtin_names())
    }


@needs_browser
def test_the_picture_of_a_report_is_taken_anew_when_the_page_is_another(tmp_path):
    page, picture = tmp_path / f"{SHOWN}.html", tmp_path / "report.png"
    taken = []
    for words in ("one", "one", "two"):
        page.write_text(f"<p>{words}", encoding="utf-8")
        draw_report(tmp_path)
        taken.append((picture.stat().st_mtime_ns, picture.read_bytes()))
    assert taken[0] == taken[1]
    assert taken[1][1] != taken[2][1]
    assert taken[2][1].startswith(b"\x89PNG")


@needs_browser
def test_it_reads_at_every_width_and_by_every_means(page, tmp_path):
    with chromium() as browser:
        for place, (scheme, width) in enumerate([("light", 360), ("dark", 360), ("dark", 2560)]):
            size = {"width": width, "height": 900}
            shown = Watched(
                browser,
                page,
                tmp_path / f"{place}",
                script=False,
                viewport=size,
                color_scheme=scheme,
            )
            assert shown.ask("() => document.documentElement.scrollWidth") <= width
            assert shown.ask(FAINT) == []
            assert (shown.errors, len(shown.requests)) == ([], 1)
            shown.close()


@needs_browser
@needs_axe
def test_axe_has_nothing_to_say(page, tmp_path):
    with chromium() as browser:
        shown = Watched(browser, page, tmp_path / "page", script=False, bypass_csp=True)
        shown.ask(AXE.read_text(encoding="utf-8"))
        assert shown.ask(AUDIT) == []
        shown.close()
