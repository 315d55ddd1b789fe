"""A CPU by the name that the operating system has for it: ``Intel(R) Xeon(R) Platinum 8480C``."""

from __future__ import annotations

import re
from typing import Final

from topo.catalogue.identities import architecture_named, processor_named
from topo.discovery.machine import DiscoveredPart, printable

_NOISE: Final = re.compile(r"\((?:R|TM|tm)\)|\bCPU\b|@.*|\d+-Core|\bProcessor\b")
_LONGEST: Final = 24


def cpu_part(model: str) -> tuple[str, DiscoveredPart | None]:
    """Return the part's name, and the part itself where the catalogue has none.

    Examples
    --------
    >>> cpu_part("AMD EPYC 7763 64-Core Processor")[0]
    'epyc-7763'
    >>> cpu_part("Intel(R) Xeon(R) Platinum 8174 CPU @ 3.10GHz")[1].like
    'xeon-scalable'
    """
    from topo.catalogue.load import catalogue

    plain = " ".join(_NOISE.sub(" ", model).split())
    if not plain:
        return "cpu-unknown", None
    known = catalogue().parts
    like = processor_named(plain)[0]
    number = plain.split()[-1].lower().replace("+", "plus")
    for name in (f"xeon-{number}", f"epyc-{number}", *_old_name(plain)):
        if name in known and known[name].kind == "cpu" and like != "cpu-unknown":
            return name, None
    slug = _slug(plain)
    if not slug or not slug[0].isalpha() or slug in known:
        slug = f"host-{slug}".strip("-")
    architecture = architecture_named(plain)
    facts = (("architecture", architecture),) if architecture else ()
    return slug, DiscoveredPart(slug, like, printable(plain), facts)


def _slug(plain: str) -> str:
    """Return the first words as a name."""
    slug = ""
    for word in re.findall(r"[a-z0-9]+", plain.lower()):
        longer = f"{slug}-{word}" if slug else word[:_LONGEST]
        if len(longer) > _LONGEST:
            break
        slug = longer
    return slug


def socket_cable(models: list[str]) -> str:
    """Return what joins sockets of these CPUs, ``""`` when their names do not tell."""
    cables = {processor_named(model)[1] for model in models}
    return cables.pop() if len(cables) == 1 else ""


def _old_name(plain: str) -> tuple[str, ...]:
    found = re.search(r"E([57])-?\s*(\d{4})\s*(v\d)?", plain)
    return (f"xeon-e{found[1]}-{found[2]}{found[3] or ''}",) if found else ()
