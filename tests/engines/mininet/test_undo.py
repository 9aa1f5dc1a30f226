"""What belongs to other programs too is removed with care."""

import os

import pytest

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


@pytest.mark.parametrize("daemon_runs", [True, False])
def test_bridges_are_removed_without_waiting_for_a_daemon_that_has_ended(
    ledger, monkeypatch, tmp_path, daemon_runs
):
    monkeypatch.setattr(open_vswitch, "PID_FILE", tmp_path / "ovs-vswitchd.pid")
    monkeypatch.setattr(open_vswitch, "database_runs", lambda: True)
    pid = os.getpid() if daemon_runs else 4_000_000
    open_vswitch.PID_FILE.write_text(f"{pid}\n")
    commands = []
    monkeypatch.setattr(shell, "run", lambda argv, doing: commands.append(argv) or "s1\ns2\n")
    ledger.record("bridges", names=["s1", "s3"])
    assert ledger.undo_all() == []
    assert [each[-1] for each in commands] == ["list-br", "s1"]
    assert all(("--no-wait" in each) != daemon_runs for each in commands)
