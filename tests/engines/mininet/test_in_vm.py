"""The program that runs the VM, replaced by small ones: requests, answers, errors and signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lab.engines.mininet import in_vm
from lab.errors import LabError, MachineLacks, RequestError
from lab.isolation import ROOT

START = """
import json, os, signal, socket, sys, time
from pathlib import Path
caller = socket.socket(fileno=0)
request = json.loads(caller.makefile().readline())
def answer(**fields):
    caller.sendall(json.dumps(fields).encode() + b"\\n")
"""


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Return a function that replaces the program by the text of another one."""

    def replaced(text: str) -> None:
        (tmp_path / "vm").mkdir()
        (tmp_path / "vm" / "__main__.py").write_text(START + text)
        monkeypatch.setattr(in_vm, "ROOT", str(tmp_path))
        monkeypatch.setattr(in_vm, "require", lambda: None)

    return replaced


def run(*argv: str, **options) -> int:
    return in_vm.run_in_vm(in_vm.GuestCommand(list(argv), Path("shared"), **options))


def test_the_program_gets_the_command_and_its_status_is_returned(program, tmp_path, capfd):
    program("print(json.dumps(request), 'PYTHONPATH' in os.environ); answer(status=7)")
    assert run("echo", "a b", files=((Path("/tmp/law.c"), Path("/tmp/copy")),), show=True) == 7
    request, _, path = capfd.readouterr().out.strip().rpartition(" ")
    assert json.loads(request) == {
        "task": "run",
        "caller": os.getpid(),
        "argv": ["echo", "a b"],
        "shared": str(Path("shared").absolute()),
        "show": True,
        "files": [["/tmp/law.c", "/tmp/copy"]],
        "wait": False,
    }
    assert path == "True"


def test_the_caller_is_called_while_the_command_runs(program):
    program("time.sleep(0.5); answer(text='done')")
    called = []
    command = in_vm.GuestCommand(["true"], Path("shared"))
    assert in_vm.run_in_vm(command, lambda: called.append(1)) == 0
    assert len(called) >= 2


@pytest.mark.parametrize("kind", [LabError, RequestError, MachineLacks])
def test_an_error_of_the_program_is_raised_here(program, kind):
    program(f"answer(status={kind.exit_code}, error='start the VM: it broke')")
    with pytest.raises(LabError, match=r"^start the VM: it broke$") as raised:
        in_vm.prepare("make snapshot")
    assert type(raised.value) is kind


def test_a_program_that_ends_without_an_answer_is_an_error(program):
    program("sys.exit(5)")
    with pytest.raises(LabError, match="ended with status 5"):
        run("true")


def test_without_the_folder_nothing_starts(tmp_path, monkeypatch):
    monkeypatch.setattr(in_vm, "ROOT", str(tmp_path))
    with pytest.raises(MachineLacks, match="vm is missing"):
        in_vm.prepare("try KVM")


COUNTING = """
received = []
signal.signal(signal.SIGINT, lambda *_: received.append("INT"))
signal.signal(signal.SIGTERM, lambda *_: received.append("TERM"))
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT, signal.SIGTERM])
while len(received) < 3:
    time.sleep(0.01)
answer(status=130, text=" ".join(received))
"""


def test_every_interrupt_reaches_the_program(program):
    """Also those that come before the program is ready, and two at once."""
    program(COUNTING)
    sent = []

    def interrupt() -> None:
        if not sent:
            sent.append(1)
            for number in (signal.SIGINT, signal.SIGINT, signal.SIGTERM):
                os.kill(os.getpid(), number)

    command = in_vm.GuestCommand(["true"], Path("shared"))
    assert in_vm.run_in_vm(command, interrupt) == 130
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)  # the handlers are as before


def test_an_interrupt_before_there_is_a_vm_interrupts_the_caller(program):
    program(
        "signal.signal(signal.SIGINT, lambda *_: sys.exit(130))\n"
        "signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])\n"
        "time.sleep(60)"
    )
    command = in_vm.GuestCommand(["true"], Path("shared"))
    with pytest.raises(KeyboardInterrupt):
        in_vm.run_in_vm(command, lambda: os.kill(os.getpid(), signal.SIGINT))


def test_an_error_of_the_caller_ends_the_program(program, tmp_path):
    program(f"Path({str(tmp_path / 'pid')!r}).write_text(str(os.getpid())); time.sleep(60)")

    def fail() -> None:
        if (tmp_path / "pid").exists() and (tmp_path / "pid").read_text():
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        in_vm.run_in_vm(in_vm.GuestCommand(["true"], Path("shared")), fail)
    assert not Path("/proc", (tmp_path / "pid").read_text()).exists()


def test_the_program_ends_with_a_killed_caller(program, tmp_path):
    pid = tmp_path / "pid"
    program(f"Path({str(pid)!r}).write_text(str(os.getpid())); time.sleep(60)")
    code = (
        f"from lab.engines.mininet import in_vm; in_vm.ROOT = {str(tmp_path)!r}; "
        "in_vm.prepare('make snapshot')"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": ROOT}
    ) as caller:
        while not (pid.exists() and pid.read_text()):
            assert caller.poll() is None
            time.sleep(0.02)
        caller.kill()
    deadline = time.monotonic() + 5
    while Path("/proc", pid.read_text()).exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not Path("/proc", pid.read_text()).exists()


def test_the_real_program_says_what_the_machine_lacks(tmp_path, monkeypatch):
    monkeypatch.setenv("MULTIPATH_LAB_CACHE", str(tmp_path))
    with pytest.raises(MachineLacks, match=r"no kernel in .*Try: \./run_lab\.sh setup-emulation"):
        in_vm.prepare("make snapshot")
