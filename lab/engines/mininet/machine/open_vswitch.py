"""Change the configuration of Open vSwitch, and find out whether its two programs are running."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterable
from pathlib import Path

from lab.engines.mininet.machine import shell
from lab.engines.mininet.machine.processes import start_time
from lab.errors import CommandFailed, LabError

TIMEOUT_S = 120  # a busy machine needs seconds for each bridge
POLL_S = 1.0
FOLDER = Path("/var/run/openvswitch")
ENDED = (
    "Open vSwitch has ended (ovs-vswitchd). Type: sudo systemctl restart openvswitch-switch; "
    "./run_lab.sh clean"
)
PID_FILE = FOLDER / "ovs-vswitchd.pid"  # of the daemon that runs the switches


def database_runs() -> bool:
    """Return whether the database server of Open vSwitch accepts connections.

    The existence of its socket file proves nothing: the file can remain after the server has ended.
    """
    with socket.socket(socket.AF_UNIX) as database:
        return database.connect_ex(str(FOLDER / "db.sock")) == 0


def daemon_runs() -> bool:
    """Return whether the daemon ovs-vswitchd is running."""
    try:
        return start_time(int(PID_FILE.read_text())) is not None
    except (OSError, ValueError):
        return False


def daemon_ended() -> bool:
    """Return whether the daemon has ended without removing the file with its process number.

    In a VM that is booting, there is no such file yet.
    """
    return PID_FILE.exists() and not daemon_runs()


def change(words: Iterable[str], doing: str) -> str:
    """Run `ovs-vsctl` with these words and return its output.

    It waits until the daemon has carried out the change. `doing` begins the error message. Raises
    `LabError` soon after the daemon has ended, `CommandFailed` if the change fails or takes longer
    than `TIMEOUT_S`.
    """
    argv = ["ovs-vsctl", f"--timeout={TIMEOUT_S}", *words]
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = shell.spawn(argv, doing, **streams)
    while True:
        try:
            output, errors = process.communicate(timeout=POLL_S)
        except subprocess.TimeoutExpired:
            if daemon_ended():
                process.kill()
                process.communicate()
                raise LabError(f"{doing}: {ENDED}") from None
        else:
            break
    if process.returncode:
        raise CommandFailed(doing, argv, process.returncode, errors)
    return str(output)
