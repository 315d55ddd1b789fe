import io
import os
import stat
import sys
import threading
from pathlib import Path

import pytest

from topo.errors import TopoError
from topo.files import read_file, spare_inputs, write_file


def test_a_file_is_written_through_a_link(tmp_path):
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to("real.txt")
    write_file(str(tmp_path / "link.txt"), "new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"


def test_a_new_file_has_the_usual_mode(tmp_path):
    mask = os.umask(0o022)
    try:
        write_file(str(tmp_path / "new.txt"), "new")
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "new.txt").stat().st_mode) == 0o644


@pytest.mark.parametrize("name", ["folder", "nowhere/file.txt"])
def test_a_file_that_cannot_be_written_is_a_finding(tmp_path, name):
    (tmp_path / "folder").mkdir()
    with pytest.raises(TopoError, match="unwritable-file"):
        write_file(str(tmp_path / name), "text")


def test_a_failed_write_leaves_what_was_there(tmp_path, monkeypatch):
    file = tmp_path / "file.txt"
    file.write_text("old")

    def refuse(self, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(TopoError, match="no space left on device"):
        write_file(str(file), "new")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


def test_a_file_keeps_its_mode(tmp_path):
    file = tmp_path / "file.txt"
    file.write_text("old")
    file.chmod(0o640)
    write_file(str(file), "new")
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_a_pipe_is_written_to_and_stays(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_file(str(pipe), "new")
        assert os.read(reader, 10) == b"new"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_no_more_is_read_than_may_be(tmp_path):
    (tmp_path / "file").write_bytes(b"abcdef")
    assert read_file(str(tmp_path / "file"), 6) == b"abcdef"
    assert read_file(str(tmp_path / "file")) == b"abcdef"
    with pytest.raises(TopoError, match="too-large"):
        read_file(str(tmp_path / "file"), 5)


def test_the_limit_stands_before_the_reading(tmp_path):
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(20 * 10**9)
    for path in (str(tmp_path / "sparse"), "/dev/zero"):
        with pytest.raises(TopoError, match="has more than 64 MiB"):
            read_file(path)


def test_a_folder_is_not_read(tmp_path):
    with pytest.raises(TopoError, match="is a folder"):
        read_file(str(tmp_path))


def test_a_pipe_is_read_where_somebody_writes_to_it(tmp_path, monkeypatch):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    monkeypatch.setattr("topo.files._PAUSE_S", 0.001)
    with pytest.raises(TopoError, match="a pipe that nobody writes to"):
        read_file(str(pipe))
    monkeypatch.setattr("topo.files._PAUSE_S", 0.05)
    writer = threading.Thread(target=lambda: pipe.write_bytes(b"a" * 200_000))
    writer.start()
    assert read_file(str(pipe)) == b"a" * 200_000
    writer.join()


@pytest.mark.parametrize(
    ("standard_input", "message"),
    [(None, "standard input cannot be read: it is closed"), (b"abcdef", "standard input has more")],
)
def test_standard_input_has_the_same_limit(monkeypatch, standard_input, message):
    stream = None if standard_input is None else io.TextIOWrapper(io.BytesIO(standard_input))
    monkeypatch.setattr(sys, "stdin", stream)
    with pytest.raises(TopoError, match=message):
        read_file("-", 5)


def test_a_file_of_two_names_stays_one(tmp_path):
    (tmp_path / "a").write_text("older and longer")
    (tmp_path / "b").hardlink_to(tmp_path / "a")
    write_file(str(tmp_path / "a"), "new")
    assert (tmp_path / "b").read_text() == "new"
    assert (tmp_path / "a").stat().st_nlink == 2


def test_a_file_of_another_owner_keeps_it(tmp_path, monkeypatch):
    file = tmp_path / "file"
    file.write_text("old")
    number = file.stat().st_ino
    monkeypatch.setattr("topo.files._owner", lambda: (4711, 4711))
    write_file(str(file), "new")
    assert (file.read_text(), file.stat().st_ino) == ("new", number)


def test_a_read_only_file_is_not_written(tmp_path):
    file = tmp_path / "file"
    file.write_text("old")
    file.chmod(0o444)
    with pytest.raises(TopoError, match="it is read-only"):
        write_file(str(file), "new")
    assert file.read_text() == "old"


def test_what_somebody_else_wrote_meanwhile_stays(tmp_path):
    file = tmp_path / "file"
    file.write_text("theirs")
    with pytest.raises(TopoError, match="changed-meanwhile"):
        write_file(str(file), "mine", was=b"before")
    assert file.read_text() == "theirs"
    write_file(str(file), "mine", was=b"theirs")
    assert file.read_text() == "mine"


def test_of_two_writers_at_once_one_is_told(tmp_path):
    file = tmp_path / "file"
    file.write_text("before")
    said = []

    def write(text):
        try:
            write_file(str(file), text, was=b"before")
        except TopoError as error:
            said.append(error.findings[0].code)

    writers = [threading.Thread(target=write, args=(f"text {at}",)) for at in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert said == ["changed-meanwhile"] * 7


def test_an_input_is_no_output(tmp_path):
    (tmp_path / "a").write_text("text")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(TopoError, match="output-is-input"):
        spare_inputs(str(tmp_path / "b"), ["-", "", str(tmp_path / "a")])
    spare_inputs(str(tmp_path / "new"), ["-", str(tmp_path / "a")])
