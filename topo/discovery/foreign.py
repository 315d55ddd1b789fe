"""Foreign files: their text or XML.

Both are read with limits: encodings, escape sequences and line ends put right; no entities, no
external references, bounded size and depth.
"""

from __future__ import annotations

import codecs
import json
import re
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final

from topo.errors import ExchangeError, Finding, Place

if TYPE_CHECKING:
    from collections.abc import Iterator
    from xml.etree.ElementTree import Element


BEFORE: Final = r"[\s>|]*"  # what people's quoting leaves before a line of a tool, in a pattern
_LARGEST_TEXT: Final = 8 * 2**20
_LONGEST_LINE: Final = 100_000
_BEGINNING: Final = 65536
_ESCAPE: Final = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]|\x1b[()][A-Z0-9]")
_QUOTE: Final = re.compile(r"(?m)^(?: {0,3}> ?){1,9}")
_LARGEST_XML: Final = 16 * 2**20
_DEEPEST_XML: Final = 200
_MOST_ELEMENTS: Final = 500_000
# The parser begins a tag anew with each piece that it gets: small pieces make a long tag slow.
_PIECE: Final = 2**20


# --- text -----------------------------------------------------------------------------------------


def read_lines(data: bytes, name: str) -> list[str]:
    """Return the lines of a text, without escape sequences.

    Parameters
    ----------
    data, name
        The text in UTF-8, or UTF-16 with its mark, as PowerShell writes; and its name.

    Raises
    ------
    ExchangeError
        If it is too big, or no text.
    """
    if len(data) > _LARGEST_TEXT:
        message = f"`{name}` has {len(data) >> 20} MiB of text, more than {_LARGEST_TEXT >> 20}"
        raise ExchangeError(Finding("import-too-big", message))
    utf_16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    text = data.decode("utf-16" if utf_16 else "utf-8-sig", "replace")
    if "\x00" in text:
        raise ExchangeError(Finding("wrong-kind", f"`{name}` is a binary file"))
    text = _ESCAPE.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    lines = unquoted(text).split("\n")
    if any(len(line) > _LONGEST_LINE for line in lines):
        raise _too_long(name)
    return lines


def lines_of_log(data: bytes, name: str) -> Iterator[str]:
    """Yield the lines of a text of any size that may be one file, as `read_lines` returns them.

    Each line is decoded as it is asked for, so a large log takes little more room than its bytes.
    Whether it is quoted is told by its beginning.

    Raises
    ------
    ExchangeError
        As `read_lines` does, but for the size: of UTF-16 there is a limit.
    """
    if len(data) <= _LARGEST_TEXT or data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        yield from read_lines(data, name)
        return
    begin = data[:_BEGINNING].decode("utf-8-sig", "replace")
    is_quoted = unquoted(begin) != begin
    for piece in BytesIO(data):
        if len(piece) > _LONGEST_LINE:
            raise _too_long(name)
        for line in read_lines(piece.rstrip(b"\r\n"), name):
            yield _QUOTE.sub("", line) if is_quoted else line


def _too_long(name: str) -> ExchangeError:
    message = f"`{name}` has a line of more than {_LONGEST_LINE} characters"
    return ExchangeError(Finding("import-too-big", message))


def unquoted(text: str) -> str:
    r"""Return a text without the marks of a mail's quotation, where most of its lines have them.

    Examples
    --------
    >>> unquoted("> a\n> > b\n\n>  c")
    'a\nb\n\n c'
    """
    lines = [line for line in text.split("\n") if line.strip()]
    marked = sum(line.lstrip(" ").startswith(">") for line in lines)
    return _QUOTE.sub("", text) if marked * 2 > len(lines) else text


def nothing_there(message: str, help: str) -> ExchangeError:
    """Return the error that a text has nothing of what it was taken for in it."""
    return ExchangeError(Finding("nothing-there", message, help=help))


def json_in(lines: list[str], name: str, command: str) -> Any:
    """Return what a text of JSON holds, as `read_json` does; `None` for any other text."""
    first = next((line.strip() for line in lines if line.strip()), "")
    return read_json(lines, name, command) if first[:1] in ("{", "[") else None


def read_json(lines: list[str], name: str, command: str) -> Any:
    """Return what a JSON text holds; `command` is what writes it.

    Raises
    ------
    ExchangeError
        If it is not whole.
    """
    try:
        return json.loads("\n".join(lines))
    except (ValueError, RecursionError):
        message, help = f"`{name}` is not whole JSON", f"was it cut? `{command}`"
        raise ExchangeError(Finding("broken-json", message, help=help)) from None


# --- XML ------------------------------------------------------------------------------------------


class _Pieces(BytesIO):
    """Bytes that are read in pieces of `_PIECE`, however few are asked for."""

    def read(self, _size: int | None = -1, /) -> bytes:
        return super().read(_PIECE)


def read_xml(data: bytes, name: str, *, doctype: bool = False) -> Element:
    """Return the root element.

    Parameters
    ----------
    data, name
        The file, and what messages call it.
    doctype
        Whether a document type may be named (never read).

    Raises
    ------
    ExchangeError
        If it is not XML, uses entities, or is too deep or too large.
    """
    from xml.etree.ElementTree import ParseError

    from defusedxml.common import DefusedXmlException
    from defusedxml.ElementTree import iterparse

    if len(data) > _LARGEST_XML:
        message = f"`{name}` has {len(data) >> 20} MiB of XML, more than {_LARGEST_XML >> 20}"
        raise ExchangeError(Finding("import-too-big", message))
    events = iterparse(_Pieces(data), events=("start", "end"), forbid_dtd=not doctype)
    root: Element | None = None
    depth = count = 0
    try:
        for event, element in events:
            root = element if root is None else root
            depth += 1 if event == "start" else -1
            count += event == "start"
            if depth > _DEEPEST_XML or count > _MOST_ELEMENTS:
                limit = f"more than {_MOST_ELEMENTS} elements"
                if depth > _DEEPEST_XML:
                    limit = f"deeper than {_DEEPEST_XML}"
                message = f"`{name}` is XML with {limit}, which no machine needs"
                raise ExchangeError(Finding("import-too-big", message))
    except ParseError as error:
        line, column = error.position
        message = f"`{name}` is not whole XML: {str(error).partition(':')[0]}"
        place = Place(name, line, column + 1) if line else None
        help = "was it cut, or edited by hand?"
        raise ExchangeError(Finding("broken-xml", message, place=place, help=help)) from None
    except DefusedXmlException:
        message = f"`{name}` defines entities or a document type, which topo does not read"
        raise ExchangeError(
            Finding("refused-xml", message, help="no tool writes them into such a file")
        ) from None
    except (LookupError, ValueError):
        message = f"`{name}` is XML in an encoding that cannot be read"
        raise ExchangeError(Finding("broken-xml", message, help="write it in UTF-8")) from None
    assert root is not None  # a file without an element is a parse error
    return root
