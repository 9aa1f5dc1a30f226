"""Find out whether the two programs of Open vSwitch are running on this machine."""

from __future__ import annotations

import socket
from pathlib import Path

from lab.engines.mininet.machine.processes import start_time

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
    """Return whether the daemon ovs-vswitchd is running.

    Without it, `ovs-vsctl` changes the database, but waits in vain until a change has an effect.
    """
    try:
        return start_time(int(PID_FILE.read_text())) is not None
    except (OSError, ValueError):
        return False
