"""Run commands in the virtual machine (VM).

The separate program in the folder `vm` makes and restores the VM. It prints to the standard output
and standard error of this process. Its standard input is a socket. The program reads a `Request`
from the socket, as one line of JSON, and writes an `Answer` to the socket.

The program has its own session, so Ctrl-C on the terminal reaches only this process. This process
sends the signal on to the program. When this process ends, for whatever reason, the kernel kills
the program and then QEMU.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from subprocess import Popen
from typing import Any

from lab.engines.mininet import ebpf
from lab.engines.mininet.ebpf import build
from lab.engines.mininet.kernel import congestion_modules
from lab.engines.mininet.machine import shell, vm_kernel
from lab.errors import LabError, MachineLacks, RequestError
from lab.isolation import ROOT, python
from lab.vm_environment import COMMIT, DILATION

INTERRUPTS = (signal.SIGINT, signal.SIGTERM)
POLL_S = 0.2


@dataclass(frozen=True)
class GuestCommand:
    """A command to run in the VM, in the project's folder.

    Only the files that the command writes into the folder `shared` are kept. `files` are pairs of
    paths. In the VM, the file at the first path has the content of the file at the second path on
    this machine. With `show`, the command's output is printed here while the command runs. The
    clocks of the VM run slower by the factor `dilation`; None: as the environment says.
    """

    argv: list[str]
    shared: Path
    show: bool = False
    files: tuple[tuple[Path, Path], ...] = ()
    dilation: float | None = None


@dataclass(frozen=True)
class Request:
    """A request to the program in the folder `vm`.

    `task` is one of `vm.program.TASKS`. `caller` is the process ID of the caller. `argv`, `shared`,
    `show` and `files` are those of a `GuestCommand`. With `wait`, the program first waits for the
    end of any other emulation on this machine.
    """

    task: str
    caller: int
    argv: tuple[str, ...] = ()
    shared: str = ""
    show: bool = False
    files: tuple[tuple[str, str], ...] = ()
    wait: bool = False


@dataclass(frozen=True)
class Answer:
    """The answer of the program in the folder `vm`.

    If the task was to run a command, `status` is the exit status of the command. For a task of the
    set-up, `text` says what was done. If the task failed, `error` is the message of a `LabError`,
    and `status` is the exit code of this error.
    """

    status: int = 0
    text: str = ""
    error: str = ""


def require(congestion_controls: Iterable[str] = (), by_window: bool = False) -> None:
    """Check that a VM can start, and compile the eBPF congestion controls for a run in the VM.

    The VM cannot write into the cache folder, so this function compiles on the host. It compiles
    `congestion_controls`, and also every congestion control that the user has written, because a
    change during the run may select one. `by_window` is True if subflows are limited by their
    congestion windows instead of pacing rates. In this case, the built-in congestion controls are
    compiled too, even reno and cubic. Raises `MachineLacks` if the kernel of the VM or the compiler
    is missing or the kernel lacks a congestion control, and `RequestError` if a user's C file does
    not compile.
    """
    image = vm_kernel.require()
    congestion_controls = list(congestion_controls)
    lacked = congestion_modules.lacking_in(vm_kernel.modules(image), congestion_controls)
    congestion_modules.check(lacked, "the kernel of the VM")
    selectable = (*ebpf.LAWS, *ebpf.IN_KERNEL) if by_window else ()
    wanted = [*congestion_controls, *ebpf.registered(), *selectable]
    build.require(wanted, vm_kernel.types(image), by_window)


def run_in_vm(
    command: GuestCommand, on_poll: Callable[[], None] = lambda: None, *, wait: bool = False
) -> int:
    """Start a VM, run a command in the VM, and return the exit status of the command.

    `on_poll` is called about five times a second. The first Ctrl-C or SIGTERM sends SIGINT to the
    command. The VM is switched off at the second Ctrl-C, or if the command still runs half a minute
    after the first. The status is then 130.

    Only one emulation can run on a machine at a time. With `wait`, this function waits for the end
    of another emulation. Without `wait`, it raises `MachineLacks` if there is another emulation. It
    also raises `MachineLacks` if the VM's kernel is missing, and `LabError` if the VM does not
    start.
    """
    require()
    shared = str(command.shared.absolute())
    files = tuple((str(place), str(copy)) for place, copy in command.files)
    argv = tuple(command.argv)
    request = Request("run", os.getpid(), argv, shared, command.show, files, wait)
    return _ask(request, on_poll, command.dilation).status


def main(cmd: list[str]) -> int:
    """Run the command `cmd` in a VM, print its output, and return its exit status.

    This is what `./run_lab.sh vm -- CMD` does.
    """
    if not cmd:
        raise RequestError("vm: no command given. Try: ./run_lab.sh vm -- uname -r")
    require()
    return _ask(Request("show", os.getpid(), tuple(cmd))).status


def prepare(task: str) -> str:
    """Do one task of the set-up, such as "make snapshot"; return what was done, as text."""
    return _ask(Request(task, os.getpid())).text


def _ask(
    request: Request, on_poll: Callable[[], None] = lambda: None, dilation: float | None = None
) -> Answer:
    """Start the program in the folder `vm`, send it `request`, and return its answer.

    Raises the `LabError` that the program reports.
    """
    own, other = socket.socketpair()
    with own, interrupts() as received:
        with other:
            process = _start(other, dilation)
        try:
            with contextlib.suppress(OSError):  # it has ended, see below
                own.sendall(json.dumps(asdict(request)).encode() + b"\n")
            text = _receive(own, process, received, on_poll)
        except BaseException:
            process.kill()
            raise
        finally:
            process.wait()
    if text:
        return _checked(Answer(**json.loads(text)))
    if received:  # before there was a VM, an interrupt ends the program, as it ends this process
        signal.raise_signal(received[0])
    raise LabError(f"start the VM: its program ended with status {process.returncode}")


def _start(connection: socket.socket, dilation: float | None) -> Popen[Any]:
    if not Path(ROOT, "vm", "__main__.py").exists():
        raise MachineLacks(f"start the VM: the folder {ROOT}/vm is missing. Copy it from the lab")
    from lab.run import manifest  # the program imports this file, and this import takes 0.1 s

    sys.stdout.flush()
    environment = {"PYTHONPATH": ROOT, COMMIT: manifest.commit() or ""}
    if dilation is not None:
        environment[DILATION] = f"{dilation:g}"
    before = signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTS)  # until the program is ready
    try:
        argv = ["setpriv", "--pdeathsig", "KILL", *python("-m", "vm")]
        options = {"env": os.environ | environment, "stdin": connection, "start_new_session": True}
        return shell.spawn(argv, "start the VM", **options)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _receive(
    connection: socket.socket, process: Popen[Any], received: list[int], on_poll: Callable[[], None]
) -> bytes:
    """Return what the program in `process` writes, up to a newline.

    The result is b"" if the program ends before the newline. Meanwhile, the signals in `received`
    are sent to the program, and `on_poll` is called.
    """
    text, passed = b"", 0
    while not text.endswith(b"\n"):
        if passed < len(received):  # one at a time: the kernel merges signals that come together
            process.send_signal(received[passed])
            passed += 1
        if select.select([connection], [], [], POLL_S)[0]:
            new = _read(connection)
            if not new:
                return b""
            text += new
        on_poll()
    return text


def _read(connection: socket.socket) -> bytes:
    try:
        return connection.recv(65536)
    except ConnectionResetError:  # the program has ended before it read the request
        return b""


def _checked(answer: Answer) -> Answer:
    if answer.error:
        kinds = {kind.exit_code: kind for kind in (RequestError, MachineLacks)}
        raise kinds.get(answer.status, LabError)(answer.error)
    return answer


@contextlib.contextmanager
def interrupts() -> Iterator[list[int]]:
    """Collect Ctrl-C and SIGTERM during a `with` block; they do not end this process.

    Yields a list to which the number of each signal is appended. Outside of the main thread the
    list stays empty, because Python handles signals only in the main thread.
    """
    received: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield received
        return
    before = {
        number: signal.signal(number, lambda number, _frame: received.append(number))
        for number in INTERRUPTS
    }
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
