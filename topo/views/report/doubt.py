"""How sure the answers of a report are, as the part of its document that the page shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topo.study.doubt import DRAWS, LEVEL
from topo.views.bands import (
    advice_words,
    band_ends,
    band_name,
    band_origin,
    measurement_of,
    unknown_words,
)
from topo.views.json import keys_of

if TYPE_CHECKING:
    from topo.study.doubt import Doubt, PathDoubt
    from topo.views.keys import Document


def doubt_part(doubt: Doubt) -> Document:
    """Return what ``topo.doubt/1`` says of each answer that is not refused, with its words.

    `between` and `width` of a band are how the page writes its ends and where they come from;
    `advice`, `command` and `then` what to measure first; `unknown` what has no figure.
    """
    return {
        **keys_of(doubt, "basis"),
        "level": LEVEL,
        "draws": DRAWS,
        "bands": [
            {"name": band_name(band), "between": band_ends(band), "width": band_origin(band)}
            for band in doubt.bands
        ],
        "answers": [_answer(answer) for answer in doubt.answers if answer.rate_range is not None],
    }


def _answer(doubt: PathDoubt) -> Document:
    how = measurement_of(doubt.best, doubt) if doubt.best else None
    return {
        **keys_of(doubt, "workload.name:workload answer.name:data_path"),
        **keys_of(doubt, "answer.rate answer.time at_most"),
        "rate_range_bytes_per_s": doubt.rate_range,
        "time_range_s": doubt.time_range,
        "extremes_bytes_per_s": doubt.extremes,
        "swings": [
            {"band": band_name(swing.band), **keys_of(swing, "low_rate high_rate settles")}
            for swing in doubt.swings
        ],
        "without_effect": [band_name(band) for band in doubt.idle],
        "advice": advice_words(doubt),
        "command": how and how.command,
        "then": how and how.then,
        "unknown": unknown_words(doubt),
    }
