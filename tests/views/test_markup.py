"""A page as HTML and as Markdown: what is in it is shown, and nothing of it is markup."""

from __future__ import annotations

import html as library
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topo
from topo.views.markup import html, markdown
from topo.views.text.answers import comparison_page
from topo.views.text.page import Bullets, Cell, Heading, Lines, Text, right, table, wide

HOSTILE = "a|b <script>alert(1)</script> [x](javascript:y) *z* `c` &lt; \u202e\x1b[31m \\"
WORDS = st.text(st.sampled_from("ab|<>&`*_#-1.()[]\\\"'~+ \n\t"), max_size=12)
TAGS = {"div", "h4", "p", "small", "pre", "ul", "li", "strong", "img"} | {
    *("table", "thead", "tbody", "tr", "th", "td"),
}


class Reader(HTMLParser):
    """Reads a page's tags, attributes and texts; every tag is closed in its place."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.cells: list[str] = []
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag != "img":
            self.open.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data
        if {"td", "th"} & set(self.open):
            self.cells[-1] += data


def every_block(text):
    return [
        Heading(text),
        Text(text),
        Text(text, dim=True),
        Lines(text),
        Bullets((text, "plain")),
        table((wide(text), right(text)), [(text, Cell(text)), (Cell(text, "bad"), "end")]),
    ]


@pytest.mark.parametrize("block", every_block(HOSTILE), ids=lambda block: type(block).__name__)
def test_html_holds_no_tag_of_a_stranger(block):
    reader = Reader(html([block]))
    assert {tag for tag, _ in reader.tags} <= TAGS
    assert {name for _, names in reader.tags for name in names} <= {"class", "style", "scope"}
    assert "<script>alert(1)</script>" in reader.text
    assert "\u202e" not in reader.text


@given(WORDS.filter(bool))
def test_html_says_what_the_blocks_say(text):
    reader = Reader(html(every_block(text)))
    assert reader.cells.count(text) == 5


@pytest.mark.parametrize("name", ["gds-textbook", "workstation-4gpu", "dgx-h100"])
def test_markdown_of_a_comparison_has_the_same_cells_as_the_text(name):
    blocks = list(comparison_page(topo.compare(topo.load(name))))
    tables = [block for block in blocks if hasattr(block, "rows")]
    read = [rows[2:] for rows in tables_in(markdown(blocks))]
    assert len(read) == len(tables) > 0
    for rows, block in zip(read, tables, strict=True):
        assert rows == [[shown(cell) for cell in row] for row in block.rows]


@given(WORDS)
def test_no_cell_of_a_markdown_table_opens_another(text):
    (rows,) = tables_in(markdown([table((text, "b"), [(text, Cell(text)), (text, "c")])]))
    assert {len(row) for row in rows} == {2}
    assert rows[-1] == [shown(text), "c"]


@given(WORDS)
def test_a_paragraph_of_markdown_opens_nothing(text):
    (line,) = markdown([Text(text.replace("`", ""))]).splitlines() or [""]
    assert not re.match(r"[#>+=-]|\d+[.)]|<", line)


def test_lines_stand_in_a_fence_that_they_do_not_close():
    text = markdown([Lines("```\nrm -rf /\n```")])
    assert text == "````\n```\nrm -rf /\n```\n````\n"


def tables_in(text):
    """Read GitHub's tables: each as rows of cells, unescaped."""
    tables: list[list[list[str]]] = []
    last = ""
    for line in text.splitlines():
        if line.startswith("|"):
            if not last.startswith("|"):
                tables.append([])
            assert line.endswith(" |")
            cells = re.split(r"(?<!\\)(?:\\\\)*\|", line)[1:-1]
            tables[-1].append([plain(cell) for cell in cells])
        last = line
    return tables


def plain(cell):
    """Return what a reader sees in a cell of Markdown."""
    text = re.sub(r"(?<!\\)\*\*", "", cell.strip())
    return " ".join(re.sub(r"\\(.)", r"\1", text.replace("<br>", "\n")).split())


def shown(cell):
    text = cell.text if isinstance(cell, Cell) else cell
    return " ".join(text.split())


def test_a_page_of_html_escapes_once():
    assert library.unescape(re.sub("<[^>]*>", "", html([Heading("a & b")]))).strip() == "a & b"
