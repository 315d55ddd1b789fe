"""Why a text is not YAML, in the words of the person who wrote it.

`before_parsing` names what can be seen without a parser, all at once. `diagnose` is called with the
place where the parser gave up and looks for the human cause around it: the causes are tried in the
order of `_CAUSES`, most telling first, and the last always answers.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from topo.document.sketch import Sketch, Token, sketch
from topo.document.text import capped, character
from topo.errors import Finding, Place

if TYPE_CHECKING:
    from collections.abc import Callable

    from topo.document.nodes import Scalar

__all__ = ["before_parsing", "decimal_comma", "diagnose"]


def before_parsing(text: str, name: str) -> list[Finding]:
    return []


def decimal_comma(previous: Scalar, key: Scalar, line: str) -> Finding | None:
    return None


def diagnose(
    text: str, name: str, *, at: tuple[int, int], key: tuple[int, int] | None
) -> list[Finding]:
    return [Finding("not-yaml", "x", Place(name, *at))]
