"""`topo parts`: the catalogue, a part or medium in full, the built-in machines."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

import click

from topo.cli.options import asks_json, example
from topo.cli.output import put_document, put_page
from topo.errors import Finding, UnknownNameError

if TYPE_CHECKING:
    from topo.catalogue.part import Catalogue, Medium, Part


@click.command(
    epilog=example(
        "topo parts h100-sxm-80gb",
        "topo parts connectx",
        "topo parts 'pcie 5'",
        "topo parts --machines",
    )
)
@click.argument("name", required=False)
@click.option("--machines", is_flag=True, help="List the machines that topo ships.")
@asks_json
def command(name: str | None, machines: bool, as_json: bool) -> int:
    """List the catalogue, or show a part with the source of each figure.

    NAME is a part, a medium, or the beginning or middle of several names.
    """
    if machines:
        if name:
            raise click.UsageError("--machines lists all of them: leave NAME out.")
        return _machines(as_json)
    from topo.catalogue.load import catalogue

    known = catalogue()
    parts, media = _found(known, (name or "").strip())
    if as_json:
        from topo.views.documents import catalogue_document

        return put_document(catalogue_document(parts, media))
    from topo.views.text.machine import catalogue_page, medium_page, part_page

    if len(parts) + len(media) > 1:
        return put_page(catalogue_page(parts, media))
    return put_page(part_page(parts[0]) if parts else medium_page(media[0]))


def _machines(as_json: bool) -> int:
    from topo.description.loading import builtin_names
    from topo.topology.build import load

    found = tuple(load(name) for name in builtin_names())
    if as_json:
        from topo.views.documents import machines_document

        return put_document(machines_document(found))
    from topo.views.text.machine import machines_page

    return put_page(machines_page(found))


def _found(known: Catalogue, name: str) -> tuple[tuple[Part, ...], tuple[Medium, ...]]:
    """Return the part or medium of that name, else all whose name holds it."""
    if name in known.parts:
        return (known.parts[name],), ()
    if name in known.media:
        return (), (known.media[name],)
    parts = tuple(known.parts[one] for one in known.parts if name.lower() in one)
    media = tuple(known.media[one] for one in known.media if name.lower() in one)
    if not parts and not media:
        near = get_close_matches(name.lower(), [*known.parts, *known.media], n=3)
        advice = f"did you mean {' or '.join(near)}?" if near else "topo parts lists all"
        raise UnknownNameError(Finding("unknown-part", f"no part or medium `{name}`", help=advice))
    return parts, media
