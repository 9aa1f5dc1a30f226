"""The program that the lab starts as `python -m vm`: it reads a request, and writes the answer.

lab/engines/mininet/in_vm.py defines requests and answers, and when this program ends.
"""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from lab.engines.mininet.in_vm import INTERRUPTS, Answer, GuestCommand, Request
from lab.engines.mininet.machine import vm_kernel
from lab.errors import LabError
from vm import accelerator, install_kernel, launch, snapshot

INTERRUPTED = 130


def main() -> int:
    """Answer the request on standard input, and return an exit status.

    There is no answer if an interrupt comes before the VM runs.
    """
    with socket.socket(fileno=0) as caller:
        with caller.makefile("r", encoding="utf-8") as lines:
            request = Request(**json.loads(lines.readline()))
        if os.getppid() != request.caller:  # it has been killed meanwhile
            return INTERRUPTED
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, INTERRUPTS)
            answer = TASKS[request.task](request)
        except KeyboardInterrupt:
            return INTERRUPTED
        except LabError as problem:
            answer = Answer(problem.exit_code, error=str(problem))
        caller.sendall(json.dumps(asdict(answer)).encode() + b"\n")
    return 0


def run(request: Request) -> Answer:
    files = tuple((Path(place), Path(copy)) for place, copy in request.files)
    command = GuestCommand(list(request.argv), Path(request.shared), request.show, files)
    return Answer(launch.run_in_vm(command, wait=request.wait))


def show(request: Request) -> Answer:
    return Answer(launch.show(list(request.argv)))


def install(_request: Request) -> Answer:
    return Answer(text=install_kernel.install())


def try_kvm(_request: Request) -> Answer:
    if accelerator.kvm_works(vm_kernel.require()):
        return Answer(text="works: the VM runs at full speed")
    return Answer(text="does not work here: the VM runs in software, which is slower")


def make_snapshot(_request: Request) -> Answer:
    """Make the snapshot from which VMs are restored, and restore one VM from it as a test.

    A restored VM has already booted and imported the Python modules of the lab.
    """
    vm_kernel.require()
    if not snapshot.wanted():
        return Answer(text=f"not made: {snapshot.START}={snapshot.BOOT} is set, so VMs boot")
    made = launch.make_snapshot()
    return Answer(text="made, and a VM was restored from it" if made else "already there")


TASKS: dict[str, Callable[[Request], Answer]] = {
    "run": run,
    "show": show,
    "install kernel": install,
    "try KVM": try_kvm,
    "make snapshot": make_snapshot,
}
