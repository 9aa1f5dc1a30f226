"""What other programs use too is removed with care; and Open vSwitch may end at any time."""

import os
import time

import pytest

from lab.engines.mininet.machine import ledger as module
from lab.engines.mininet.machine import open_vswitch, shell
from lab.engines.mininet.machine.ledger import Ledger
from lab.errors import CommandFailed, LabError


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "ledger")


def test_a_folder_of_others_is_removed_only_if_it_is_empty(ledger, tmp_path):
    sockets = tmp_path / "hostapd"
    sockets.mkdir()
    (sockets / "of-another").touch()
    ledger.record("folder", path=str(sockets), only_if_empty=True)
    assert ledger.undo_all() == []
    assert (sockets / "of-another").exists()
    (sockets / "of-another").unlink()
    ledger.record("folder", path=str(sockets), only_if_empty=True)
    assert ledger.undo_all() == []
    assert not sockets.exists()


def test_bridges_stay_listed_while_the_daemon_of_the_switches_has_ended(
    ledger, monkeypatch, tmp_path
):
    """Only the daemon can remove the switches from the kernel."""
    monkeypatch.setattr(open_vswitch, "PID_FILE", tmp_path / "ovs-vswitchd.pid")
    monkeypatch.setattr(open_vswitch, "database_runs", lambda: True)
    monkeypatch.setattr(module, "PAUSE_S", 0)
    changes = []
    monkeypatch.setattr(shell, "run", lambda argv, doing: "s1\ns2\n")
    monkeypatch.setattr(open_vswitch, "change", lambda words, doing: changes.append(words))
    ledger.record("bridges", names=["s1", "s3"])
    for pid in ("", "4000000"):
        open_vswitch.PID_FILE.write_text(pid)
        (problem,) = ledger.undo_all()
        assert "Open vSwitch has ended" in problem
        assert "clean" in problem
    assert not changes
    assert ledger.entries()
    open_vswitch.PID_FILE.write_text(f"{os.getpid()}\n")
    assert ledger.undo_all() == []
    assert changes == [["--", "--if-exists", "del-br", "s1"]]
    assert not ledger.entries()


def test_bridges_that_are_gone_need_no_daemon(ledger, monkeypatch, tmp_path):
    monkeypatch.setattr(open_vswitch, "PID_FILE", tmp_path / "missing")
    monkeypatch.setattr(open_vswitch, "database_runs", lambda: True)
    monkeypatch.setattr(shell, "run", lambda argv, doing: "s2\n")
    ledger.record("bridges", names=["s1"])
    assert ledger.undo_all() == []


@pytest.fixture
def vsctl(tmp_path, monkeypatch):
    """Replace ovs-vsctl by a shell script."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(open_vswitch, "PID_FILE", tmp_path / "ovs-vswitchd.pid")
    monkeypatch.setattr(open_vswitch, "POLL_S", 0.05)

    def write(text):
        (tmp_path / "ovs-vsctl").write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / "ovs-vsctl").chmod(0o755)

    return write


def test_a_change_does_not_wait_for_a_daemon_that_has_ended(vsctl):
    vsctl("exec sleep 600")
    open_vswitch.PID_FILE.write_text("4000000")
    began = time.monotonic()
    with pytest.raises(LabError, match=r"make the bridges: Open vSwitch has ended"):
        open_vswitch.change(["add-br", "s1"], "make the bridges")
    assert time.monotonic() - began < 60


@pytest.mark.parametrize("runs", [True, False])
def test_a_change_waits_for_a_daemon_that_runs_or_has_not_started_yet(vsctl, runs):
    vsctl("sleep 0.3; echo $1 $2")
    if runs:
        open_vswitch.PID_FILE.write_text(f"{os.getpid()}\n")
    assert open_vswitch.change(["add-br"], "make the bridges") == "--timeout=120 add-br\n"


def test_a_change_that_fails_is_an_error_with_its_message(vsctl):
    vsctl("echo no row >&2; exit 1")
    with pytest.raises(CommandFailed, match=r"status 1: no row"):
        open_vswitch.change(["add-br"], "make the bridges")
