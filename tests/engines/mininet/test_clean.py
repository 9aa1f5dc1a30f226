"""The command `clean`: after a kill, while a run is running, and inside the VM."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lab.engines.mininet.machine import clean as cleaning
from lab.engines.mininet.machine import ledger as module
from lab.engines.mininet.machine import lock
from lab.engines.mininet.machine.ledger import Ledger
from lab.engines.mininet.machine.processes import start_time


def test_inside_the_vm_the_ledger_of_the_outer_machine_is_left_alone(
    ledger, tmp_path, monkeypatch, capsys
):
    as_root(monkeypatch)
    monkeypatch.setenv("MULTIPATH_LAB_VM", "1")
    (tmp_path / "shared").mkdir()
    Ledger(module.user_ledger()).record("folder", path=str(tmp_path / "shared"))
    assert cleaning.main() == 0
    assert (tmp_path / "shared").is_dir()
    monkeypatch.delenv("MULTIPATH_LAB_VM")
    assert cleaning.main() == 0
    assert not (tmp_path / "shared").exists()


RUN = """
import subprocess, sys, time
from pathlib import Path
from lab.engines.mininet.machine import ledger, lock
with lock.hold("run a", path=Path(sys.argv[1])):
    mine = ledger.Ledger(Path(sys.argv[2]))
    child = subprocess.Popen(["sleep", "60"])
    mine.record("process", pid=child.pid)
    print(child.pid, flush=True)
    time.sleep(60)
"""


@pytest.fixture
def run(ledger):
    with subprocess.Popen(
        [sys.executable, "-c", RUN, str(lock.LOCK), str(ledger.path)],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        process.child = int(process.stdout.readline())
        yield process
        process.kill()


def as_root(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)


def test_clean_after_kill_9(run, monkeypatch, capsys):
    as_root(monkeypatch)
    run.kill()
    run.wait()
    assert start_time(run.child)
    assert cleaning.main(force=False) == 0
    assert capsys.readouterr().out == f"removed process {run.child}\n"
    assert start_time(run.child) is None
    assert cleaning.main(force=False) == 0
    assert capsys.readouterr().out == "nothing to clean\n"


def test_clean_refuses_while_a_run_is_running(run, capsys):
    assert cleaning.main(force=False) == 3
    assert f"run a (process {run.pid}" in capsys.readouterr().err
    assert run.poll() is None
    assert start_time(run.child)


def test_forced_clean_ends_the_run_first(run, monkeypatch):
    as_root(monkeypatch)
    assert cleaning.main(force=True) == 0
    assert run.wait(1) == -signal.SIGTERM
    assert start_time(run.child) is None


def test_what_root_made_needs_root(ledger, monkeypatch, capsys):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    ledger.record("file", path="/nowhere")
    assert cleaning.main() == 3
    assert "Try: sudo ./run_lab.sh clean" in capsys.readouterr().err
    assert Path(ledger.path).exists()
