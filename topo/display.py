"""What notebooks and programs ask of a value: a page, a picture, a document, a table.

A value stands before the rooms that show it and imports none of them. The one that does is a name
here, loaded when somebody asks.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_SHOWN_BY = "topo.notebook"


class Displayed:
    """A value that a notebook displays; a base of frozen values with slots, too."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(import_module(_SHOWN_BY).html_of(self))

    def _repr_svg_(self) -> str:
        return str(import_module(_SHOWN_BY).svg_of(self))

    def to_dict(self) -> dict[str, Any]:
        """Return the document that ``--json`` prints, as mappings, lists, texts and numbers."""
        document: dict[str, Any] = import_module(_SHOWN_BY).document_of(self)
        return document

    def to_frame(self) -> Any:
        """Return the main table of that document as a `pandas.DataFrame`.

        A row is a resource of a topology, a data path of a workload, a rung, a run, an upgrade, a
        failure or a design; units are in the names of the columns.

        Raises
        ------
        LibraryError
            If pandas is not installed.
        """
        return import_module(_SHOWN_BY).frame_of(self)
