"""Start external commands. Every module of the emulation starts its processes here.

`run` waits for a command and checks its exit status; `spawn` starts a command and returns. Both
report the command to the journals. A journal is a function that another module has added. A run
adds one that writes all commands of the run into a shell script.
"""

from __future__ import annotations

import shlex
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from lab.engines.mininet.machine.packages import install_command
from lab.errors import CommandFailed, MachineLacks

Journal = Callable[[float, Sequence[str], str | None], None]
"""A function that receives each command: time [s since 1970], arguments, standard input."""

ENDS_WITHIN_S = 3.0  # a process that was asked to end
_journals: list[Journal] = []


def add_journal(journal: Journal) -> None:
    _journals.append(journal)


def remove_journal(journal: Journal) -> None:
    """Stop reporting commands to the function `journal`. Do nothing if it was not added."""
    if journal in _journals:
        _journals.remove(journal)


def forget_journals() -> None:
    """Remove all journals, the functions to which commands are reported.

    A forked process calls this, because the journals belong to its parent.
    """
    _journals.clear()


@contextmanager
def journal_to(journal: Journal) -> Iterator[None]:
    add_journal(journal)
    try:
        yield
    finally:
        remove_journal(journal)


def script_line(at: float, argv: Sequence[str], stdin: str | None = None) -> str:
    """Format a command for a shell script: a comment with its time (UTC), then the command.

    `at` is in s since 1970. `stdin`, the standard input, becomes a here-document.
    """
    stamp = time.strftime("%H:%M:%S", time.gmtime(at)) + f".{int(at % 1 * 1000):03d}"
    end = f" <<'END'\n{stdin.rstrip(chr(10))}\nEND" if stdin is not None else ""
    return f"# {stamp}\n{shlex.join(argv)}{end}\n"


def run(
    argv: Sequence[str],
    doing: str,
    *,
    stdin: str | None = None,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout_s: float | None = None,
) -> str:
    """Run a command to its end, and return its standard output.

    `doing` says the purpose; error messages begin with it. Raises `CommandFailed` with the
    command's error output if the exit status is not 0. Raises `CommandFailed` with status 124 if
    the command still runs after `timeout_s` seconds. Raises `MachineLacks`, with the package to
    install, if the program is missing.
    """
    journal_command(argv, stdin)
    try:
        done: subprocess.CompletedProcess[str] = subprocess.run(
            argv,
            capture_output=True,
            text=True,
            cwd=cwd,
            env=env,
            timeout=timeout_s,
            check=False,
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
        )
    except FileNotFoundError as problem:
        raise _missing(argv, doing, cwd) from problem
    except subprocess.TimeoutExpired as problem:
        raise CommandFailed(doing, argv, 124, f"still running after {timeout_s} s") from problem
    if done.returncode != 0:
        raise CommandFailed(doing, argv, done.returncode, done.stderr or done.stdout)
    return done.stdout


def spawn(argv: Sequence[str], doing: str, **options: Any) -> subprocess.Popen[Any]:
    """Start a command, and return its process without waiting for its end.

    Error messages begin with `doing`. `options` are passed to `subprocess.Popen`; `text` is True by
    default. Raises `MachineLacks` if the program is missing.
    """
    journal_command(argv)
    try:
        return subprocess.Popen(argv, **{"text": True, **options})
    except FileNotFoundError as problem:
        raise _missing(argv, doing, options.get("cwd")) from problem


class Endable(Protocol):
    def wait(self, timeout: float | None = None) -> int: ...

    def kill(self) -> None: ...


def wait_or_kill(process: Endable) -> None:
    """Wait for the end of a process. Kill it after `ENDS_WITHIN_S` seconds."""
    try:
        process.wait(ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def succeeds(argv: Sequence[str], timeout_s: float = 10) -> bool:
    """Run a command, and return whether its exit status is 0.

    A missing program and a timeout count as failures. The command is not reported to the journals.
    """
    try:
        quiet = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout_s, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return quiet.returncode == 0


def journal_command(argv: Sequence[str], stdin: str | None = None, at: float | None = None) -> None:
    """Report a command to the journals, for example to the one that writes the run's shell script.

    `at` is when the command was issued [s since 1970]; the default is now. `run` and `spawn` call
    this function. Code that makes a system call instead of running a command also calls it, with
    an equivalent command. So does code that reports a command of another process.
    """
    for journal in _journals:
        journal(time.time() if at is None else at, argv, stdin)


def last_line(problem: CommandFailed) -> str:
    return (problem.stderr.splitlines() or ["no message"])[-1]


def _missing(argv: Sequence[str], doing: str, cwd: Any) -> MachineLacks:
    if cwd is not None and not Path(cwd).is_dir():
        return MachineLacks(
            f"{doing}: the folder {cwd} does not exist. Try: ./run_lab.sh setup-emulation"
        )
    return MachineLacks(f"{doing}: '{argv[0]}' not found. Try: {install_command(argv[0])}")
