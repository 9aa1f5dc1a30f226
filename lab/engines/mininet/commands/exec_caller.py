"""Send commands to a running emulation and show their output: `exec RUN HOST -- CMD`, `cli RUN`.

The engine, another process, runs the commands. Both processes communicate by files, which
execute.py describes.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import sys
import termios
import time
import tty
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from lab.engines.mininet.commands.execute import MACHINE, PROMPT, Request
from lab.engines.mininet.machine import shell
from lab.errors import LabError, RequestError, unknown
from lab.isolation import python
from lab.run import process

POLL_S = 0.1
KEYS_S = 0.03  # between two copies of keystrokes and output of a terminal
START_TIMEOUT_S = 60
ALIVE_S = 2.0  # between two checks that the run is running
CHUNK = 65536


def main(run: str, host: str, argv: list[str], runs: Path) -> int:
    """Run a command in a host of a running emulation, and return its exit status.

    `run` is the name of a run in the folder `runs`, or the path of a run folder. The output of the
    command is printed while it runs. The command gets a terminal if this process has one.
    """
    folder = _folder(run, runs)
    hosts = [*json.loads((folder / "pox" / "topology.json").read_text())["hosts"], MACHINE]
    if host not in hosts:
        raise RequestError(f"exec in {run}: host {unknown(host, hosts)}")
    return _send(folder, host, argv)


def prompt(run: str, runs: Path) -> int:
    """Open Mininet-WiFi's prompt on a running emulation, and return its exit status.

    `run` is the name of a run in the folder `runs`, or the path of a run folder. If this process
    has no terminal, the commands for the prompt are read from its standard input.
    """
    folder = _folder(run, runs)
    lines = [] if _has_terminal() else sys.stdin.read().splitlines()
    return _send(folder, PROMPT, lines)


def _folder(run: str, runs: Path) -> Path:
    """Return the folder of a run. Raises `RequestError` if the run does not accept commands."""
    folder = runs / run if (runs / run).is_dir() else Path(run)
    if not (folder / "exec").is_dir():
        raise RequestError(
            f"exec in {run}: no emulation serves this run. Only a running one does; see {runs}"
        )
    return folder


def _has_terminal() -> bool:
    return os.isatty(0) and os.isatty(1)


def _send(folder: Path, host: str, argv: list[str]) -> int:
    file = folder / "exec" / f"{time.monotonic_ns():020d}.json"
    terminal = os.environ.get("TERM", "xterm") if _has_terminal() else ""
    if terminal:
        file.with_suffix(".in").touch()
        _write_size(file)
    draft = file.with_suffix(".part")
    draft.write_text(json.dumps(asdict(Request(host, argv, terminal))))
    draft.rename(file)
    if terminal:
        with _raw_terminal(file):
            return _Output(file, folder).follow(KEYS_S, keys=True)
    return _Output(file, folder).follow(POLL_S, keys=False)


class _Output:
    """Shows the output of a command that the engine runs, until the command ends.

    `file` is the JSON file of the request. The output is in files with the same name and other
    suffixes.
    """

    def __init__(self, file: Path, folder: Path) -> None:
        self._file, self._folder = file, folder
        self._positions = {".out": 0, ".err": 0, ".windows": 0}
        self._alive_until_s = 0.0

    def follow(self, poll_s: float, keys: bool) -> int:
        """Print the output until the command ends, and return the exit status of the command.

        With `keys`, the keystrokes of this process are sent to the command. The files are read
        every `poll_s` seconds. Raises `LabError` if the run ends, if the process or the VM of the
        run was killed, or if the command does not start within `START_TIMEOUT_S` seconds.
        """
        deadline = time.monotonic() + START_TIMEOUT_S
        status = self._file.with_suffix(".status")
        while True:
            done = status.exists() and status.read_text().strip()
            for suffix, stream in ((".out", sys.stdout), (".err", sys.stderr)):
                stream.buffer.write(self._new(suffix))
                stream.flush()
            for name in self._new(".windows").decode().split():
                _open_window(self._folder, name)
            if done:
                return int(done)
            if not self._file.parent.is_dir():
                raise LabError("exec: the run has ended")
            if not self._run_is_alive():
                raise LabError(
                    f"exec: the run in {self._folder} was lost, because its process or its VM ended"
                )
            if not self._file.with_suffix(".out").exists() and time.monotonic() > deadline:
                self._file.unlink(missing_ok=True)
                raise LabError(
                    f"exec: the run did not start the command in {START_TIMEOUT_S} s. "
                    "Is it still running?"
                )
            if keys:
                self._copy_keys(poll_s)
            else:
                time.sleep(poll_s)

    def _run_is_alive(self) -> bool:
        """Return whether the process of the run is alive.

        If it was alive at a check, the next check comes `ALIVE_S` seconds later. Until then, the
        result is True.
        """
        now_s = time.monotonic()
        if now_s >= self._alive_until_s:
            manifest = json.loads((self._folder / "manifest.json").read_text())
            if not process.alive(manifest, self._folder):
                return False
            self._alive_until_s = now_s + ALIVE_S
        return True

    def _new(self, suffix: str) -> bytes:
        """Return what was appended to the file with this suffix since the last call."""
        try:
            with self._file.with_suffix(suffix).open("rb") as file:
                file.seek(self._positions[suffix])
                data = file.read()
        except FileNotFoundError:
            return b""
        self._positions[suffix] += len(data)
        return data

    def _copy_keys(self, wait_s: float) -> None:
        if not select.select([0], [], [], wait_s)[0]:
            return
        if data := os.read(0, CHUNK):
            with self._file.with_suffix(".in").open("ab") as keys:
                keys.write(data)
        else:
            time.sleep(wait_s)


def _open_window(folder: Path, host: str) -> None:
    """Open a terminal window with a shell in `host`.

    Without a display or the program xterm, print what the user can type instead.
    """
    if not os.environ.get("DISPLAY") or not shutil.which("xterm"):
        sys.stdout.write(f"xterm {host}: no display or no xterm here. Type: {host} bash\r\n")
        return
    inside = python("-m", "lab", "exec", str(folder.absolute()), host, "--", "bash")
    shell.spawn(["xterm", "-T", host, "-e", *inside], f"open a window on {host}")


def _write_size(file: Path) -> None:
    size = os.get_terminal_size()
    draft = file.with_suffix(".resized")
    draft.write_text(f"{size.lines} {size.columns}")
    draft.rename(file.with_suffix(".size"))


@contextlib.contextmanager
def _raw_terminal(file: Path) -> Iterator[None]:
    """Put this terminal into raw mode during a `with` block, so that Ctrl-C reaches the command.

    `file` is the JSON file of the request. When the terminal's size changes, the new size is
    written into the file with the same name and the suffix `.size`.
    """
    before = termios.tcgetattr(0)
    resized = signal.signal(signal.SIGWINCH, lambda _number, _frame: _write_size(file))
    try:
        tty.setraw(0)
        yield
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)
        signal.signal(signal.SIGWINCH, resized)
