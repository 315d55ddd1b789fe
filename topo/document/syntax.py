"""Why a text is not YAML, in the words of the person who wrote it.

`before_parsing` names what can be seen without a parser, all at once. `diagnose` is called with the
place where the parser gave up and looks for the human cause around it: the causes are tried in the
order of `_CAUSES`, most telling first, and the last one always answers.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from topo.document.sketch import Sketch, Token, sketch
from topo.document.text import capped, character
from topo.errors import Finding, Place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from topo.document.nodes import Scalar

__all__ = ["before_parsing", "decimal_comma", "diagnose"]

# Blanks that are not the space, and characters of no width: invisible in an editor, and a
# different name to a program.
_ODD_BLANKS: Final = "\u00a0\u00ad\u1680\u180e\u2000-\u200f\u202a-\u202f\u205f-\u2064\u3000"
_ODD_BLANK: Final = re.compile(f"[{_ODD_BLANKS}][ {_ODD_BLANKS}]*")
_SMART: Final = re.compile("[\u201c\u201d\u201e\u201f\u2018\u2019\u201a\u201b\u00ab\u00bb]")
# Whether a text needs to be sketched before it is parsed. The first is quick and says yes to many
# an innocent comment; the second looks only in front of a line's comment.
_MAYBE_SUSPECT: Final = re.compile(
    rf"(?m)[\t!?{_ODD_BLANKS}\u2018-\u201f\u00ab\u00bb]|[|>][-+0-9]*#|^%|^(?:---|\.\.\.)(?:[ \t]|$)"
)
_SUSPECT: Final = re.compile(
    rf"(?m)^(?:[^#\n]|(?<=[^ \t\n])#)*?(?:{_MAYBE_SUSPECT.pattern.removeprefix('(?m)')})"
)
_WORD_BEHIND: Final = re.compile(rf"[^\s{_ODD_BLANKS}:,\]}}]*")
_HEADER_COMMENT: Final = re.compile(r"[|>][-+0-9]*#")
_RANGE: Final = re.compile(r"\[[-0-9, ]*\]")
_DIGITS_END: Final = re.compile(r"[0-9]\Z")
_DECIMALS: Final = re.compile(r"([0-9]+)(.*)\Z", re.DOTALL)
_CLOSERS: Final = {"[": "]", "{": "}"}
_TOP_LEVEL: Final = re.compile(r"\n(?=[A-Za-z])")
_WINDOW: Final = 50_000  # characters on either side of a failure that are looked at for its cause
_LONGEST_KEY: Final = 1024  # YAML's own limit for a key on one line


def before_parsing(text: str, name: str) -> list[Finding]:
    """Return what is wrong with `text` that needs no parser to see, by place.

    These are also the constructions on which YAML parsers disagree; see `topo.document.parse`.
    """
    if not (_MAYBE_SUSPECT.search(text) and _SUSPECT.search(text)):
        return []
    view = _View(sketch(text), name)
    found = [finding for look in _LOOKS for finding in capped(look(view))]
    return sorted(found, key=lambda finding: finding.place or Place(name, 0, 0))


def decimal_comma(previous: Scalar, key: Scalar, line: str) -> Finding | None:
    """Return the finding for ``{read: 1,5 TB}``: a key of digits right behind a number's comma."""
    start, end = previous.place, key.place
    touching = start.line == end.line and start.end_column + 1 == end.column
    decimals = _DECIMALS.match(key.text)
    if not touching or previous.quoted or key.quoted or decimals is None:
        return None
    if not _DIGITS_END.search(previous.text):
        return None
    number = f"{previous.text}.{key.text}"
    thousands = f"{previous.text}{key.text}"
    advice = f"write {number}"
    if len(decimals[1]) == 3:  # noqa: PLR2004  (three digits: as likely a thousands separator)
        advice = f"write {thousands}, or {number}, as meant"
    return Finding(
        "decimal-comma",
        f"the comma ends the value `{_short(previous.text)}`, and `{_short(key.text)}` is read as "
        "another key",
        Place(start.file, start.line, start.column, end.end_column),
        help=advice,
        source_line=line,
    )


def diagnose(text: str, name: str, *, at: int, key: int = -1) -> list[Finding]:
    """Name the cause of a parser's refusal.

    Parameters
    ----------
    text, name
        The whole text and what it is called.
    at
        The offset at which the parser gave up.
    key
        The offset of the text that should have been a key, when that is what it missed.
    """
    begin = _top_level_before(text, at - _WINDOW)
    view = _View(sketch(text, begin, at + _WINDOW), name, at=at, key=key)
    whole = begin == 0 or text[begin - 1] == "\n"  # otherwise the window opens amid one long line
    for cause in _CAUSES if whole else ():
        found = cause(view)
        if found:
            return found
    return [_not_yaml(view)]


def _top_level_before(text: str, offset: int) -> int:
    """Return where a top-level key begins at or behind `offset`: what is above it is closed."""
    if offset <= 0:
        return 0
    match = _TOP_LEVEL.search(text, offset, offset + _WINDOW)
    return match.end() if match else offset


class _View:
    """A sketch with the place of the failure, and how a finding about it is made."""

    def __init__(self, drawn: Sketch, name: str, *, at: int = -1, key: int = -1) -> None:
        self.sketch = drawn
        self.name = name
        self.at = at
        self.key = key
        self.tokens = drawn.tokens
        self.index = drawn.last_before(at)

    def finding(self, code: str, message: str, start: int, end: int, **more: str) -> Finding:
        """Make a finding about a stretch of the text; it is marked on its first line."""
        line, column = self.sketch.place(start)
        last_line, last_column = self.sketch.place(end)
        source = self.sketch.line(line)
        if last_line != line:
            last_column = max(len(source), column) + 1
        note = more.get("note", "")
        return Finding(
            code,
            message,
            Place(self.name, line, column, last_column if last_column > column else 0),
            help=more.get("help", ""),
            notes=(note,) if note else (),
            source_line=source,
        )

    def of(self, token: Token) -> str:
        """Return a token's text."""
        return self.sketch.of(token)

    def line_of(self, token: Token) -> int:
        """Return the line on which a token starts."""
        return self.sketch.place(token.start)[0]

    def token_at(self) -> Token | None:
        """Return the token that covers the failure, or starts there."""
        if self.index < 0:
            return None
        token = self.tokens[self.index]
        return token if token.start <= self.at < token.end else None

    def before(self) -> Iterator[Token]:
        """Yield the tokens that end at or before the failure, last first, comments left out."""
        for token in reversed(self.tokens[: self.index + 1]):
            if token.end <= self.at and token.kind != "comment":
                yield token

    def on_line_before(self, token: Token) -> list[Token]:
        """Return the tokens in front of `token` on its line."""
        line = self.line_of(token)
        index = self.sketch.last_before(token.start)
        start = index
        while start > 0 and self.line_of(self.tokens[start - 1]) == line:
            start -= 1
        return self.tokens[start:index]


# --- seen without a parser ------------------------------------------------------------------------


def _directives(view: _View) -> list[Finding]:
    """Find ``%YAML`` lines in front of the content."""
    found = []
    for token in view.tokens:
        if token.kind == "sign" and view.of(token)[0] == "%" and _starts_line(view, token):
            message = f"`{_short(view.of(token))}` is a YAML directive; topo reads none"
            found.append(
                view.finding("directive", message, token.start, token.end, help="remove the line")
            )
        elif token.kind != "comment":
            break
    return found


def _second_documents(view: _View) -> list[Finding]:
    """Find the line that ends the first document when there is more behind it."""
    content = False
    ended: Token | None = None
    for token in view.tokens:
        if token.kind == "comment" or (token.kind == "sign" and not content):
            continue  # a sign in front of all content is a directive, which has its own finding
        if ended is not None:
            return [_two_documents(view, ended)]
        if token.kind == "marker" and (content or view.of(token) == "..."):
            ended = token
            if view.of(token) == "---":
                return [_two_documents(view, token)]
        content = True
    return []


def _two_documents(view: _View, marker: Token) -> Finding:
    return view.finding(
        "two-documents",
        f"`{view.of(marker)}` ends the document, and more follows; topo reads one document a file",
        marker.start,
        marker.end,
        help="put the second document into a file of its own",
    )


def _tabs(view: _View) -> Iterator[Finding]:
    for start, end in _outside(view, re.compile("\t+"), {"comment"}):
        line, column = view.sketch.place(start)
        indent = not view.sketch.line(line)[: column - 1].strip(" ")
        message = "a tab indents this line" if indent else "a tab stands here"
        advice = "indent with spaces" if indent else "write spaces"
        yield view.finding("tab", message, start, end, help=advice)


def _odd_blanks(view: _View) -> Iterator[Finding]:
    for start, end in _outside(view, _ODD_BLANK, {"comment", "quoted", "block"}):
        char = view.sketch.text[start]
        word = _WORD_BEHIND.match(view.sketch.text, end)
        before = f"before `{_short(word[0])}`" if word is not None and word[0] else "here"
        kind = "a no-break space" if char == "\u00a0" else "a blank that is no space"
        yield view.finding(
            "no-break-space",
            f"{kind} stands {before}: {character(char)}",
            start,
            end,
            help="write an ordinary space, or none",
        )


def _smart_quotes(view: _View) -> Iterator[Finding]:
    """Find texts that begin with a typographic quote, as word processors write them."""
    for token in view.tokens:
        if token.kind == "plain" and _SMART.match(view.sketch.text, token.start):
            text = view.of(token)
            yield view.finding(
                "smart-quotes",
                f"`{text[0]}` is a typographic quote, which quotes nothing in YAML",
                token.start,
                token.end,
                help=f'write "{_short(_SMART.sub("", text))}"',
            )


def _questions(view: _View) -> Iterator[Finding]:
    """Find ``? key`` and, inside brackets, any bare question mark."""
    for token in view.tokens:
        if token.kind == "question" and not token.depth:
            message = "`? ` begins a key of several parts; topo's keys are plain text"
            advice = "write `key: value`"
            yield view.finding("complex-key", message, token.start, token.end, help=advice)
        elif token.kind == "question" or (
            token.kind == "plain" and token.depth and "?" in view.of(token)
        ):
            message = "a `?` inside { } or [ ] needs quotes"
            text = view.of(token)
            advice = f'write "{_short(text)}"' if token.kind == "plain" else _QUOTE_IT
            yield view.finding("question-mark", message, token.start, token.end, help=advice)


def _tags(view: _View) -> Iterator[Finding]:
    for token in view.tokens:
        if token.kind == "tag":
            message = f"`{_short(view.of(token))}` is a YAML tag; topo reads none"
            advice = "quote it, or remove it"
            yield view.finding("tag", message, token.start, token.end, help=advice)


def _block_headers(view: _View) -> Iterator[Finding]:
    """Find ``|#``, where one YAML parser sees a comment and another a mistake."""
    for token in view.tokens:
        if token.kind == "sign" and _HEADER_COMMENT.match(view.sketch.text, token.start):
            yield _sign_finding(view, token)


def _outside(view: _View, pattern: re.Pattern[str], kinds: set[str]) -> Iterator[tuple[int, int]]:
    """Yield where `pattern` matches outside tokens of these kinds, once a line."""
    text, position = view.sketch.text, 0
    while match := pattern.search(text, position, view.sketch.stop):
        index = view.sketch.last_before(match.start())
        token = view.tokens[index] if index >= 0 else None
        if token is not None and match.start() < token.end and token.kind in kinds:
            position = token.end
        else:
            position = _line_end(view, match.end())
            yield match.span()


def _starts_line(view: _View, token: Token) -> bool:
    return view.sketch.place(token.start)[1] == 1


# --- causes of a parser's refusal -----------------------------------------------------------------


def _bad_escape(view: _View) -> list[Finding]:
    r"""Find ``"C:\data"``: a backslash in double quotes that begins no escape."""
    token = view.token_at()
    if token is None or token.kind != "quoted" or view.of(token)[0] != '"':
        return []
    start = view.sketch.text.rfind("\\", token.start, view.at + 1)
    if start < 0 or view.at - start > len("\\U0010FFFF"):
        return []
    end = _ESCAPE.match(view.sketch.text, start, token.end).end()  # type: ignore[union-attr]
    return [
        view.finding(
            "bad-escape",
            f"`{view.sketch.text[start:end]}` is not an escape that YAML knows",
            start,
            end,
            help="write the text in single quotes, where a backslash is a backslash",
        )
    ]


def _comment_ate_text(view: _View) -> list[Finding]:
    """Find ``{label: Slot #1}``: a comment that hides the closing bracket."""
    openers = view.sketch.openers(view.at)
    for token in view.tokens:
        if not openers or token.start >= view.at:
            break
        opener = openers[-1]
        closer = _CLOSERS[view.of(opener)]
        if token.kind == "comment" and token.start > opener.start and token.depth:
            text = view.of(token)
            if closer not in text or view.line_of(token) != view.line_of(opener):
                continue
            whole = _text_around(view, token, closer)
            return [
                view.finding(
                    "comment-ate-text",
                    f"` #` starts a comment here and hides the `{closer}`",
                    token.start - 1,
                    token.end,
                    help=f'quote the text: "{_short(whole)}"',
                )
            ]
    return []


def _text_around(view: _View, comment: Token, closer: str) -> str:
    """Return what was meant as one text: the plain text before `comment` and its beginning."""
    before = view.on_line_before(comment)
    front = view.of(before[-1]) if before and before[-1].kind == "plain" else ""
    back = re.split(rf"[,{re.escape(closer)}]", view.of(comment))[0]
    return f"{front} {back}".strip()


def _ranges_in_brackets(view: _View) -> list[Finding]:
    """Find every ``gpu[0-7]`` inside brackets when the parser stumbled over one."""
    spans = [
        (token, bracket)
        for token, bracket in pairwise(view.tokens)
        if token.kind == "plain" and token.depth and _begins_range(view, token, bracket)
    ]
    if not any(bracket.start == view.at for _, bracket in spans):
        return []
    return capped(_quoteless_range(view, token, bracket) for token, bracket in spans)


def _quoteless_range(view: _View, token: Token, bracket: Token) -> Finding:
    word = view.of(token).rsplit(" ", 1)[-1]
    start = token.end - len(word)
    closer = view.sketch.closers.get(bracket.start, bracket)
    tail = _TAIL.match(view.sketch.text, closer.end)
    whole = view.sketch.text[start : tail.end() if tail else closer.end]
    stem = re.split(r"[\[.]", word)[0]
    return view.finding(
        "range-in-braces",
        f"the range `{_short(whole)}` inside {{ }} or [ ] needs quotes",
        start,
        start + len(whole),
        help=f'write "{_short(whole)}"; all of them is just `{stem}`',
    )


def _begins_range(view: _View, token: Token, bracket: Token) -> bool:
    return (
        bracket.kind == "open"
        and bracket.start == token.end
        and _RANGE.match(view.sketch.text, bracket.start) is not None
        and view.sketch.text[token.end - 1].isalnum()
    )


def _sign_at_start(view: _View) -> list[Finding]:
    """Find a value that begins with a sign which YAML keeps for itself."""
    token = view.token_at()
    if token is None or token.kind not in _SIGN_KINDS:
        token = next(view.before(), None)
    if token is None or token.kind not in _SIGN_KINDS:
        return []
    if view.sketch.text[token.end : view.at].strip(" \n"):
        return []
    sign = view.of(token)[0]
    if sign == "*":
        return [_star(view, token)]
    if sign == "&" and view.of(token) != "&" and token.end <= view.at:
        return []
    return [_sign_finding(view, token)]


def _sign_finding(view: _View, token: Token) -> Finding:
    sign = view.of(token)[0]
    return view.finding(
        "sign-starts-value",
        f"`{sign}` at the start of a value {_MEANINGS.get(sign, 'is kept by YAML for itself')}",
        token.start,
        token.start + 1,
        help=_without_sign(view, token),
    )


def _star(view: _View, token: Token) -> Finding:
    word = view.of(token)
    stem = word.strip("*.")
    named = f"`{stem}`" if stem else "`gpu`"
    return view.finding(
        "star",
        f"`{_short(word)}` is an alias in YAML, not a wildcard",
        token.start,
        token.end,
        help=f"write the stem: {named} means every device of that stem",
    )


def _without_sign(view: _View, token: Token) -> str:
    """Advise on a value that begins with a sign: a whole sentence for ``load: >= 90 GB/s``."""
    end = token.end if token.depth else _content_end(view, token.start)
    rest = view.sketch.text[token.start : end]
    before = view.on_line_before(token)
    if _COMPARISON.match(rest) and len(before) >= 2 and before[-1].kind == "colon":  # noqa: PLR2004
        subject = view.of(before[-2])
        subject = subject if " via " in f" {subject} " else f"{subject} via direct"
        return f"write the expectation as one sentence: `- {subject} {rest}`"
    return f'quote the value: "{_short(rest)}"' if not token.depth else _QUOTE_IT


def _after_quote(view: _View) -> list[Finding]:
    """Find text behind a closing quote, or the opening quote that swallowed some lines."""
    token = view.token_at()
    previous = next(view.before(), None)
    if token is None or previous is None or previous.kind != "quoted":
        return []
    if token.kind not in {"plain", "quoted", "unclosed", "sign", "alias", "anchor"}:
        return []
    quote = view.of(previous)[0]
    if "\n" in view.of(previous):
        line = view.sketch.place(previous.end)[0]
        message = f"the quote opened here ends only on line {line}"
        advice = f"close it with `{quote}`"
        return [view.finding("unclosed", message, previous.start, previous.end, help=advice)]
    if view.sketch.place(previous.end)[0] != view.sketch.place(token.start)[0]:
        return []
    advice = "quote the whole text"
    if quote == "'":
        advice += ", and double a `'` that belongs to it"
    return [
        view.finding(
            "text-after-quote",
            f"the text goes on behind the closing `{quote}`",
            token.start,
            min(token.end, _line_end(view, token.start)),
            help=advice,
        )
    ]


def _unclosed_quote(view: _View) -> list[Finding]:
    token = view.tokens[-1] if view.tokens else None
    if token is None or token.kind != "unclosed":
        return []
    quote = view.of(token)[0]
    return [
        view.finding(
            "unclosed",
            f"the quote `{quote}` opened here is never closed",
            token.start,
            token.start + 1,
            help=f"close it with `{quote}`, or write the text without quotes",
        )
    ]


def _key_without_colon(view: _View) -> list[Finding]:
    """Answer when the parser itself missed a colon behind a key."""
    if view.key < 0:
        return []
    end = _line_end(view, view.key)
    if end - view.key > _LONGEST_KEY:
        return [view.finding("not-yaml", "this key is too long", view.key, view.key + 1)]
    index = view.sketch.last_before(view.key)
    token = view.tokens[index] if index >= 0 else None
    if token is not None and token.kind in {"quoted", "plain"} and token.start == view.key:
        return [_missing_colon(view, token)]
    return []


def _missing_colon(view: _View, token: Token) -> Finding:
    text = view.of(token)
    closed_up = re.match(r"([^\s:]+):(\S.*)", text)
    if closed_up is not None:
        advice = f"put a space behind the colon: `{_short(f'{closed_up[1]}: {closed_up[2]}')}`"
    else:
        first, _, rest = text.partition(" ")
        advice = f"write `{_short(f'{first}: {rest}')}`" if rest else f"write `{_short(text)}: ...`"
    return view.finding(
        "missing-colon",
        f"`{_short(text)}` has no `: ` that makes it a key",
        token.start,
        token.end,
        help=advice,
    )


def _colon_in_text(view: _View) -> list[Finding]:
    """Answer for a second colon: inside a text, below a value, or behind a missing comma."""
    token = view.token_at()
    if token is None or token.kind != "colon":
        return []
    before = view.on_line_before(token)
    if token.depth:
        return _second_colon_in_brackets(view, token)
    if not before or before[-1].kind == "dash":
        return [_missing_key(view, token)]
    colons = [earlier for earlier in before if earlier.kind == "colon" and not earlier.depth]
    if colons:
        return [_text_with_colon(view, colons[0], before)]
    return _continued(view, token, before)


def _text_with_colon(view: _View, colon: Token, before: list[Token]) -> Finding:
    start = next((each.start for each in before if each.start > colon.start), colon.end)
    end = _content_end(view, start)
    value = view.sketch.text[start:end]
    quoted = value.replace("\\", "\\\\").replace('"', '\\"')
    return view.finding(
        "colon-in-text",
        f"`: ` stands inside the text `{_short(value)}`",
        start,
        end,
        help=f'quote it: "{_short(quoted)}"',
    )


def _second_colon_in_brackets(view: _View, colon: Token) -> list[Finding]:
    """Answer for ``{title: DGX: storage}`` and ``{read: 640 GB from: storage}``."""
    entry: list[Token] = []
    for token in view.before():
        if token.depth < colon.depth or (token.depth == colon.depth and token.kind == "comma"):
            break
        entry.append(token)
    if not entry:
        return [_missing_key(view, colon)]
    if not any(each.kind == "colon" and each.depth == colon.depth for each in entry):
        return []
    key = entry[0]
    if view.line_of(key) != view.line_of(entry[1]):
        return [_missing_comma(view, key, "a comma")]
    last = view.of(key).split(" ")[-1]
    return [
        view.finding(
            "colon-in-text",
            f"a second `:` stands in one entry, behind `{_short(last)}`",
            key.end - len(last),
            colon.end,
            help=f"put a comma before `{_short(last)}`, or quote the text with the colon",
        )
    ]


def _missing_key(view: _View, colon: Token) -> Finding:
    message = "a key is missing before `:`"
    return view.finding("missing-key", message, colon.start, colon.end, help="write `key: value`")


def _missing_comma(view: _View, token: Token, expected: str) -> Finding:
    return view.finding(
        "missing-comma",
        f"{expected} is expected before `{_short(view.of(token))}`",
        token.start,
        min(token.end, _line_end(view, token.start)),
        help="separate the entries with `, `",
    )


def _continued(view: _View, colon: Token, before: list[Token]) -> list[Finding]:
    """Answer for a key that continues the line above it: too deep, or below a missing colon."""
    key = before[-1]
    if key.kind not in {"plain", "quoted"}:
        return []
    earlier = [token for token in view.tokens[: view.index] if token.end <= before[0].start]
    earlier = [token for token in earlier if token.kind != "comment"]
    if not earlier or earlier[-1].kind not in {"plain", "quoted"}:
        return []
    above = earlier[-1]
    owner = [each for each in view.on_line_before(above) if each.kind == "colon"]
    if not owner:
        return [_missing_colon(view, above)]
    line = view.line_of(above)
    return [
        view.finding(
            "indentation",
            f"`{_short(view.of(key))}` is indented under line {line}, which already has the value "
            f"`{_short(view.of(above))}`",
            key.start,
            colon.end,
            help=f"indent it like line {line}, or move that value to a line of its own",
        )
    ]


def _bracket(view: _View) -> list[Finding]:
    """Answer for brackets: never closed, closed by the other kind, or closing nothing."""
    token = view.token_at()
    openers = view.sketch.openers(view.at)
    if not openers:
        if token is not None and token.kind == "close":
            sign = view.of(token)
            message = f"`{sign}` closes nothing"
            advice = "remove it, or quote the text that contains it"
            return [view.finding("unopened", message, token.start, token.end, help=advice)]
        return []
    opener = openers[-1]
    closer = _CLOSERS[view.of(opener)]
    if token is not None and token.kind == "close" and view.of(token) != closer:
        message = f"`{view.of(opener)}` opened here meets a `{view.of(token)}`"
        return [_open_bracket(view, opener, message)]
    if opener.start not in view.sketch.closers:
        return [_open_bracket(view, opener, f"`{view.of(opener)}` opened here is never closed")]
    if token is None or token.kind in {"comma", "close"}:
        return []
    return [_missing_comma(view, token, f"a comma or `{closer}`")]


def _open_bracket(view: _View, opener: Token, message: str) -> Finding:
    line = view.sketch.place(view.at)[0]
    note = f"noticed on line {line}" if line != view.line_of(opener) else ""
    advice = f"close it with `{_CLOSERS[view.of(opener)]}`, or quote the text"
    return view.finding("unclosed", message, opener.start, opener.end, help=advice, note=note)


def _list_beside_key(view: _View) -> list[Finding]:
    """Find ``links: - a -- b: pcie``: a list that starts on its key's line."""
    token = view.token_at()
    if token is None or token.kind != "dash":
        return []
    before = view.on_line_before(token)
    if not before or before[-1].kind != "colon":
        return []
    return [
        view.finding(
            "list-beside-key",
            "a list item cannot start on the line of its key",
            token.start,
            token.end,
            help="start the list on the next line, each item with `- `",
        )
    ]


def _indentation(view: _View) -> list[Finding]:
    """Answer when the first thing on a line is what the parser did not expect."""
    token = view.token_at()
    if token is None or token.depth or view.on_line_before(token):
        return []
    line, column = view.sketch.place(token.start)
    columns = _columns_above(view, line)
    shown = _short(view.of(token))
    if not columns:
        return []
    if column - 1 not in columns:
        levels = " or ".join(str(each) for each in sorted(columns, reverse=True))
        spaces = "1 space" if column == 2 else f"{column - 1} spaces"  # noqa: PLR2004
        message = f"`{shown}` is indented by {spaces}; the lines above allow {levels}"
        advice = "line it up with its neighbours"
    elif token.kind == "dash":
        message = "a list item stands where a key is expected"
        advice = "indent the item below its key, or remove the `- `"
    else:
        message = f"`{shown}` is not an item of the list above it"
        advice = "start it with `- `, or indent it less"
    return [view.finding("indentation", message, token.start, token.end, help=advice)]


def _columns_above(view: _View, line: int) -> dict[int, int]:
    """Return the indents that are open above `line`, each with the line that set it."""
    columns: dict[int, int] = {}
    lowest = 1 << 30
    for number in range(line - 1, max(0, line - 10_000), -1):
        text = view.sketch.line(number)
        stripped = text.lstrip(" ")
        indent = len(text) - len(stripped)
        if stripped and not stripped.startswith("#") and indent < lowest:
            columns[indent] = number
            lowest = indent
        if lowest == 0:
            break
    return columns


def _not_yaml(view: _View) -> Finding:
    """Say at least which line cannot be read."""
    line, _ = view.sketch.place(view.at)
    source = view.sketch.line(line).strip(" ")
    shown = f"`{_short(source)}` cannot be read" if source else "the text ends too early"
    return view.finding(
        "not-yaml",
        shown,
        view.at,
        view.at + 1,
        help="quote texts that contain signs, and indent with spaces",
    )


def _line_end(view: _View, offset: int) -> int:
    end = view.sketch.text.find("\n", offset)
    return len(view.sketch.text) if end < 0 else end


def _content_end(view: _View, offset: int) -> int:
    """Return where the line ends without its comment and trailing blanks."""
    end = _line_end(view, offset)
    comment = re.compile(r"[ \t]#").search(view.sketch.text, offset, end)
    end = comment.start() if comment else end
    return offset + len(view.sketch.text[offset:end].rstrip(" \t"))


def _short(text: str) -> str:
    line = text.split("\n", 1)[0]
    return line if len(line) <= 60 and line == text else f"{line[:57]}..."  # noqa: PLR2004


_ESCAPE: Final = re.compile(r"\\(?:x[0-9a-fA-F]*|u[0-9a-fA-F]*|U[0-9a-fA-F]*|.|\n)?")
_QUOTE_IT: Final = "quote the text that contains it"
_TAIL: Final = re.compile(r"[-A-Za-z0-9_./]*")
_COMPARISON: Final = re.compile(r"[<>]=?\s*[0-9]")
_SIGN_KINDS: Final = frozenset({"sign", "alias", "anchor", "block"})
_MEANINGS: Final = {
    ">": "starts a block of text on the lines below",
    "|": "starts a block of text on the lines below",
    "&": "names an anchor",
    "%": "begins a YAML directive",
}

_LOOKS: Final[tuple[Callable[[_View], Iterable[Finding]], ...]] = (
    _directives,
    _second_documents,
    _tabs,
    _odd_blanks,
    _smart_quotes,
    _questions,
    _tags,
    _block_headers,
)
_CAUSES: Final[tuple[Callable[[_View], list[Finding]], ...]] = (
    _bad_escape,
    _comment_ate_text,
    _ranges_in_brackets,
    _sign_at_start,
    _after_quote,
    _unclosed_quote,
    _key_without_colon,
    _colon_in_text,
    _bracket,
    _list_beside_key,
    _indentation,
)
