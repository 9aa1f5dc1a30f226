"""Files in folders where others can write: links, pipes, parts of a file, and errors."""

from __future__ import annotations

import errno
import hashlib
import os

import pytest

from lab import plain_file
from lab.errors import LabError, RequestError


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    return path


@pytest.mark.parametrize(
    ("offset", "most_bytes", "content"),
    [
        (0, -1, b"0123456789"),
        (3, -1, b"3456789"),
        (3, 2, b"34"),
        (-3, -1, b"789"),
        (-3, 2, b"78"),
        (-10, 1, b"0"),
        (-11, -1, b"0123456789"),  # before the beginning there is nothing
        (10, -1, b""),
        (11, -1, b""),
        (0, 0, b""),
    ],
)
def test_a_part_of_a_file_is_read(path, offset, most_bytes, content):
    assert plain_file.read(path, offset, most_bytes) == content


def test_lines_begin_at_an_offset_and_the_last_may_lack_its_newline(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"ab\n\ncdefg")
    assert list(plain_file.lines(path)) == [b"ab\n", b"\n", b"cdefg"]
    assert list(plain_file.lines(path, 3)) == [b"\n", b"cdefg"]
    monkeypatch.setattr(plain_file, "LONGEST_LINE", 3)
    assert list(plain_file.lines(path)) == [b"ab\n", b"\n", b"cde", b"fg"]


@pytest.mark.parametrize("read", [plain_file.read, plain_file.digest])
def test_a_link_is_followed_only_if_that_is_wanted(path, tmp_path, read):
    link = tmp_path / "link"
    link.symlink_to(path)
    with pytest.raises(OSError, match=os.strerror(errno.ELOOP)):
        read(link)
    assert read(link, follow=True) == read(path)
    assert plain_file.digest(path) == hashlib.sha256(b"0123456789").hexdigest()


@pytest.mark.parametrize("follow", [False, True])
def test_a_folder_a_pipe_and_a_device_are_no_files(tmp_path, follow):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "folder", tmp_path / "pipe", "/dev/null"):
        with pytest.raises(OSError, match=r"not a plain file|Is a directory"):
            plain_file.read(path, follow=follow)


@pytest.mark.parametrize("old", ["nothing", "a file", "a link", "a folder"])
def test_a_new_file_takes_the_place_of_what_was_there(path, tmp_path, old):
    new = tmp_path / "new"
    if old == "a file":
        new.write_text("a longer text")
    elif old == "a link":
        new.symlink_to(path)
    elif old == "a folder":
        (new / "below").mkdir(parents=True)
    with plain_file.create(new, 0o600) as file:
        file.write("\ud800é")
    assert new.read_bytes() == "?é".encode()
    assert new.lstat().st_mode & 0o7777 == 0o600
    assert not new.is_symlink()
    assert path.read_bytes() == b"0123456789"


def test_what_a_link_points_to_is_not_removed(path, tmp_path):
    (tmp_path / "folder").mkdir()
    for target in (path, tmp_path / "folder"):
        (tmp_path / "link").symlink_to(target)
        plain_file.remove(tmp_path / "link")
        assert target.exists()
    plain_file.remove(tmp_path / "folder")
    plain_file.remove(tmp_path / "none")
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.EMFILE, LabError),
        (errno.ENFILE, LabError),
        (errno.ENOMEM, LabError),
        (errno.EACCES, RequestError),
        (errno.ENOENT, RequestError),
    ],
)
def test_a_shortage_of_the_machine_says_nothing_about_the_file(path, number, kind):
    made = plain_file.failure(path, OSError(number, os.strerror(number)))
    assert type(made) is kind
    assert str(made) == f"read {path}: {os.strerror(number)}"
    assert str(plain_file.failure(path, OSError("no number"))) == f"read {path}: no number"
