"""Text into a tree: places, quotes, anchors, limits, and what is refused on the tree."""

import contextlib
import time

import pytest

from topo.document.nodes import Document, Mapping, Scalar, Sequence
from topo.document.parse import (
    MAX_CHARACTERS,
    MAX_CHARACTERS_PURE,
    MAX_DEPTH,
    MAX_NODES,
    parse,
)
from topo.document.parse import (
    parse as _parse_function,  # the function, not the module of that name
)
from topo.errors import DocumentError, Place


def place(line, column, end_column=0):
    return Place("box.yaml", line, column, end_column)


def findings(text, *, pure=False):
    with pytest.raises(DocumentError) as caught:
        parse(text, name="box.yaml", pure=pure)
    return caught.value.findings


def test_the_front_of_the_room_gives_the_function():
    assert callable(_parse_function)


def test_scalars_stay_text():
    text = "pci: 17:00.0\np2p: no\nport: 010\nnothing:\ntilde: ~\n"
    root = parse(text).root
    assert [value.text for _, value in root] == ["17:00.0", "no", "010", "", "~"]


@pytest.mark.parametrize(
    ("text", "value", "quoted"),
    [
        ("a: no", "no", False),
        ('a: "no"', "no", True),
        ("a: 'it''s'", "it's", True),
        ("a: |\n  two\n  lines\n", "two\nlines\n", True),
        ("a: >\n  one\n  line\n", "one line\n", True),
        ("a: one\n  text", "one text", False),
        ('a: "\\u00e9"', "é", True),
    ],
)
def test_a_scalar_knows_whether_it_was_quoted(text, value, quoted):
    node = parse(text).root.get("a")
    assert (node.text, node.quoted) == (value, quoted)


def test_every_node_knows_its_place():
    document = parse("topo: 1\nlinks:\n  - {é: [漢, x]}\n", name="box.yaml")
    item = document.root.get("links").items[0]
    (key, value) = item.entries[0]
    assert document.root.place == place(1, 1)
    assert document.root.get("topo").place == place(1, 7, 8)
    assert item.place == place(3, 5, 16)
    assert key.place == place(3, 6, 7)
    assert value.place == place(3, 9, 15)
    assert [node.place for node in value.items] == [place(3, 10, 11), place(3, 13, 14)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("read:", place(1, 6, 6)),
        ("read:   # later\n", place(1, 6, 6)),
        ("{read: }", place(1, 7, 7)),
        ("{read:\n}", place(1, 7, 7)),
        ("{read}", place(1, 6, 6)),
        ("read : \n", place(1, 7, 7)),
        ('"re:ad":', place(1, 9, 9)),
        ("read: &a\n", place(1, 6, 6)),
    ],
)
def test_an_empty_value_stands_right_behind_its_key(text, expected):
    ((_, value),) = parse(text, name="box.yaml").root.entries
    assert value == Scalar("", expected)


def test_a_text_over_several_lines_is_marked_to_the_end_of_its_first():
    document = parse('a: "one\n  two"\n', name="box.yaml")
    assert document.root.get("a").place == place(1, 4, 8)


def test_an_alias_shares_the_node_and_its_place():
    document = parse("a: &x {b: c}\nd: *x\ne: &y name\nf: *y\n", name="box.yaml")
    root = document.root
    assert root.get("d") is root.get("a")
    assert root.get("f") == Scalar("name", place(3, 7, 11))


def test_a_document_keeps_its_lines():
    document = parse(b"\xef\xbb\xbftopo: 1\r\nname: x\r\n")
    assert document.lines == ("topo: 1", "name: x", "")
    assert document.root.get("name").place.line == 2


@pytest.mark.parametrize(
    "text", ["---\na: b\n", "# why\n---\na: b\n", "a: b\n...\n", "a: b\n...\n# end\n"]
)
def test_the_marks_of_a_single_document_are_allowed(text):
    assert parse(text).root.get("a").text == "b"


@pytest.mark.parametrize(
    ("text", "kind"), [("- a", Sequence), ("a", Scalar), ('""', Scalar), ("{}", Mapping)]
)
def test_the_root_may_be_anything_but_nothing(text, kind):
    assert isinstance(parse(text).root, kind)


@pytest.mark.parametrize("text", ["", " \n", "# only this\n", "---\n", "---\n...\n", "\ufeff"])
def test_an_empty_text_is_refused(text):
    (finding,) = findings(text)
    assert finding.code == "empty"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "a: 1\nb: 2\na: 3\n'a': 4\n",
            [
                ("defined-twice", (3, 1), "`a` is defined twice", ("first on line 1",)),
                ("defined-twice", (4, 1), "`a` is defined twice", ("first on line 1",)),
            ],
            id="key",
        ),
        pytest.param(
            "a: &x 1\nb: &x 2\n",
            [("defined-twice", (2, 4), "the anchor `&x` is defined twice", ("first on line 1",))],
            id="anchor",
        ),
        pytest.param(
            "slot1: {<<: {part: x}}\n",
            [
                (
                    "merge-key",
                    (1, 9),
                    "`<<` merges mappings in other YAML; topo has no merge keys",
                    (),
                )
            ],
            id="merge",
        ),
        pytest.param(
            "[a]: b\n{c: d}: e\n&f g: 1\n*f : h\n&i : j\n",
            [
                ("complex-key", (1, 1), "a list stands where a key is expected", ()),
                ("complex-key", (2, 1), "a mapping stands where a key is expected", ()),
                ("complex-key", (4, 1), "an alias stands where a key is expected", ()),
                ("missing-key", (5, 3), "a key is missing before `:`", ()),
            ],
            id="keys",
        ),
        pytest.param(
            "a: &x [*x]\n",
            [("alias-in-itself", (1, 8), "`*x` stands inside itself", ())],
            id="recursion",
        ),
        pytest.param(
            "to: *gpu\n",
            [
                (
                    "star",
                    (1, 5),
                    "`*gpu` is an alias, and nothing is anchored as `&gpu`",
                    (),
                )
            ],
            id="unknown-alias",
        ),
        pytest.param(
            'a: "\\ud800"\nb: "\\0"\n',
            [
                ("bad-escape", (1, 4), "an escape gives U+D800, which cannot be seen", ()),
                ("bad-escape", (2, 4), "an escape gives U+0000, which cannot be seen", ()),
            ],
            id="escapes",
        ),
    ],
)
@pytest.mark.parametrize("pure", [False, True], ids=["fast", "pure"])
def test_all_mistakes_on_the_tree_come_at_once(text, expected, pure):
    found = findings(text, pure=pure)
    assert [
        (each.code, (each.place.line, each.place.column), each.message, each.notes)
        for each in found
    ] == expected


@pytest.mark.parametrize(
    ("text", "span", "advice"),
    [
        ("{read: 1,5 TB}", (8, 14), "write 1.5 TB"),
        ("{read: 1,5, to: x}", (8, 11), "write 1.5"),
        ("{read: 1,500 GB}", (8, 16), "write 1500 GB, or 1.500 GB, as meant"),
    ],
)
def test_a_decimal_comma_is_seen_in_braces(text, span, advice):
    (finding,) = findings(text)
    assert finding.code == "decimal-comma"
    assert (finding.place.column, finding.place.end_column) == span
    assert finding.help == advice


@pytest.mark.parametrize("text", ["{a: 1, 5 TB}", '{a: "1",5 TB}', "{a: x,5}", "{a: 1,b}", "[1,5]"])
def test_other_commas_are_no_decimal_commas(text):
    assert isinstance(parse(text), Document)


def test_a_mistake_on_every_line_is_said_twenty_times():
    found = findings("a: b\n" * 1000)
    assert len(found) == 20
    assert found[-1].notes == ("first on line 1", "more of this kind follow")


# --- limits ---------------------------------------------------------------------------------------

BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]\n" for level in range(1, 20)
)
LADDER = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 60))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        pytest.param("[" * 100_000, "too-deep", id="brackets"),
        pytest.param("{a: " * 30_000, "too-deep", id="braces"),
        pytest.param("- " * 50_000, "too-deep", id="dashes"),
        pytest.param("".join(" " * n + "a:\n" for n in range(400)), "too-deep", id="indents"),
        pytest.param(LADDER, "too-deep", id="aliases"),
        pytest.param(BOMB, "too-large", id="bomb"),
    ],
)
@pytest.mark.parametrize("pure", [False, True], ids=["fast", "pure"])
def test_limits_hold_under_both_parsers(text, code, pure):
    assert [each.code for each in findings(text, pure=pure)] == [code]


def test_the_deepest_nesting_that_is_allowed_is_read():
    assert parse("[" * MAX_DEPTH + "]" * MAX_DEPTH).lines


def test_more_values_than_allowed_are_refused():
    (finding,) = findings("- - \n" * (MAX_NODES // 2 + 1))
    assert finding.code == "too-large"


@pytest.mark.parametrize(("pure", "limit"), [(False, MAX_CHARACTERS), (True, MAX_CHARACTERS_PURE)])
def test_a_text_of_the_largest_size_is_read_and_no_larger(pure, limit):
    assert parse("a" * limit, pure=pure).lines
    (finding,) = findings("a" * (limit + 1), pure=pure)
    assert finding.code == "too-large"


M = 100_000
HOSTILE = {
    "one-line": "a" * 50 * M,
    "flow": "[" + "a," * 14 * M + "]",
    "brackets": "[" * 15 * M,
    "anchors": "".join(f"- &a{n} b\n" for n in range(120_000)),
    "long-key": "k" * 15 * M + ": v",
    "open-quote": '"' + "x" * 15 * M,
    "quotes": '"' * 15 * M,
    "escapes": '"' + "\\n" * 7 * M,
    "tabs": "\t\n" * 7 * M,
    "no-break": "\u00a0a: b\n" * 2 * M,
    "questions": "{a?: b}\n" * 2 * M,
    "comments": "# c ? \n" * 2 * M,
    "hashes": "a#" * 7 * M + "\t",
    "blank": "\n" * 15 * M + "]",
    "blocks": "a: |#\n x\n" * M,
    "block": "a: |\n" + " x\n" * 5 * M,
    "twice": "a: b\n" * 3 * M,
    "dashes": ("- " * 30 + "\n") * 12_000,
    "merges": "- <<: a\n" * 2 * M,
    "stars": "- *a\n" * 3 * M,
    "tags": "- !a b\n" * 2 * M,
    "ranges": "- {a: gpu[0-7]}\n" * M,
    "controls": "\x07\n" * 7 * M,
    "colons": ": " * 7 * M,
    "late": "".join(f"a{n}: {{b: c}}\n" for n in range(14_000)) + "x: {a: gpu[0-7]}\n",
    "pure-flow": "[" + "a," * 65_000 + "}",
    "pure-anchors": "".join(f"- &a{n} b\n" for n in range(9_000)) + "]",
}


@pytest.mark.slow
@pytest.mark.parametrize("pure", [False, True], ids=["fast", "pure"])
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_texts_are_answered_within_seconds(text, pure):
    # A good machine takes half of one, a shared one twice that; what grows with the square of a
    # text takes minutes. The best of three: a busy machine makes any single figure luck.
    assert any(seconds_to_answer(text, pure=pure) < 5 for _ in range(3))


def seconds_to_answer(text, *, pure):
    started = time.process_time()
    with contextlib.suppress(DocumentError):
        parse(text, pure=pure)
    return time.process_time() - started
