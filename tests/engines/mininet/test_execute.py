"""`exec`: requests and their output in the run folder."""

import json
import subprocess
import threading
import time

import pytest
from runner_manifest import write_manifest

from lab.engines.mininet.commands import exec_caller, execute
from lab.engines.mininet.machine.processes import start_time
from lab.errors import LabError, RequestError


@pytest.fixture
def started():
    return []


@pytest.fixture
def folder(tmp_path, monkeypatch, started):
    """A run folder; commands for its hosts run on this machine."""
    monkeypatch.setattr(execute, "SERVE_S", 0.02)
    monkeypatch.setattr(exec_caller, "POLL_S", 0.02)
    run = tmp_path / "runs" / "r1"
    (run / "pox").mkdir(parents=True)
    (run / "pox" / "topology.json").write_text(json.dumps({"hosts": {"ue1": []}}))
    write_manifest(run)

    def inside(host, argv):
        if host == "ue1" and argv[0] == "lost":
            raise LabError("enter ue1: it is gone")
        return argv

    executor = execute.Executor(run, inside, started.append, print)
    yield run
    executor.close()


def test_output_errors_and_status_are_returned(folder, capfdbinary):
    assert (
        exec_caller.main("r1", "ue1", ["sh", "-c", "echo out; echo err >&2; exit 7"], folder.parent)
        == 7
    )
    assert capfdbinary.readouterr() == (b"out\n", b"err\n")


def test_a_run_may_be_named_by_its_folder(folder, capfdbinary):
    assert exec_caller.main(str(folder), "machine", ["echo", "here"], folder / "nowhere") == 0
    assert capfdbinary.readouterr().out == b"here\n"


def test_an_unknown_host_lists_the_known_ones(folder):
    with pytest.raises(RequestError, match="host 'ue9' is unknown: choose from ue1, machine"):
        exec_caller.main("r1", "ue9", ["true"], folder.parent)


def test_a_run_that_has_ended_is_refused(tmp_path):
    with pytest.raises(RequestError, match="no emulation serves this run"):
        exec_caller.main("r0", "ue1", ["true"], tmp_path)


def test_a_command_ends_when_its_run_is_lost(folder, monkeypatch):
    monkeypatch.setattr(exec_caller, "ALIVE_S", 0.05)
    runner = subprocess.Popen(["sleep", "60"])
    write_manifest(folder, runner.pid)
    threading.Timer(0.3, runner.kill).start()
    with pytest.raises(LabError, match="was lost, because its process or its VM ended"):
        exec_caller.main("r1", "ue1", ["sleep", "60"], folder.parent)
    runner.wait()


def test_a_command_that_cannot_start_returns_the_reason(folder, capfdbinary):
    assert exec_caller.main("r1", "ue1", ["lost"], folder.parent) == 127
    assert b"enter ue1: it is gone" in capfdbinary.readouterr().err
    assert exec_caller.main("r1", "ue1", ["no-such-program"], folder.parent) == 127


def test_a_run_that_does_not_answer_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(exec_caller, "START_TIMEOUT_S", 0.2)
    (tmp_path / "r" / "exec").mkdir(parents=True)
    (tmp_path / "r" / "pox").mkdir()
    (tmp_path / "r" / "pox" / "topology.json").write_text('{"hosts": {"ue1": []}}')
    write_manifest(tmp_path / "r")
    with pytest.raises(LabError, match="the run did not start the command"):
        exec_caller.main("r", "ue1", ["true"], tmp_path)
    assert not list((tmp_path / "r" / "exec").iterdir())


def test_commands_are_recorded_and_end_with_the_run_children_too(folder, started, tmp_path):
    executor = execute.Executor(tmp_path, lambda _host, argv: argv, started.append, print)
    (tmp_path / "exec" / "1.json").write_text(
        json.dumps({"host": "ue1", "argv": ["sh", "-c", "sleep 60 & echo $!; wait"]})
    )
    out = tmp_path / "exec" / "1.out"
    deadline = time.monotonic() + 5
    while not (out.exists() and out.read_text()) and time.monotonic() < deadline:
        time.sleep(0.02)
    child = int(out.read_text())
    assert start_time(child)
    executor.close()
    assert start_time(started[-1]) is None
    deadline = time.monotonic() + 2
    while start_time(child) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert start_time(child) is None


def test_output_comes_while_the_command_runs(folder, capfdbinary):
    caller = threading.Thread(
        target=exec_caller.main,
        args=("r1", "ue1", ["sh", "-c", "echo first; sleep 1"], folder.parent),
    )
    caller.start()
    deadline, output = time.monotonic() + 0.9, b""
    while b"first" not in output and time.monotonic() < deadline:
        time.sleep(0.05)
        output += capfdbinary.readouterr().out
    assert caller.is_alive()
    assert output == b"first\n"
    caller.join()
