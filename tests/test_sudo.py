"""Under sudo, root uses the cache folder of the user, and leaves no file of root in it."""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from types import SimpleNamespace

import pytest

from lab import sudo
from lab.cli.commands import cli

ADA = (1234, 99)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Home of the user ada, who called sudo; HOME is root's, as sudo sets it."""
    for name in ("MULTIPATH_LAB_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/root")
    monkeypatch.setenv("SUDO_UID", str(ADA[0]))
    monkeypatch.setenv("SUDO_GID", str(ADA[1]))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    people = {ADA[0]: SimpleNamespace(pw_dir=str(tmp_path))}
    monkeypatch.setattr(pwd, "getpwuid", people.__getitem__)
    return tmp_path


@pytest.fixture
def given(monkeypatch):
    """Replace `os.chown`; new owners by file."""
    changed: dict[Path, tuple[int, int]] = {}

    def chown(path, uid, gid, **_):
        changed[Path(path)] = (uid, gid)

    monkeypatch.setattr(os, "chown", chown)
    return changed


def test_the_cache_is_that_of_the_user_who_called_sudo(home, monkeypatch):
    assert sudo.user_cache() == home / ".cache" / "multipath-lab"
    monkeypatch.setenv("MULTIPATH_LAB_CACHE", "/usb/lab")
    assert sudo.user_cache() == Path("/usb/lab")


def test_a_caller_without_an_entry_in_the_list_of_users_has_the_cache_of_root(home, monkeypatch):
    monkeypatch.setenv("SUDO_UID", "4321")
    assert sudo.user_cache() == Path("/root/.cache/multipath-lab")


@pytest.mark.parametrize(("name", "value"), [("SUDO_UID", ""), ("SUDO_GID", "no number")])
def test_without_sudo_there_is_no_caller(home, monkeypatch, name, value):
    assert sudo.caller() == ADA
    monkeypatch.setenv(name, value)
    assert sudo.caller() is None
    assert sudo.user_cache() == Path("/root/.cache/multipath-lab")


def test_a_user_who_sets_sudo_variables_is_not_root(home, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1234)
    assert sudo.caller() is None


def of_root(path: Path, monkeypatch) -> None:
    real = Path.lstat

    def lstat(self):
        return SimpleNamespace(st_uid=0 if self == path else ADA[0], st_mode=real(self).st_mode)

    monkeypatch.setattr(Path, "lstat", lstat)


def test_each_command_gives_the_files_of_root_in_the_cache_to_the_caller(
    home, given, monkeypatch, run_command
):
    theirs, ours = home / ".cache/multipath-lab/bpf/a.o", home / ".cache/multipath-lab/bpf/b.o"
    theirs.parent.mkdir(parents=True)
    theirs.touch()
    ours.touch()
    of_root(theirs, monkeypatch)
    assert run_command("list", "strategies").exit_code == 0
    assert given == {theirs: ADA}
    given.clear()
    assert run_command("check", "no-such-scenario").exit_code == 2
    assert given == {theirs: ADA}


def test_a_cache_outside_the_home_keeps_its_owner(home, given, tmp_path_factory, monkeypatch):
    shared = tmp_path_factory.mktemp("shared")
    (shared / "bpf").mkdir()
    monkeypatch.setenv("MULTIPATH_LAB_CACHE", str(shared))
    of_root(shared / "bpf", monkeypatch)
    sudo.give_cache_away()
    assert given == {}


@pytest.fixture
def run_command():
    from click.testing import CliRunner

    return lambda *argv: CliRunner().invoke(cli, argv)
