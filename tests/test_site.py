"""The documents as a site: it builds without a warning, holds every page, loads nothing."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config

ROOT = Path(__file__).parents[1]
LOADED = re.compile(r"<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=\"?([^\" >]+)")
LED_TO = re.compile(r"<a\b[^>]*?href=\"?([^\" >]+)")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    build(load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder), strict=True))
    return folder


def test_every_document_is_a_page(site):
    pages = {path.stem for path in site.glob("*.html")}
    assert pages >= {"index", "changes", *(path.stem for path in (ROOT / "docs").glob("*.md"))}


def test_every_link_within_the_site_leads_somewhere(site):
    for page in site.glob("*.html"):
        html = page.read_text(encoding="utf-8")
        for target in (*LED_TO.findall(html), *LOADED.findall(html)):
            path, anchor = urldefrag(unquote(target))
            if ":" in path or page.name == "404.html":
                continue
            there = (page.parent / path) if path else page
            there = there / "index.html" if there.is_dir() else there
            assert there.is_file(), (page.name, target)
            if anchor and there.suffix == ".html" and not anchor.startswith("__"):
                text = there.read_text(encoding="utf-8")
                assert re.search(rf'id="?{re.escape(anchor)}[" >]', text), (page.name, target)


def test_nothing_is_loaded_from_elsewhere(site):
    for page in site.glob("*.html"):
        loaded = LOADED.findall(page.read_text(encoding="utf-8"))
        assert [target for target in loaded if target.startswith(("http", "//"))] == []


def test_pictures_of_the_front_page_are_there(site):
    html = (site / "index.html").read_text(encoding="utf-8")
    assert {"renders/gds-textbook.svg", "renders/report.png"} <= set(LOADED.findall(html))
