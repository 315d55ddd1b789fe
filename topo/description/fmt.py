"""A topology file in topo's own layout: the same words and comments, laid out one way.

The text is changed in small steps, each a function from text to text, and each step is taken only
if the file still says the same: the document read from it is equal but for places, spaces before
units and the order of its sections, and no comment is lost. So the worst that can happen to an
odd file is that it stays as it is.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from topo.description.layout import (
    align_values,
    order_sections,
    set_blank_lines,
    set_indents,
    space_units,
    spaced,
    trim_lines,
)
from topo.document import parse
from topo.document.nodes import Mapping, Scalar
from topo.document.sketch import sketch
from topo.document.text import read_text
from topo.errors import DocumentError

if TYPE_CHECKING:
    from collections.abc import Callable

    from topo.document.nodes import Node


# In this order: later steps rely on where earlier ones have put things.
_STEPS: Final[tuple[Callable[[str], str], ...]] = (
    trim_lines,
    order_sections,
    set_indents,
    set_blank_lines,
    space_units,
    align_values,
)
_LONGEST: Final = 1_000_000  # characters; a longer file was written by a program
_ROUNDS: Final = 4


def format_text(text: str, *, name: str = "<text>") -> str:
    r"""Return a topology's text in topo's own layout.

    ``\n`` line breaks, two spaces of indent, sections in one order with an empty line between
    them, a space before each unit, values of a section's one-line entries in one column. Every
    comment stays, with what it stands above or behind.

    Parameters
    ----------
    text
        The text; it need not describe a sound machine, but it has to be YAML.
    name
        What messages call it.

    Returns
    -------
    str
        The same file laid out anew; formatting that once more changes nothing.

    Raises
    ------
    DocumentError
        If the text is not YAML that topo reads.

    Examples
    --------
    >>> print(format_text("topo: 1\ndevices:\n    gpu0:  l40s  # left\n    target: {read: 90GB/s}"))
    topo: 1
    <BLANKLINE>
    devices:
      gpu0:   l40s      # left
      target: {read: 90 GB/s}
    <BLANKLINE>
    """
    plain = read_text(text, name)
    parse(plain, name=name)
    if len(plain) > _LONGEST:
        return plain
    for _ in range(_ROUNDS):
        formatted = _round(plain)
        if formatted == plain:
            break
        plain = formatted
    return plain


def _round(text: str) -> str:
    """Take each step that changes nothing but the layout."""
    said = _meaning(text)
    for step in _STEPS:
        changed = step(text)
        if changed != text and _meaning(changed) == said:
            text = changed
    return text


def _meaning(text: str) -> tuple[Any, Counter[str]] | None:
    """Return what a text says whatever its layout: its document and its comments."""
    try:
        document = parse(text)
    except DocumentError:
        return None
    drawn = sketch(text)
    comments = Counter(
        drawn.of(token).rstrip() for token in drawn.tokens if token.kind == "comment"
    )
    root = _plain(document.root)
    if isinstance(document.root, Mapping):
        root = sorted(root, key=lambda entry: entry[0])
    return root, comments


def _plain(node: Node) -> Any:
    """Return a node without its places, as values that compare; units in their usual spelling."""
    if isinstance(node, Scalar):
        return (spaced(node.text), node.quoted)
    if isinstance(node, Mapping):
        return [(key.text, key.quoted, _plain(value)) for key, value in node]
    return tuple(_plain(item) for item in node.items)
