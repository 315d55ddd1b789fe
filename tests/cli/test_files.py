"""The verbs about files and words: parts, schema, explain, fmt, new, draw."""

from __future__ import annotations

import ast
import re
import stat
from functools import cache
from pathlib import Path

import pytest

import topo as package
from topo.datapaths.registry import built_in
from topo.description.data_paths import built_in_files
from topo.description.locating import builtin_names
from topo.topology.locality import CLASSES
from topo.views.explain import page_of, pages
from topo.views.resources import CLASS_WORDS

PACKAGE = Path(package.__file__).parent


# --- parts ----------------------------------------------------------------------------------------


def test_parts_lists_the_catalogue(topo):
    out = topo("parts").out
    assert "h100-sxm-80gb" in out
    assert "pcie 5" in out


def test_a_part_has_a_source_for_each_figure(topo):
    out = topo("parts", "connectx-7-dual-port").out
    assert re.search(r"^chip +50 GB/s +datasheet", out, re.MULTILINE)


def test_every_figure_of_the_catalogue_has_a_kind_and_a_source(topo):
    document = topo("parts", "--json").document
    assert document["schema"] == "topo.parts/1"
    figures = [figure for part in document["parts"] for figure in part["figures"].values()]
    assert len(figures) > 100
    assert all(figure["kind"] and figure["source"] for figure in figures)
    assert all(medium["rate"] is None or medium["rate"]["source"] for medium in document["media"])


def test_a_piece_of_a_name_lists_those_that_have_it(topo):
    out = topo("parts", "CONNECTX").out
    assert "connectx-7" in out
    assert "h100" not in out


def test_one_medium(topo):
    assert "32 GT/s x 128/130 / 8" in topo("parts", "pcie 5").out
    (medium,) = topo("parts", "pcie 5", "--json").document["media"]
    assert medium["name"] == "pcie 5"


def test_a_near_name_is_offered(topo):
    assert "connectx-7" in topo("parts", "conectx-7").err


def test_the_machines(topo):
    out = topo("parts", "--machines").out
    document = topo("parts", "--machines", "--json").document
    assert tuple(machine["name"] for machine in document["machines"]) == builtin_names()
    (dgx,) = (machine for machine in document["machines"] if machine["name"] == "dgx-h100")
    assert (dgx["group"], dgx["gpus"], dgx["outside"]) == ("nvidia", 8, True)
    assert dgx["card_parts"] == {"connectx-7-dual-port": 2, "connectx-7-bridge": 8}
    for machine in document["machines"]:
        assert f"\n{machine['name']} " in out
        assert machine["notice"].split()[-1] in out


@pytest.mark.parametrize("name", builtin_names())
def test_a_copy_of_each_machine_is_right(topo, name):
    text = topo("new", "mine", "--like", name).out
    assert text.startswith("#")
    done = topo("check", "-", stdin=text.encode())
    assert (done.code, done.out.partition(":")[0], done.err) == (0, "mine", "")


# --- schema ---------------------------------------------------------------------------------------


def test_the_schema_is_one_document_either_way(topo):
    done = topo("schema")
    assert done.document["$schema"].startswith("https://json-schema.org/")
    assert done == topo("schema", "--json")


# --- explain --------------------------------------------------------------------------------------

_PLACE_OF_CODE = {
    "Finding": 0,
    "Reason": 0,
    "Problem": 0,
    "_server_reason": 0,
    "UnitError": 0,
    "finding": 0,
    "_find": 0,
    "find": 0,
    "_of": 1,
    "_stated": 2,
    "whole_text": 1,
    "_report_by_cause": 1,
    "add": 1,
}
_SEVERITIES = {"error", "warning", "note"}
_CODE = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def codes_in(path: Path) -> set[str]:
    """Return the codes of findings and reasons that a file of the package can make."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            finds_text = name == "find" and len(node.args) == 1  # an element's or a text's own
            place = None if finds_text else _PLACE_OF_CODE.get(name)
            arguments = [
                *(node.args[place : place + 1] if place is not None else []),
                *(one.value for one in node.keywords if one.arg == "code"),
            ]
            found |= {text for one in arguments for text in texts_in(one)}
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in {
            "code",
            "(code, message)",
        }:
            first = node.value.elts[0] if isinstance(node.value, ast.Tuple) else node.value
            found |= set(texts_in(first))
        elif isinstance(node, ast.Tuple) and len(node.elts) > 1:  # a row of a table of findings
            codes, severities = set(texts_in(node.elts[0])), set(texts_in(node.elts[1]))
            if severities & _SEVERITIES:
                found |= codes - _SEVERITIES
    return {code for code in found if _CODE.fullmatch(code)}


def texts_in(node: ast.expr) -> list[str]:
    """Return what an expression can be: a text, or one of two."""
    if isinstance(node, ast.IfExp):
        return [*texts_in(node.body), *texts_in(node.orelse)]
    return [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) else []


@cache
def all_codes() -> set[str]:
    return {code for path in PACKAGE.rglob("*.py") for code in codes_in(path)}


def test_the_codes_are_found():
    assert {
        "no-workload",
        "acs-redirect",
        "tab",
        "bare-number",
        "two-links-one-item",
    } <= all_codes()
    assert len(all_codes()) > 100


def test_every_code_has_a_page():
    assert sorted(all_codes() - set(pages())) == []


def test_every_page_of_a_code_is_about_one_that_exists():
    about = [page for page in pages().values() if page.about.startswith(("a finding", "a reason"))]
    assert sorted({page.word for page in about} - all_codes()) == []


def test_pages_are_short_and_fit_a_terminal():
    for page in pages().values():
        lines = page.text.splitlines()
        assert 1 <= len(lines) <= 16, page.word
        assert max(map(len, lines)) <= 104, page.word


def test_no_word_has_two_pages():
    text = "".join(path.read_text() for path in (PACKAGE / "views" / "pages").glob("*.md"))
    words = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert sorted(words) == sorted(set(words))
    assert len(words) == len(pages())


@pytest.mark.parametrize(
    "word", [*CLASSES, *CLASS_WORDS, "NV18", "RAM traversals", "cpu memory copy"]
)
def test_classes_and_words_are_explained(word):
    assert page_of(word) is not None


@pytest.mark.parametrize("name", built_in_files())
def test_a_data_path_is_explained_by_its_moves(topo, name):
    done = topo("explain", name)
    assert (done.code, "1. " in done.out, "Source: " in done.out) == (0, True, True)


@pytest.mark.parametrize("name", built_in_files())
def test_every_buffer_and_waypoint_of_a_data_path_is_explained(name):
    ends = {end for move in built_in(name).moves for end in (move.source, move.target)}
    for word in (*sorted(ends - {"peer"}), "PCIe", "NVLink", "NVLink-C2C", "xGMI", "NIC"):
        assert page_of(word) is not None, word


def test_explain_joins_its_words(topo):
    assert topo("explain", "RAM", "traversal").out == topo("explain", "ram-traversal").out
    assert topo("explain", "--json").document["words"]["a class of locality"][0] == "X"
    assert topo("explain", "NODE", "--json").document["about"] == "a class of locality"


def test_explain_offers_a_near_word(topo):
    assert "did you mean `acs-redirect`?" in topo("explain", "acs-redirct").err


# --- new ------------------------------------------------------------------------------------------


def test_a_new_file_is_right(topo, tmp_path):
    assert topo("new", "lab", "-o", "lab.yaml").out == "wrote lab.yaml\n"
    done = topo("check", "lab.yaml")
    assert (done.code, done.out, done.err) == (0, "lab: 2 expectations hold\n", "")
    assert topo("compare", "lab.yaml").code == 0


def test_a_new_file_like_a_built_in_keeps_its_comments(topo):
    text = topo("new", "lab-box", "--like", "dgx-h100").out
    assert "\nname: lab-box\n" in text
    assert text.startswith("# NVIDIA DGX H100")
    assert topo("check", "-", stdin=text.encode()).code == 0


def test_a_new_file_is_named_after_itself(topo, tmp_path):
    topo("new", "-o", "rack-7.yaml")
    assert "\nname: rack-7\n" in (tmp_path / "rack-7.yaml").read_text()


def test_an_existing_file_stays(topo, tmp_path):
    (tmp_path / "mine.yaml").write_text("mine")
    assert topo("new", "-o", "mine.yaml").code == 1
    assert (tmp_path / "mine.yaml").read_text() == "mine"


def test_new_as_json(topo):
    document = topo("new", "lab", "--json").document
    assert (document["schema"], document["name"]) == ("topo.new/1", "lab")
    assert document["text"] == topo("new", "lab").out


# --- fmt ------------------------------------------------------------------------------------------


def test_fmt_formats_in_place_and_then_has_nothing_to_do(topo, tmp_path):
    crooked = topo("new").out.replace("  storage:  {", "  storage:     {   ")
    file = tmp_path / "box.yaml"
    file.write_text(crooked)
    file.chmod(0o640)
    assert topo("fmt", "--check", "box.yaml").code == 1
    assert file.read_text() == crooked
    done = topo("fmt", "box.yaml", "--json")
    assert done.document["files"] == [{"file": "box.yaml", "changed": True}]
    assert file.read_text() != crooked
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert [path.name for path in tmp_path.iterdir()] == ["box.yaml"], "no draft is left"
    assert topo("fmt", "--check", "box.yaml").code == 0
    assert topo("check", "box.yaml").code == 0


def test_fmt_filters_standard_input(topo):
    text = topo("new").out
    once = topo("fmt", "-", stdin=text.encode()).out
    assert topo("fmt", "-", stdin=once.encode()).out == once
    assert "# A server for topo." in once


def test_fmt_does_what_it_can(topo, box, tmp_path):
    done = topo("fmt", "nowhere.yaml", box)
    assert done.code == 1
    assert "no-file" in done.err
    assert topo("fmt", "--check", box).code == 0


# --- draw -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "start"), [("a.svg", b"<?xml"), ("a.png", b"\x89PNG"), ("a.dot", b"digraph")]
)
def test_draw_writes_what_the_suffix_says(topo, box, tmp_path, name, start):
    assert topo("draw", box, "-o", name).out == f"wrote {name}\n"
    assert (tmp_path / name).read_bytes().lstrip().startswith(start)


def test_draw_takes_the_size_of_a_png(topo, box, tmp_path):
    sizes = []
    for words in ([], ["--scale", "3"], ["--width", "900"]):
        topo("draw", box, "-o", "a.png", *words)
        sizes.append(int.from_bytes((tmp_path / "a.png").read_bytes()[16:20], "big"))
    assert sizes[1] == pytest.approx(2 * sizes[0], abs=2)
    assert sizes[2] == pytest.approx(900, abs=1)


@pytest.mark.parametrize(
    ("words", "code", "reason"),
    [
        ("-o a.svg --width 900", 2, "--width and --scale are for a .png"),
        ("--scale 2", 2, "--width and --scale are for a .png"),
        ("-o a.png --scale 2 --width 900", 2, "give one"),
        ("-o a.png --width 2", 2, "2 is not in the range"),
        ("-o a.png --width 99999", 1, "picture-size"),
    ],
)
def test_draw_refuses_a_size_that_cannot_be(topo, box, tmp_path, words, code, reason):
    done = topo("draw", box, *words.split())
    assert done.code == code
    assert reason in done.err
    assert not list(tmp_path.glob("a.*"))


def test_draw_on_standard_output_is_svg(topo, box):
    svg = topo("draw", box).out
    assert svg.startswith("<?xml")
    assert "legacy" in svg
    assert "direct" in svg
    assert "legacy" not in topo("draw", box, "--no-routes").out


def test_draw_tells_what_it_drew(topo, box):
    words = ("--from", "storage", "--to", "gpu0", "--via", "mmap", "--theme", "dark", "--together")
    document = topo("draw", box, *words, "--collapse", "-o", "a.dot", "--json").document
    assert (document["file"], document["data_paths"]) == ("a.dot", ["mmap"])


def test_draw_into_nowhere_is_a_finding(topo, box):
    done = topo("draw", box, "-o", "nowhere/a.svg")
    assert (done.code, "Traceback" in done.err) == (1, False)


def test_the_themes_are_the_pictures_own():
    from topo.cli.draw import command
    from topo.views.diagram.picture import THEMES

    (theme,) = (one for one in command.params if one.name == "theme")
    assert set(theme.type.choices) == set(THEMES)
