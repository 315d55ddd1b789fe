"""The `sweep:` of a file: read, written again, and left behind where the file is used."""

from __future__ import annotations

from dataclasses import replace

from tests.machines import ONE_SOCKET, built
from topo.description.as_document import to_document
from topo.description.loading import build, loads

AXES = """
sweep:
  via: [legacy, direct]
  ram.bus: 90 GB/s
  memory:
    small: {ram.bus: 20 GB/s, ram.price: 300}
    large: {ram.bus: 200 GB/s, ram.price: 900}
  x-notes: [whatever]
"""


def axes_of(description):
    return [replace(axis, place=None) for axis in description.axes]


def test_axes_are_keys_with_values_or_names_with_changes():
    via, bus, memory = loads(ONE_SOCKET + AXES).axes
    assert [choice.changes for choice in via.choices] == [{"via": "legacy"}, {"via": "direct"}]
    assert [choice.label for choice in bus.choices] == ["90 GB/s"]
    assert [choice.label for choice in memory.choices] == ["small", "large"]
    assert memory.choices[1].changes == {"ram.bus": "200 GB/s", "ram.price": "900"}
    assert memory.place.line == via.place.line + 2


def test_they_are_written_as_they_were_read():
    description = loads(ONE_SOCKET + AXES)
    assert axes_of(build(to_document(description))) == axes_of(description)


def test_they_stay_behind_where_the_file_is_used(tmp_path):
    from topo.description.loading import load

    (tmp_path / "box.yaml").write_text(ONE_SOCKET + AXES, encoding="utf-8")
    outer = "topo: 1\ndevices:\n  node[0-1]: {use: box.yaml}\n"
    (tmp_path / "pod.yaml").write_text(outer, encoding="utf-8")
    description = load(tmp_path / "pod.yaml")
    assert description.axes == ()
    assert description.uses[0].template.axes == ()


def test_they_change_nothing_else():
    stated, silent = built(ONE_SOCKET + AXES), built(ONE_SOCKET)
    assert list(stated.devices) == list(silent.devices)
    assert [each.capacity.theoretical.value for each in stated.resources.values()] == [
        each.capacity.theoretical.value for each in silent.resources.values()
    ]
