"""`topo report`: where the page goes, and what is said when it cannot."""

from __future__ import annotations

import json


def test_a_page_is_written(topo, box):
    done = topo("report", box, "-o", "box.html")
    assert (done.code, done.out) == (0, "wrote box.html\n")


def test_json_beside_the_page_or_alone(topo, box, tmp_path):
    alone = topo("report", box, "--json")
    beside = topo("report", box, "-o", "box.html", "--json")
    assert alone.document == beside.document
    assert alone.document["schema"] == "topo.report/1"
    html = (tmp_path / "box.html").read_text(encoding="utf-8")
    shown = json.loads(html.split('id="document">')[1].split("</script>")[0])
    assert {**shown, "findings": alone.document["findings"]} == alone.document


def test_standard_output_takes_the_page(topo, box):
    done = topo("report", box, "-o", "-")
    assert done.out.startswith("<!doctype html>")
    assert done.out.endswith("</html>\n")


def test_the_command_line_in_it_asks_the_same(topo, box, tmp_path):
    asked = ("--set", "cpu0.label=host", "--at", "achievable", "--buffers", "all=ram0")
    done = topo("report", str(tmp_path / box), *asked, "--json")
    assert done.document["command"] == [box, *asked]
    assert str(tmp_path) not in done.out


def test_nowhere_to_write_is_said(topo, box, tmp_path):
    assert topo("report", box).code == 2
    assert topo("report", box, "-o", "-", "--json").code == 2
    assert "cannot be written" in topo("report", box, "-o", "no/such/folder.html").err
    done = topo("report", box, "-o", box)
    assert done.code != 0
    assert (tmp_path / box).read_text(encoding="utf-8").startswith(("topo", "\ntopo", "#"))
