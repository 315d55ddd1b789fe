"""What follows from each data path's moves: the twelve rows, as published or derived."""

from __future__ import annotations

import pytest

from tests.machines import ONE_SOCKET
from topo.datapaths.registry import built_in, count, data_path, data_paths, is_buffer, is_ram
from topo.description.data_paths import built_in_files
from topo.description.description import ENDS
from topo.description.loading import loads
from topo.document.parse import parse
from topo.errors import UnknownNameError

# path: RAM buffers, core copies, CPU memory copies, DRAM writes, DRAM reads
ROWS = {
    "legacy-pageable": (3, 2, 3, 3, 3),
    "legacy": (2, 1, 2, 2, 2),
    "odirect-pinned": (1, 0, 1, 1, 1),
    "odirect-pageable": (2, 1, 2, 2, 2),
    "mmap": (2, 1, 2, 2, 2),
    "direct": (0, 0, 0, 0, 0),
    "compat": (1, 0, 1, 1, 1),
    "routed-sysmem": (1, 0, 1, 1, 1),
    "routed-nvlink": (0, 0, 0, 0, 0),
    "p2pdma": (0, 0, 0, 0, 0),
    "nvme-tcp": (3, 2, 3, 3, 3),
    "c2c-direct": (0, 0, 0, 0, 0),
}
# The same for paths from and to RAM. As an end it is no buffer, but its bus carries the bytes.
RAM_ROWS = {
    "pinned": (0, 0, 1, 0, 1),
    "pageable": (1, 1, 2, 1, 2),
    "c2c": (0, 0, 1, 0, 1),
    "cached": (1, 1, 2, 1, 2),
    "buffered": (1, 1, 1, 2, 1),
    "odirect": (0, 0, 0, 1, 0),
    "memcpy": (0, 1, 1, 1, 1),
}
# The same for the paths of a copy, which a file's `copy:` workloads take.
PEER_ROWS = {
    "peer-nvlink": (0, 0, 0, 0, 0),
    "peer-pcie": (0, 0, 0, 0, 0),
    "peer-ram": (1, 0, 2, 1, 1),
    "nic-direct": (0, 0, 0, 0, 0),
    "nic-ram": (1, 0, 1, 1, 1),
}


@pytest.mark.parametrize("name", [*ROWS, *RAM_ROWS, *PEER_ROWS])
def test_the_rows(name):
    found = count(built_in(name))
    assert (
        found.ram_traversals,
        found.core_copies,
        found.cpu_memory_copies,
        found.dram_writes,
        found.dram_reads,
    ) == (ROWS | RAM_ROWS | PEER_ROWS)[name]
    assert found.dram_bytes == found.dram_writes + found.dram_reads


@pytest.mark.parametrize("name", [*ROWS, *PEER_ROWS])
def test_a_row_is_of_storage_or_of_a_peer(name):
    path = built_in(name)
    peer = "card" if name.startswith("nic") else "gpu"
    assert (path.far_end, path.near_end) == (peer if name in PEER_ROWS else "storage", "gpu")


@pytest.mark.parametrize(
    ("names", "ends"),
    [
        (("pinned", "pageable", "c2c", "cached"), ("ram", "gpu")),
        (("buffered", "odirect"), ("storage", "ram")),
        (("memcpy",), ("ram", "ram")),
    ],
)
def test_a_row_of_ram_has_it_at_one_end(names, ends):
    assert {(built_in(name).far_end, built_in(name).near_end) for name in names} == {ends}


@pytest.mark.parametrize("name", built_in_files())
def test_every_file_holds_the_one_data_path_that_it_is_called_after(name):
    root = parse(built_in_files()[name].read_bytes()).root
    assert [key.text for key, _ in root] == [name]


@pytest.mark.parametrize("name", built_in_files())
def test_every_path_says_what_it_is_and_where_that_comes_from(name):
    path = built_in(name)
    assert path.name == name
    assert path.title
    assert path.source
    assert list(ENDS).index(path.far_end) <= list(ENDS).index(path.near_end)
    assert path.falls_back_to in ("", *built_in_files())


def test_buffers_come_in_the_order_a_read_fills_them():
    assert count(built_in("legacy")).buffers == ("kernel-buffer", "user-buffer")
    assert is_ram("any-buffer")
    assert not any(is_ram(place) for place in ("storage", "gpu", "staging-gpu"))
    assert (is_ram("ram"), is_buffer("ram"), is_buffer("any-buffer")) == (True, False, True)


OWN = (
    ONE_SOCKET
    + """
data-paths:
  mine:
    title: read twice
    moves:
      - storage -> a-buffer by nic
      - a-buffer -> b-buffer by core
      - b-buffer -> a-buffer by core
      - a-buffer -> gpu by gpu
  direct: {title: changed}
"""
)


def test_a_user_s_own_path_is_counted_by_the_same_rules():
    description = loads(OWN.replace("  direct: {title: changed}\n", ""))
    found = count(data_path(description, "mine"))
    assert found.ram_traversals == 3  # it rests in one buffer twice
    assert found.buffers == ("a-buffer", "b-buffer")
    assert (found.core_copies, found.dram_bytes) == (2, 6)
    assert data_paths(description)[-1].name == "mine"
    assert len(data_paths(description)) == len(built_in_files()) + 1


def test_a_file_may_change_a_shipped_path_and_keeps_its_moves():
    path = data_path(loads(OWN), "direct")
    assert path.title == "changed"
    assert path.moves == built_in("direct").moves


def test_an_unknown_path_has_a_near_name():
    with pytest.raises(UnknownNameError, match=r"no data path `legcy`.*did you mean `legacy`"):
        data_path(loads(OWN), "legcy")
    with pytest.raises(UnknownNameError):
        built_in("nothing-like-it")


def test_where_no_name_is_near_a_few_are_told():
    with pytest.raises(UnknownNameError) as caught:
        built_in("zzz")
    (finding,) = caught.value.findings
    assert finding.help.startswith(f"the nearest of {len(built_in_files())} are ")
    assert finding.help.count(",") == 3
