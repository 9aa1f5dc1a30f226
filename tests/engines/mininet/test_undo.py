"""What belongs to other programs too is removed with care."""

import os

import pytest

from lab.engines.mininet.machine import ledger as module
from lab.engines.mininet.machine import open_vswitch, shell
from lab.engines.mininet.machine.ledger import Ledger


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
    """Only the daemon removes the switches from the kernel."""
    monkeypatch.setattr(open_vswitch, "PID_FILE", tmp_path / "ovs-vswitchd.pid")
    monkeypatch.setattr(open_vswitch, "database_runs", lambda: True)
    monkeypatch.setattr(module, "PAUSE_S", 0)
    commands = []
    monkeypatch.setattr(shell, "run", lambda argv, doing: commands.append(argv) or "s1\ns2\n")
    ledger.record("bridges", names=["s1", "s3"])
    for pid in ("", "4000000"):
        open_vswitch.PID_FILE.write_text(pid)
        (problem,) = ledger.undo_all()
        assert "Open vSwitch has ended" in problem
        assert "clean" in problem
    assert {each[-1] for each in commands} == {"list-br"}
    assert ledger.entries()
    open_vswitch.PID_FILE.write_text(f"{os.getpid()}\n")
    assert ledger.undo_all() == []
    assert commands[-1][-2:] == ["del-br", "s1"]
    assert not ledger.entries()


def test_bridges_that_are_gone_need_no_daemon(ledger, monkeypatch, tmp_path):
    monkeypatch.setattr(open_vswitch, "PID_FILE", tmp_path / "missing")
    monkeypatch.setattr(open_vswitch, "database_runs", lambda: True)
    monkeypatch.setattr(shell, "run", lambda argv, doing: "s2\n")
    ledger.record("bridges", names=["s1"])
    assert ledger.undo_all() == []
