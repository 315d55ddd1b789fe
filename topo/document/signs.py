"""Values that begin with a sign which YAML keeps for itself: `>`, `*`, `@` and their kind."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from topo.document.evidence import QUOTE_IT, content_end, short

if TYPE_CHECKING:
    from topo.document.evidence import Evidence
    from topo.document.tokens import Token
    from topo.errors import Finding


_COMPARISON: Final = re.compile(r"[<>]=?\s*[0-9]")
_SIGN_KINDS: Final = frozenset({"sign", "alias", "anchor", "block"})
_MEANINGS: Final = {
    ">": "starts a block of text on the lines below",
    "|": "starts a block of text on the lines below",
    "&": "names an anchor",
    "%": "begins a YAML directive",
}


def sign_at_start(evidence: Evidence) -> list[Finding]:
    """Find a value that begins with a sign which YAML keeps for itself."""
    token = evidence.token_at()
    if token is None or token.kind not in _SIGN_KINDS:
        token = next(evidence.before(), None)
    if token is None or token.kind not in _SIGN_KINDS:
        return []
    if evidence.sketch.text[token.end : evidence.at].strip(" \n"):
        return []
    sign = evidence.of(token)[0]
    if sign == "*":
        return [_star(evidence, token)]
    if sign == "&" and evidence.of(token) != "&" and token.end <= evidence.at:
        return []
    return [sign_finding(evidence, token)]


def sign_finding(evidence: Evidence, token: Token) -> Finding:
    """Say what the sign that `token` begins with means to YAML."""
    sign = evidence.of(token)[0]
    return evidence.finding(
        "sign-starts-value",
        f"`{sign}` at the start of a value {_MEANINGS.get(sign, 'is kept by YAML for itself')}",
        token.start,
        token.start + 1,
        help=_without_sign(evidence, token),
    )


def _star(evidence: Evidence, token: Token) -> Finding:
    word = evidence.of(token)
    stem = word.strip("*.")
    named = f"`{stem}`" if stem else "`gpu`"
    return evidence.finding(
        "star",
        f"`{short(word)}` is an alias in YAML, not a wildcard",
        token.start,
        token.end,
        help=f"write the stem: {named} means every device of that stem",
    )


def _without_sign(evidence: Evidence, token: Token) -> str:
    """Advise on a value that begins with a sign: a whole sentence for ``load: >= 90 GB/s``."""
    end = token.end if token.depth else content_end(evidence, token.start)
    rest = evidence.sketch.text[token.start : end]
    before = evidence.on_line_before(token)
    if _COMPARISON.match(rest) and len(before) >= 2 and before[-1].kind == "colon":  # noqa: PLR2004
        subject = evidence.of(before[-2])
        subject = subject if " via " in f" {subject} " else f"{subject} via direct"
        return f"write the expectation as one sentence: `- {subject} {rest}`"
    return f'quote the value: "{short(rest)}"' if not token.depth else QUOTE_IT
