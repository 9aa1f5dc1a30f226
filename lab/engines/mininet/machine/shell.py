"""Start processes; no other module of the emulation does.

`run` waits for a command and checks its exit status, `spawn` leaves one running. Every command is
passed to the journals with its time, so that a run can keep a script of what it did to the machine.
"""

from __future__ import annotations

import shlex
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lab.engines.mininet.machine.packages import install_command
from lab.errors import CommandFailed, MachineLacks

Journal = Callable[[float, Sequence[str], str | None], None]
"""Takes the time (s since 1970), the command, and its standard input."""

_journals: list[Journal] = []


def add_journal(journal: Journal) -> None:
    """Pass every command to this function from now on."""
    _journals.append(journal)


def remove_journal(journal: Journal) -> None:
    """Stop passing commands to this function; nothing happens if it was not added."""
    if journal in _journals:
        _journals.remove(journal)


@contextmanager
def journal_to(journal: Journal) -> Iterator[None]:
    """Pass every command to this function while the block runs."""
    add_journal(journal)
    try:
        yield
    finally:
        remove_journal(journal)


def script_line(at: float, argv: Sequence[str], stdin: str | None = None) -> str:
    """Return a command as a line of a shell script, with its time (UTC) in a comment above it."""
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
    """Run a command to its end and return what it printed.

    `doing` describes the purpose; errors begin with it. Raises `CommandFailed` with the command's
    message if it does not succeed (status 124 after `timeout_s`), `MachineLacks` with what to
    install if there is no such program.
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
    """Start a command and leave it running.

    `options` are those of `subprocess.Popen`; `text` is True by default.
    """
    journal_command(argv)
    try:
        return subprocess.Popen(argv, **{"text": True, **options})
    except FileNotFoundError as problem:
        raise _missing(argv, doing, options.get("cwd")) from problem


def succeeds(argv: Sequence[str], timeout_s: float = 10) -> bool:
    """Return whether a command succeeds; it is not passed to the journals."""
    try:
        quiet = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout_s, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return quiet.returncode == 0


def journal_command(argv: Sequence[str], stdin: str | None = None, at: float | None = None) -> None:
    """Pass a command to the journals, with the time it was issued (default: now).

    Call it where a system call or another process does the command's work instead.
    """
    for journal in _journals:
        journal(time.time() if at is None else at, argv, stdin)


def last_line(problem: CommandFailed) -> str:
    """Return the last line of a failed command's message."""
    return (problem.stderr.splitlines() or ["no message"])[-1]


def _missing(argv: Sequence[str], doing: str, cwd: Any) -> MachineLacks:
    if cwd is not None and not Path(cwd).is_dir():
        return MachineLacks(
            f"{doing}: the folder {cwd} does not exist. Try: ./run_lab.sh setup-emulation"
        )
    return MachineLacks(f"{doing}: '{argv[0]}' not found. Try: {install_command(argv[0])}")
