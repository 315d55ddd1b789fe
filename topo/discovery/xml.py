"""Foreign XML, read with limits: no entities, no external references, bounded size and depth."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Final

from topo.errors import ExchangeError, Finding, Place

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element


_DEEPEST: Final = 200
_MOST: Final = 500_000
_LARGEST: Final = 16 * 2**20
# The parser begins a tag anew with each piece that it gets: small pieces make a long tag slow.
_PIECE: Final = 2**20


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

    if len(data) > _LARGEST:
        message = f"`{name}` has {len(data) >> 20} MiB of XML, more than {_LARGEST >> 20}"
        raise ExchangeError(Finding("import-too-big", message))
    events = iterparse(_Pieces(data), events=("start", "end"), forbid_dtd=not doctype)
    root: Element | None = None
    depth = count = 0
    try:
        for event, element in events:
            root = element if root is None else root
            depth += 1 if event == "start" else -1
            count += event == "start"
            if depth > _DEEPEST or count > _MOST:
                raise ExchangeError(_too_big(name, depth))
    except ParseError as error:
        raise ExchangeError(_broken(error, name)) from None
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


def _too_big(name: str, depth: int) -> Finding:
    what = f"deeper than {_DEEPEST}" if depth > _DEEPEST else f"more than {_MOST} elements"
    return Finding("import-too-big", f"`{name}` is XML with {what}, which no machine needs")


def _broken(error: Exception, name: str) -> Finding:
    line, column = getattr(error, "position", (0, 0))
    reason = str(error).partition(":")[0]
    place = Place(name, line, column + 1) if line else None
    message = f"`{name}` is not whole XML: {reason}"
    return Finding("broken-xml", message, place=place, help="was it cut, or edited by hand?")
