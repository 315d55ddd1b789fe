"""How much topo takes on at once: the bounds on what a question may come to, in one place.

A few lines with large ranges ask for more than any machine gives back. What a question comes to is
counted before the work begins, and where it is more than here, the answer is an error that says how
much it is and what to ask instead. How much a file may say has its bounds where files are read
(`topo.description.names.MOST`).
"""

from __future__ import annotations

from typing import Final

from topo.errors import DescriptionError, Finding, Place

MOST_IN_A_SERVER: Final = 2_048
"""Devices that host links join; the largest servers have some hundred."""

MOST_LINKS_IN_A_SERVER: Final = 8 * MOST_IN_A_SERVER
"""Links of those devices to each other; a bundle of equal cables is one."""

MOST_WAYS: Final = 100_000
"""Ways that one question lays: an endpoint, a far end and a network card of each of its paths."""

MOST_LINKS_OF_WAYS: Final = 1_000_000
"""Links that those ways take, of all equally good walks: what a way costs grows with them.

Each of 256 GPUs to each other one, through RAM, takes 963,968.
"""

MOST_SPLIT: Final = 20_000
"""Ways over which a linear program divides the bytes."""

MOST_IN_VARIANTS: Final = 250_000
"""Devices, links and ways of all the variants of a machine that a study asks about."""

MOST_IN_PAIRED_VARIANTS: Final = 20 * MOST_IN_VARIANTS
"""The same where what is asked about are all pairs of changes, which takes long by its nature."""

MOST_PAIRS: Final = 500_000
"""Pairs of devices that are looked at one by one, as the cells of a matrix are."""

LARGEST_MATRIX: Final = 256
"""Rows of a matrix that is printed unasked: more are no table that anybody reads."""


def refuse_more(
    count: int, most: int, what: str, advice: str, *, place: Place | None = None
) -> None:
    """Refuse a question that comes to more than topo takes on.

    Parameters
    ----------
    count, most
        What it comes to, and the bound.
    what
        The rest of the sentence after the count: ``ways of data from nvme to gpu``.
    advice
        What to ask instead.
    place
        Where it is asked for, when a text does.

    Raises
    ------
    DescriptionError
        If `count` is more than `most`.

    Examples
    --------
    >>> refuse_more(12, 10, "devices", "name fewer")
    Traceback (most recent call last):
    topo.errors.DescriptionError: error[too-large]: 12 devices, more than 10 (name fewer)
    """
    if count > most:
        message = f"{count:,} {what}, more than {most:,}"
        raise DescriptionError(Finding("too-large", message, place, help=advice))
