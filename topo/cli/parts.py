"""`topo parts`: the catalogue, a part or medium in full, the built-in machines."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

import click

from topo.cli import verb
from topo.errors import Finding, UnknownNameError

if TYPE_CHECKING:
    from topo.catalogue.needs import Need
    from topo.catalogue.part import Medium, Part


@verb.command(
    "topo parts h100-sxm-80gb",
    "topo parts connectx",
    "topo parts 'pcie 5'",
    "topo parts unet3d",
    "topo parts --machines",
)
@click.argument("name", required=False, shell_complete=verb.completes("parts"))
@click.option(
    "--machines", is_flag=True, help="List the machines that topo ships, by what they are."
)
@verb.asks_json
def command(name: str | None, machines: bool, as_json: bool) -> int:
    """List the catalogue, or show a part with the source of each figure.

    NAME is a part, a medium, a model, or the beginning or middle of several names; `needs` are all
    models, with what each asks for.
    """
    if machines:
        if name:
            raise click.UsageError("--machines lists all of them: leave NAME out.")
        from topo.description.locating import builtin_names
        from topo.study.machines import machine_summary
        from topo.topology.build import load

        shipped = [machine_summary(load(machine)) for machine in builtin_names()]
        if as_json:
            from topo.views.documents import machines_document

            return verb.put_document(machines_document(shipped))
        from topo.views.text.machines import machines_page

        return verb.put_page(machines_page(shipped))
    parts, media, needs = _matching((name or "").strip())
    if as_json:
        from topo.views.documents import catalogue_document

        return verb.put_document(catalogue_document(parts, media, needs))
    from topo.views.text.machine import catalogue_page, medium_page, part_page

    if not parts and not media and len(needs) > 1:
        from topo.views.needs import needs_page

        return verb.put_page(needs_page(needs))
    if len(parts) + len(media) + len(needs) > 1:
        return verb.put_page(catalogue_page(parts, media, needs))
    if needs:
        from topo.views.needs import need_page

        return verb.put_page(need_page(needs[0]))
    return verb.put_page(part_page(parts[0]) if parts else medium_page(media[0]))


def _matching(name: str) -> tuple[tuple[Part, ...], tuple[Medium, ...], tuple[Need, ...]]:
    """Return the part, medium or model of that name, else all whose name holds it."""
    from topo.catalogue.needs import needs as shipped_needs
    from topo.catalogue.parts import catalogue

    all_parts, all_media, all_needs = catalogue().parts, catalogue().media, shipped_needs()
    if name in all_parts:
        return (all_parts[name],), (), ()
    if name in all_media:
        return (), (all_media[name],), ()
    if name in all_needs:
        return (), (), (all_needs[name],)
    if name == "needs":
        return (), (), tuple(all_needs.values())
    parts = tuple(part for key, part in all_parts.items() if name.lower() in key)
    media = tuple(medium for key, medium in all_media.items() if name.lower() in key)
    needs = tuple(need for key, need in all_needs.items() if name.lower() in key)
    if not parts and not media and not needs:
        near = get_close_matches(name.lower(), [*all_parts, *all_media, *all_needs], n=3)
        advice = f"did you mean {' or '.join(near)}?" if near else "topo parts lists all"
        raise UnknownNameError(Finding("unknown-part", f"no part or medium `{name}`", help=advice))
    return parts, media, needs
