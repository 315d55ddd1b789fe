"""The blocks of a page as HTML, for a notebook, and as Markdown, for an issue or a pull request.

Both say what `topo.views.text.page.render` says, and none trusts what the blocks hold.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from topo.phrases import visible
from topo.views.text.page import Block, Bullets, Cell, Heading, Lines, Table, Text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from topo.views.text.page import Tone

_HTML: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"}
_PADDING: Final = "padding: 0 1em 0 0"
_TAGS: Final[Mapping[Tone, str]] = {
    **dict.fromkeys(("strong", "bad", "warn"), "strong"),
    "faint": "small",
}


# --- HTML -----------------------------------------------------------------------------------------


def html(blocks: Iterable[Block]) -> str:
    """Return a page as one HTML element, without script and with nothing to load.

    Examples
    --------
    >>> from topo.views.text.page import Heading, Text
    >>> print(html([Heading("gpu0"), Text("2 < 3")]))
    <div class="topo">
    <h4>gpu0</h4>
    <p>2 &lt; 3</p>
    </div>
    """
    return "\n".join(['<div class="topo">', *map(_element, blocks), "</div>"])


def escaped(text: str) -> str:
    """Return text for a place between tags, or in the quotes of an attribute."""
    return "".join(_HTML.get(character, character) for character in visible(text, controls=False))


def _element(block: Block) -> str:
    if isinstance(block, Heading):
        return f"<h4>{escaped(block.text)}</h4>"
    if isinstance(block, Text):
        text = escaped(block.text)
        return f"<p><small>{text}</small></p>" if block.dim else f"<p>{text}</p>"
    if isinstance(block, Lines):
        return f"<pre>{escaped(block.text)}</pre>"
    if isinstance(block, Bullets):
        items = "".join(f"<li>{escaped(item)}</li>" for item in block.items)
        return f"<ul>{items}</ul>"
    return "\n".join(_html_table(block))


def _html_table(table: Table) -> Iterator[str]:
    sides = ["right" if column.right else "left" for column in table.columns]
    yield "<table>"
    if any(column.title for column in table.columns):
        cells = (
            f'<th scope="col" style="text-align: {side}; {_PADDING}">{escaped(column.title)}</th>'
            for side, column in zip(sides, table.columns, strict=True)
        )
        yield f"<thead><tr>{''.join(cells)}</tr></thead>"
    yield "<tbody>"
    for row in table.rows:
        cells = (_html_cell(cell, side) for cell, side in zip(row, sides, strict=True))
        yield f"<tr>{''.join(cells)}</tr>"
    yield "</tbody></table>"


def _html_cell(cell: str | Cell, side: str) -> str:
    text = escaped(cell.text if isinstance(cell, Cell) else cell)
    tag = _TAGS.get(cell.tone) if isinstance(cell, Cell) else None
    inner = f"<{tag}>{text}</{tag}>" if tag and text else text
    # `pre-wrap` keeps the line breaks of a cell and the spaces before a bar.
    style = f"text-align: {side}; {_PADDING}; vertical-align: top; white-space: pre-wrap"
    return f'<td style="{style}">{inner}</td>'


# --- Markdown -------------------------------------------------------------------------------------

# What would be markup anywhere in a line; a dash, a number or a sign opens something at its start.
_MARKUP: Final = re.compile(r"[\\`*<|~]|\](?=[(\[:])|(?<!\w)_|_(?!\w)|&(?=#|\w+;)")
_OPENING: Final = re.compile(r"(?:[#>+=-]|\d+(?=[.)]))")


def markdown(blocks: Iterable[Block]) -> str:
    r"""Return a page as Markdown that ends in a line break; tables are GitHub's.

    Examples
    --------
    >>> from topo.views.text.page import Heading, right, table
    >>> print(markdown([Heading("gpu0"), table(("a|b", right("rate")), [("x", "1")])]), end="")
    ### gpu0
    <BLANKLINE>
    | a\|b | rate |
    | --- | ---: |
    | x | 1 |
    """
    return visible("\n\n".join(map(_passage, blocks)), controls=False) + "\n"


def _passage(block: Block) -> str:
    if isinstance(block, Heading):
        return f"### {_inline(block.text)}"
    if isinstance(block, Text):
        return _opening(_inline(block.text, code=True))
    if isinstance(block, Lines):
        runs = (len(run) for run in re.findall("`+", block.text))
        fence = "`" * max(3, 1 + max(runs, default=0))
        return f"{fence}\n{block.text}\n{fence}"
    if isinstance(block, Bullets):
        return "\n".join(f"- {_opening(_inline(item, code=True))}" for item in block.items)
    return "\n".join(_markdown_table(block))


def _markdown_table(table: Table) -> Iterator[str]:
    titles = [_inline(column.title) for column in table.columns]
    yield _row(titles)
    yield _row("---:" if column.right else "---" for column in table.columns)
    for row in table.rows:
        yield _row(map(_markdown_cell, row))


def _row(cells: Iterable[str]) -> str:
    return re.sub(r" +", " ", f"| {' | '.join(cells)} |")


def _markdown_cell(cell: str | Cell) -> str:
    text = cell.text if isinstance(cell, Cell) else cell
    lines = "<br>".join(map(_inline, text.split("\n")))
    bold = isinstance(cell, Cell) and _TAGS.get(cell.tone) == "strong" and text.strip()
    return f"**{lines.strip()}**" if bold and "<br>" not in lines else lines


def _inline(text: str, *, code: bool = False) -> str:
    r"""Return text in which nothing is markup; with `code`, what stands in backticks may be.

    Examples
    --------
    >>> _inline("a|b *c* snake_case <img>"), _inline("`rate` is", code=True)
    ('a\\|b \\*c\\* snake_case \\<img>', '`rate` is')
    """
    plain = " ".join(text.split("\n"))
    if code and plain.count("`") % 2 == 0 and "``" not in plain:
        pieces = plain.split("`")
        spans = (_escape(piece) if place % 2 == 0 else piece for place, piece in enumerate(pieces))
        return "`".join(spans)
    return _escape(plain)


def _escape(text: str) -> str:
    return _MARKUP.sub(lambda match: f"\\{match[0]}", text)


def _opening(text: str) -> str:
    """Return a paragraph that opens no list, heading or quotation."""
    match = _OPENING.match(text)
    if match is None:
        return text
    end = match.end() if match[0].isdigit() else 0
    return f"{text[:end]}\\{text[end:]}"
