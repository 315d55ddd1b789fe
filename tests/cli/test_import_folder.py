"""`topo import` of a folder: a copied tree, or this machine."""

from __future__ import annotations

from tests.discovery.trees import sysfs_box


def test_a_folder_needs_no_kind(topo, tmp_path):
    sysfs_box().write(tmp_path / "box")
    done = topo("import", "box")
    assert done.code == 0
    assert "name: box" in done.out
    assert topo("import", "sysfs", "box").out == done.out
    (tmp_path / "box.tar").write_bytes(sysfs_box().tar("w"))
    assert "gpu0:" in topo("import", "box.tar").out


def test_a_folder_is_no_file_of_another_kind(topo, tmp_path):
    (tmp_path / "box").mkdir()
    done = topo("import", "nccl", "box")
    assert done.code == 1
    assert "`box` is a folder, not what `nccl` reads" in done.err
    assert "write `topo import sysfs box`" in done.err
