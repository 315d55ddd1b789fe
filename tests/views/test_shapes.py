"""The picture as shapes: for diagrams.net in frames with wires tied to boxes, and as PDF."""

from __future__ import annotations

import re
import sys
from xml.etree import ElementTree as ET

import pytest

import topo
from tests.machines import UNLIKE
from topo.description.locating import builtin_names
from topo.views.diagram.timeline import draw_timeline

HOSTILE = """
topo: 1
name: box
title: "</mxfile><script>alert(1)</script> &amp; \\u202e"
devices:
  cpu0: {part: xeon-8480c, label: '"><img src=x onerror=alert(1)>'}
  gpu0: l40s
links: [gpu0 -- cpu0: pcie 4 x16]
"""


def cells_of(picture, tmp_path):
    """Return the cells of a file by id, each with where it is on the page."""
    picture.write(tmp_path / "x.drawio")
    root = ET.parse(tmp_path / "x.drawio").getroot()
    cells = {cell.get("id"): cell for cell in root.iter("mxCell")}
    assert len(cells) == len(list(root.iter("mxCell")))
    return cells


def corner(cells, cell):
    """Return the left upper corner on the page: frames add up."""
    x = y = 0.0
    while cell.get("parent") not in (None, "0"):
        place = cell.find("mxGeometry")
        x, y = x + float(place.get("x", 0)), y + float(place.get("y", 0))
        cell = cells[cell.get("parent")]
    return x, y


def shown(cell):
    return re.sub(r"<[^>]*>", " ", cell.get("value") or "").split()


@pytest.mark.parametrize("name", builtin_names())
def test_every_cell_has_its_parent_and_its_place(name, tmp_path):
    picture = topo.draw(topo.load(name), answer=None)
    cells = cells_of(picture, tmp_path)
    for cell in cells.values():
        assert cell.get("id") == "0" or cell.get("parent") in cells
        for end in ("source", "target"):
            assert cell.get(end) is None or cells[cell.get(end)].get("vertex") == "1"
        if cell.get("vertex") == "1":
            x, y = corner(cells, cell)
            place = cell.find("mxGeometry")
            assert 0 <= x <= x + float(place.get("width")) <= picture.width + 1
            assert 0 <= y <= y + float(place.get("height")) <= picture.height + 1


def test_boxes_are_in_the_frames_of_their_sockets_and_wires_are_tied(tmp_path):
    machine = topo.load("dgx-h100")
    cells = cells_of(topo.draw(machine, answer=None, collapse=False), tmp_path)
    named = {shown(cell)[0]: cell for cell in cells.values() if shown(cell)}
    first, second = named["gpu0"].get("parent"), named["gpu4"].get("parent")
    assert first != second
    assert named["slot2"].get("parent") == named["ram0"].get("parent") == first
    assert named["slot1"].get("parent") == second
    assert "container=1" in cells[first].get("style")
    pairs = {
        frozenset((cell.get("source"), cell.get("target")))
        for cell in cells.values()
        if cell.get("edge") == "1"
    }
    assert frozenset((named["gpu0"].get("id"), named["nic0"].get("id"))) in pairs


def test_bottlenecks_and_hops_are_there(tmp_path):
    cells = cells_of(topo.draw(topo.load("gds-textbook")), tmp_path)
    words = [" ".join(shown(cell)) for cell in cells.values()]
    assert sum("BOTTLENECK slot1/chip 50 GB/s" in text for text in words) == 2
    assert {"1", "2", "3"} <= set(words)
    arrows = [cell for cell in cells.values() if "endArrow=classic" in (cell.get("style") or "")]
    assert len(arrows) >= 2


def test_a_strangers_words_stay_words(tmp_path):
    cells = cells_of(topo.draw(topo.loads(HOSTILE)), tmp_path)
    for cell in cells.values():
        value = cell.get("value") or ""
        assert set(re.findall(r"<(\w+)", value)) <= {"span", "b", "br"}
        assert "\u202e" not in value


def test_a_timeline_is_written_too(tmp_path):
    simulation = topo.simulate(topo.load("gds-textbook"))
    assert len(cells_of(draw_timeline(simulation), tmp_path)) > 20
    assert draw_timeline(simulation).pdf().startswith(b"%PDF")


def test_the_same_picture_gives_the_same_file(tmp_path):
    texts = []
    for _ in range(2):
        topo.draw(topo.load("gds-textbook")).write(tmp_path / "x.drawio")
        texts.append((tmp_path / "x.drawio").read_text())
    assert texts[0] == texts[1]


@pytest.mark.parametrize("name", builtin_names())
def test_every_machine_is_a_pdf_page_too(name):
    machine = topo.load(name)
    pictures = [topo.draw(machine)]
    if name in UNLIKE:
        pictures += [topo.draw(machine, answer=None, theme=theme) for theme in ("light", "dark")]
    for picture in pictures:
        data = picture.pdf()
        assert data.startswith(b"%PDF-1.4\n")
        assert data.endswith(b"%%EOF\n")
        assert b"none" not in data


def test_a_slide_without_its_library_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pptx", None)
    with pytest.raises(topo.TopoError, match=r"takes python-pptx, .*pip install python-pptx"):
        topo.draw(topo.load("gds-textbook")).write(tmp_path / "x.pptx")
    assert not (tmp_path / "x.pptx").exists()


@pytest.mark.parametrize("name", ["gds-textbook", "dgx-h100", "pod-32"])
def test_a_slide_has_native_shapes(name, tmp_path):
    library = pytest.importorskip("pptx", reason="python-pptx is not installed: no slide is tried")
    picture = topo.draw(topo.load(name))
    slide = library.Presentation(picture.write(tmp_path / "x.pptx")).slides[0]
    assert len(slide.shapes) == len(picture.shapes)
    effects = [each for each in slide.element.iter() if each.tag.endswith("}effectRef")]
    assert {each.get("idx") for each in effects} == {"0"}, "no shadow of the theme's"
    texts = [run.text for shape in picture.shapes for run in shape.text]
    shown = [
        paragraph.text
        for shape in slide.shapes
        if shape.has_text_frame
        for paragraph in shape.text_frame.paragraphs
        if paragraph.text
    ]
    assert shown == [text for text in texts if text]
