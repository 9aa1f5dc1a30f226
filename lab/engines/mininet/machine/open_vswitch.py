"""Open vSwitch: check that it runs, make bridges, and connect them to the controller POX."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterable, Mapping
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

    This is tested by a connection, because the socket file can remain after the server has ended.
    """
    with socket.socket(socket.AF_UNIX) as database:
        return database.connect_ex(str(FOLDER / "db.sock")) == 0


def daemon_runs() -> bool:
    try:
        return start_time(int(PID_FILE.read_text())) is not None
    except (OSError, ValueError):
        return False


def daemon_ended() -> bool:
    """Return whether ovs-vswitchd has died: its PID file exists, but its process does not.

    Without a PID file the result is False: the daemon has not started yet. This can happen while a
    VM boots.
    """
    return PID_FILE.exists() and not daemon_runs()


def change(words: Iterable[str], doing: str) -> str:
    """Run `ovs-vsctl` with the arguments `words`, and return its output.

    `ovs-vsctl` ends when the daemon ovs-vswitchd has made the change. Error messages begin with
    `doing`. Raises `LabError` if the daemon ends, and `CommandFailed` if the change fails or takes
    longer than `TIMEOUT_S` seconds.
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


OPENFLOW_PORTS = (6633, 6653)  # POX's own OpenFlow 1.0, and OpenFlow 1.3 for meters
BRIDGE = (
    "fail_mode=secure",
    "protocols=OpenFlow10,OpenFlow13",
    "other_config:disable-in-band=true",
)
# [ms]. With the long probe interval, a switch keeps its connection while the controller is stopped
# for a while. The backoff is also the time limit of a connection attempt: with a shorter one, many
# switches would reconnect every second to a slow controller.
CONNECTION_TIMEOUTS = ("inactivity_probe=60000", "max_backoff=4000")


def make_bridges(dpids: Mapping[str, int], ports: Iterable[tuple[str, str]]) -> None:
    """Make one bridge per switch or access point, and add ports to the bridges.

    `dpids` maps the name of each bridge to its OpenFlow datapath ID. Each pair in `ports` is a
    bridge and a network interface that becomes its port. One `ovs-vsctl` command does everything,
    because a busy machine needs seconds per command.
    """
    argv = ["--retry"]
    for switch, dpid in dpids.items():
        argv += ["--", "add-br", switch, "--", "set", "bridge", switch]
        argv += [f"other_config:datapath-id={dpid:016x}", *BRIDGE]
    for switch, port in ports:
        argv += ["--", "add-port", switch, port]
    change(argv, "make the bridges")


def connect_controller(switches: Iterable[str]) -> None:
    """Connect every bridge to POX twice: by OpenFlow 1.0, and by OpenFlow 1.3 for meters.

    A second command sets the timeouts, because Open vSwitch 3.1 ignores timeouts in the command
    that makes a connection.
    """
    argv: list[str] = []
    for switch in switches:
        connections = [f"@{switch}-{port}" for port in OPENFLOW_PORTS]
        for name, port in zip(connections, OPENFLOW_PORTS, strict=True):
            argv += ["--", f"--id={name}", "create", "controller"]
            argv += [f'target="tcp:127.0.0.1:{port}"']
        argv += ["--", "set", "bridge", switch, f"controller={','.join(connections)}"]
    made = change(argv, "connect the bridges to POX").split()
    timeouts: list[str] = []
    for connection in made:
        timeouts += ["--", "set", "controller", connection, *CONNECTION_TIMEOUTS]
    change(timeouts, "set the timeouts of the connections to POX")
