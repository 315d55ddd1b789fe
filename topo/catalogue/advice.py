"""The near name: what somebody probably meant, said only when it is near."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


_SHORTEST = 3  # letters that a part of a name must have before it counts as a hint
_MOST = 3  # names offered at once
_FEW = 5  # names listed where none is near
_CUTOFF = 0.72  # difflib's likeness


def near_names(name: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return the names that `name` may have been meant for, nearest first, or none.

    Examples
    --------
    >>> near_names("conectx-7", ["connectx-7", "bluefield-3"])
    ('connectx-7',)
    >>> near_names("h100", ["h100-sxm-80gb", "h100-pcie-80gb", "a100-sxm-40gb"])
    ('h100-sxm-80gb', 'h100-pcie-80gb')
    >>> near_names("x86_64", ["x86", "arm"])
    ('x86',)
    >>> near_names("banana", ["connectx-7"])
    ()
    """
    from difflib import get_close_matches

    plain = {_plain(candidate): candidate for candidate in names}
    wanted = _plain(name)
    if wanted in plain:
        return (plain[wanted],)
    if len(wanted) >= _SHORTEST:
        starts = [
            candidate
            for key, candidate in plain.items()
            if key.startswith(wanted) or (len(key) >= _SHORTEST and wanted.startswith(f"{key}-"))
        ]
        if starts:
            return tuple(starts[:_MOST])
    close = get_close_matches(wanted, plain, n=1, cutoff=_CUTOFF)
    return tuple(plain[key] for key in close)


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return advice with the near names, empty when there are none.

    Examples
    --------
    >>> did_you_mean("bandwith", ["bandwidth", "lanes"])
    'did you mean `bandwidth`?'
    """
    near = [f"`{candidate}`" for candidate in near_names(name, names)]
    if not near:
        return ""
    listed = near[0] if len(near) == 1 else f"{', '.join(near[:-1])} or {near[-1]}"
    return f"did you mean {listed}?"


def nearest_names(name: str, names: Iterable[str]) -> str:
    """Return advice with the near names, or else the few that are least far: never a long list.

    Examples
    --------
    >>> nearest_names("legcy", ["legacy", "direct", "mmap"])
    'did you mean `legacy`?'
    >>> nearest_names("zzz", ["legacy", "direct", "mmap"])
    'there are legacy, direct and mmap'
    """
    from difflib import SequenceMatcher

    known = tuple(names)
    near = did_you_mean(name, known)
    if near:
        return near
    far = sorted(known, key=lambda one: -SequenceMatcher(None, name, one).ratio())
    shown = far[:_FEW] if len(known) > _FEW else known
    listed = " and ".join(filter(None, (", ".join(shown[:-1]), *shown[-1:])))
    more = len(known) - len(shown)
    return f"there are {listed}" if not more else f"the nearest of {len(known)} are {listed}"


def _plain(name: str) -> str:
    return name.strip().lower().replace("_", "-").replace(" ", "-")
