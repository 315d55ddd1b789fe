"""The mistakes people make, and what each is told: code, place, message, advice."""

import pytest

from topo.document.faults import explain
from topo.document.parse import parse
from topo.errors import DocumentError

# (text, [(code, line, column, end column, message, advice)]); the code is the test's name.
MISTAKES = [
    (
        "load: {read: 640 GB, to: gpu[0-7]}",
        "range-in-braces",
        (1, 26, 34),
        "the range `gpu[0-7]` inside { } or [ ] needs quotes",
        'write "gpu[0-7]"; all of them is just `gpu`',
    ),
    (
        "to: [gpu0, node[0-15].slot1]",
        "range-in-braces",
        (1, 12, 28),
        "the range `node[0-15].slot1` inside { } or [ ] needs quotes",
        'write "node[0-15].slot1"; all of them is just `node`',
    ),
    (
        "slot1: {part: x, label: Slot #1}\n",
        "comment-ate-text",
        (1, 29, 33),
        "` #` starts a comment here and hides the `}`",
        'quote the text: "Slot #1"',
    ),
    (
        "a:\n  - [x, Slot #1, y]\n  - z\n",
        "comment-ate-text",
        (2, 13, 20),
        "` #` starts a comment here and hides the `]`",
        'quote the text: "Slot #1"',
    ),
    (
        "topo: 1\ntitle: DGX H100: storage\n",
        "colon-in-text",
        (2, 8, 25),
        "`: ` stands inside the text `DGX H100: storage`",
        'quote it: "DGX H100: storage"',
    ),
    (
        "a: {read: 640 GB from: storage}",
        "colon-in-text",
        (1, 18, 23),
        "a second `:` stands in one entry, behind `from`",
        "put a comma before `from`, or quote the text with the colon",
    ),
    (
        "expect:\n  - load: >= 90 GB/s\n",
        "sign-starts-value",
        (2, 11, 12),
        "`>` at the start of a value starts a block of text on the lines below",
        "write the expectation as one sentence: `- load via direct >= 90 GB/s`",
    ),
    (
        "expect:\n  - load via legacy: > 90 GB/s # fast\n",
        "sign-starts-value",
        (2, 22, 23),
        "`>` at the start of a value starts a block of text on the lines below",
        "write the expectation as one sentence: `- load via legacy > 90 GB/s`",
    ),
    (
        "a: @all\n",
        "sign-starts-value",
        (1, 4, 5),
        "`@` at the start of a value is kept by YAML for itself",
        'quote the value: "@all"',
    ),
    (
        "a: |#x\n",
        "sign-starts-value",
        (1, 4, 5),
        "`|` at the start of a value starts a block of text on the lines below",
        'quote the value: "|#x"',
    ),
    (
        "a: & b\n",
        "sign-starts-value",
        (1, 4, 5),
        "`&` at the start of a value names an anchor",
        'quote the value: "& b"',
    ),
    (
        "l: {to: *}\n",
        "star",
        (1, 9, 10),
        "`*` is an alias in YAML, not a wildcard",
        "write the stem: `gpu` means every device of that stem",
    ),
    (
        "to: *.gpu\n",
        "star",
        (1, 5, 10),
        "`*.gpu` is an alias in YAML, not a wildcard",
        "write the stem: `gpu` means every device of that stem",
    ),
    ("a:\n\tb: c\n", "tab", (2, 1, 2), "a tab indents this line", "indent with spaces"),
    ("a:\tb\n", "tab", (1, 3, 4), "a tab stands here", "write spaces"),
    (
        "a:\n\u00a0 gpu0: x\n",
        "no-break-space",
        (2, 1, 3),
        "a no-break space stands before `gpu0`: U+00A0 NO-BREAK SPACE",
        "write an ordinary space, or none",
    ),
    (
        "a:\u200bx\n",
        "no-break-space",
        (1, 3, 4),
        "a blank that is no space stands before `x`: U+200B ZERO WIDTH SPACE",
        "write an ordinary space, or none",
    ),
    (
        "name: \u201cbox\u201d\n",
        "smart-quotes",
        (1, 7, 12),
        "`\u201c` is a typographic quote, which quotes nothing in YAML",
        'write "box"',
    ),
    (
        "a: 1\n---\nb: 2\n",
        "two-documents",
        (2, 1, 4),
        "`---` ends the document, and more follows; topo reads one document a file",
        "put the second document into a file of its own",
    ),
    (
        "a: 1\n...\nb: 2\n",
        "two-documents",
        (2, 1, 4),
        "`...` ends the document, and more follows; topo reads one document a file",
        "put the second document into a file of its own",
    ),
    (
        "# c\n%YAML 1.2\n---\na: 1\n",
        "directive",
        (2, 1, 10),
        "`%YAML 1.2` is a YAML directive; topo reads none",
        "remove the line",
    ),
    (
        "a: !!str b\n",
        "tag",
        (1, 4, 9),
        "`!!str` is a YAML tag; topo reads none",
        "quote it, or remove it",
    ),
    (
        "? a\n: b\n",
        "complex-key",
        (1, 1, 2),
        "`? ` begins a key of several parts; topo's keys are plain text",
        "write `key: value`",
    ),
    (
        "a: {medium: pcie ? x16}\n",
        "question-mark",
        (1, 13, 23),
        "a `?` inside { } or [ ] needs quotes",
        'write "pcie ? x16"',
    ),
    (
        "a: [?x]\n",
        "question-mark",
        (1, 5, 6),
        "a `?` inside { } or [ ] needs quotes",
        "quote the text that contains it",
    ),
    (
        "a: {b: c\n",
        "unclosed",
        (1, 4, 5),
        "`{` opened here is never closed",
        "close it with `}`, or quote the text",
    ),
    (
        "a: [1, 2}\n",
        "unclosed",
        (1, 4, 5),
        "`[` opened here meets a `}`",
        "close it with `]`, or quote the text",
    ),
    (
        'a: "b\nc: d\n',
        "unclosed",
        (1, 4, 5),
        'the quote `"` opened here is never closed',
        'close it with `"`, or write the text without quotes',
    ),
    (
        'a: "b\nc: "d"\n',
        "unclosed",
        (1, 4, 6),
        "the quote opened here ends only on line 2",
        'close it with `"`',
    ),
    (
        "a: b}\nc: ]\n",
        "unopened",
        (2, 4, 5),
        "`]` closes nothing",
        "remove it, or quote the text that contains it",
    ),
    (
        "a: 'don't'\n",
        "text-after-quote",
        (1, 9, 11),
        "the text goes on behind the closing `'`",
        "quote the whole text, and double a `'` that belongs to it",
    ),
    (
        'a: "5" disk\n',
        "text-after-quote",
        (1, 8, 12),
        'the text goes on behind the closing `"`',
        "quote the whole text",
    ),
    (
        'a: "C:\\data"\n',
        "bad-escape",
        (1, 7, 9),
        "`\\d` is not an escape that YAML knows",
        "write the text in single quotes, where a backslash is a backslash",
    ),
    (
        'a: "\\UFFFFFFFF"\n',
        "bad-escape",
        (1, 5, 15),
        "`\\UFFFFFFFF` is not an escape that YAML knows",
        "write the text in single quotes, where a backslash is a backslash",
    ),
    (
        "devices:\n  gpu0 h100\n  gpu1: x\n",
        "missing-colon",
        (2, 3, 12),
        "`gpu0 h100` has no `: ` that makes it a key",
        "write `gpu0: h100`",
    ),
    (
        "devices:\n  gpu0:h100\n  gpu1: x\n",
        "missing-colon",
        (2, 3, 12),
        "`gpu0:h100` has no `: ` that makes it a key",
        "put a space behind the colon: `gpu0: h100`",
    ),
    (
        "topo: 1\nname\n",
        "missing-colon",
        (2, 1, 5),
        "`name` has no `: ` that makes it a key",
        "write `name: ...`",
    ),
    (
        "a: b\n: c\n",
        "missing-key",
        (2, 1, 2),
        "a key is missing before `:`",
        "write `key: value`",
    ),
    (
        "a: {b: c, : d}\n",
        "missing-key",
        (1, 11, 12),
        "a key is missing before `:`",
        "write `key: value`",
    ),
    (
        "a: {\n  b: c\n  d: e\n}\n",
        "missing-comma",
        (3, 3, 4),
        "a comma is expected before `d`",
        "separate the entries with `, `",
    ),
    (
        "a: ['b' 'c']\n",
        "text-after-quote",
        (1, 9, 12),
        "the text goes on behind the closing `'`",
        "quote the whole text, and double a `'` that belongs to it",
    ),
    (
        "a: [{b: c} d]\n",
        "missing-comma",
        (1, 12, 13),
        "a comma or `]` is expected before `d`",
        "separate the entries with `, `",
    ),
    (
        "links: - a -- b: pcie\n",
        "list-beside-key",
        (1, 8, 9),
        "a list item cannot start on the line of its key",
        "start the list on the next line, each item with `- `",
    ),
    (
        "gpu0: x\n  part: y\n",
        "indentation",
        (2, 3, 8),
        "`part` is indented under line 1, which already has the value `x`",
        "indent it like line 1, or move that value to a line of its own",
    ),
    (
        "a:\n    b: x\n  c: y\n",
        "indentation",
        (3, 3, 4),
        "`c` is indented by 2 spaces; the lines above allow 4 or 0",
        "line it up with its neighbours",
    ),
    (
        "links:\n  - a\n  b: c\n",
        "indentation",
        (3, 3, 4),
        "`b` is not an item of the list above it",
        "start it with `- `, or indent it less",
    ),
    (
        "a: b\n- c\n",
        "indentation",
        (2, 1, 2),
        "a list item stands where a key is expected",
        "indent the item below its key, or remove the `- `",
    ),
]


@pytest.mark.parametrize("pure", [False, True], ids=["fast", "pure"])
@pytest.mark.parametrize(
    ("text", "code", "span", "message", "advice"),
    MISTAKES,
    ids=[f"{number}-{mistake[1]}" for number, mistake in enumerate(MISTAKES)],
)
def test_a_mistake_is_named(text, code, span, message, advice, pure):
    with pytest.raises(DocumentError) as caught:
        parse(text, name="box.yaml", pure=pure)
    (finding,) = caught.value.findings
    place = finding.place
    assert (finding.code, finding.message, finding.help) == (code, message, advice)
    assert (place.line, place.column, place.end_column) == span
    assert finding.source_line == text.split("\n")[place.line - 1]


@pytest.mark.parametrize(
    "text",
    [
        "a: b # a\ttab and a ? and a \u00a0\n",
        "# \t?\n#\u00a0x\na: b\n",
        'a: "\u00a0 ? !x \u201c"\n',
        "a: what?\n",
        "a: |\n  ? \u00a0 !tag \u201cx\u201d\n",
        "a: b!c\n",
        "a: \u201ain the middle\u2019\n".replace("\u201a", "x"),
        "a: it's\n",
        "a: <= 5\nb: a -> b\n",
        "a: b#c\n",
        "a: one\n  - two\n  'three' &four\n",
    ],
)
def test_what_only_looks_like_a_mistake_is_read(text):
    assert parse(text, pure=True) == parse(text)


def test_several_odd_characters_come_at_once_in_order():
    with pytest.raises(DocumentError) as caught:
        parse("a:\t\u201cb\u201d\n\u00a0c: !x d\n")
    assert [each.code for each in caught.value.findings] == [
        "tab",
        "smart-quotes",
        "no-break-space",
        "tag",
    ]


def test_all_ranges_in_brackets_come_at_once():
    with pytest.raises(DocumentError) as caught:
        parse("a: {b: gpu[0-3], c: [nic[1,2]]}\n")
    assert [each.place.column for each in caught.value.findings] == [8, 22]


def test_the_last_cause_always_answers():
    (finding,) = explain("a: b\n", "box.yaml", "", at=3)
    assert (finding.code, finding.message) == ("not-yaml", "`a: b` cannot be read")


def test_a_mistake_far_down_a_long_text_is_still_named():
    text = "top:\n" + "".join(f"k{n}: {{a: b}}\n" for n in range(20_000)) + "x: {a: gpu[0-7]}\n"
    with pytest.raises(DocumentError) as caught:
        parse(text)
    assert caught.value.findings[0].code == "range-in-braces"
    assert caught.value.findings[0].place.line == 20_002
