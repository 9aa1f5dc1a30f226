"""Traffic programs are started and get commands. All hosts are this machine."""

import os
import select
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lab.engines.mininet.machine import shell
from lab.engines.mininet.machine.ledger import Ledger
from lab.engines.mininet.traffic import processes as module
from lab.engines.mininet.traffic.processes import TrafficProcesses
from lab.errors import LabError

PROGRAM = """
import json, os, sys
from lab.engines.mininet.programs import traffic, traffic_forks
import socket
def main():
    {body}
traffic.main = main
traffic_forks.serve(socket.socket(fileno=int(sys.argv[1])))
"""
ECHO = (
    "[print(json.dumps(json.loads(line) | {'by': os.getpid()}), flush=True) for line in sys.stdin]"
)
SILENT = "sys.stdin.read()"


class Network:
    """Every host is in the namespace of the test."""

    def pid(self, host):
        return 0


@pytest.fixture
def make(tmp_path, monkeypatch):
    made, spawn = [], shell.spawn

    def start(body=""):
        def in_place(argv, doing, **options):
            program = PROGRAM.format(body=body)
            return spawn([argv[0], "-c", program, argv[-1]], doing, **options)

        if body:
            monkeypatch.setattr(shell, "spawn", in_place)
        made.append(TrafficProcesses(Network(), Ledger(tmp_path / "ledger"), ("a", "b")))
        return made[-1]

    yield start
    for each in made:
        each.stop()


def test_each_host_answers_its_own_command(make):
    programs = make(ECHO)
    first = programs.send("a", do="x", n=1)
    assert (first["do"], first["n"]) == ("x", 1)
    answers = programs.send_all({"a": {"do": "x"}, "b": {"do": "y"}})
    assert [each["do"] for each in answers.values()] == ["x", "y"]
    assert answers["a"]["by"] == first["by"] != answers["b"]["by"]


def test_every_process_is_in_the_ledger(make, tmp_path):
    programs = make(ECHO)
    pids = [programs._starter.pid, *(programs.send(host, do="x")["by"] for host in ("a", "b"))]
    assert [each["pid"] for each in Ledger(tmp_path / "ledger").entries()] == pids


def test_the_traffic_program_answers_and_its_errors_are_raised(make):
    programs = make()
    assert programs.send("a", do="status") == {"flows": {}}
    with pytest.raises(LabError, match="ask a to go: KeyError: 'none'"):
        programs.send("a", do="go", id="none")


def test_a_missing_answer_is_an_error(make, monkeypatch):
    programs = make(SILENT)
    programs._wait_started()
    monkeypatch.setattr(module, "ANSWER_TIMEOUT_S", 0.1)
    with pytest.raises(LabError, match=r"ask b to status: no answer in 0.1 s"):
        programs.send("b", do="status")


def test_a_program_that_has_ended_is_an_error(make):
    programs = make("pass")
    programs._wait_started()
    gone = Path(f"/proc/{programs._programs['a'].pid}")
    deadline = time.monotonic() + 5
    while gone.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    with pytest.raises(LabError, match="ask a to status: its traffic program has ended"):
        programs.send("a", do="status")


def test_programs_end_with_the_runner(make):
    programs = make(ECHO)
    pid = programs.send("a", do="x")["by"]
    programs.stop()
    deadline = time.monotonic() + 5
    while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{pid}").exists()
    assert programs._starter.poll() == 0


def test_a_run_that_fails_before_the_answers_are_read_ends_the_process_quietly(tmp_path):
    control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(body=SILENT), str(theirs.fileno())],
        pass_fds=[theirs.fileno()],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    theirs.close()
    with open(os.devnull) as nothing:
        for _ in range(2):
            socket.send_fds(control, [b"0"], [nothing.fileno(), nothing.fileno()])
    select.select([control], [], [])  # wait until an answer is there
    control.close()
    assert process.communicate(timeout=60) == (None, b"")
    assert process.returncode == 0
