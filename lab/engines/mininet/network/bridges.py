"""Make the Open vSwitch bridges of a network, and connect them to the controller POX.

One `ovs-vsctl` command makes all bridges, because a busy machine needs seconds per command.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lab.engines.mininet.machine import open_vswitch

OPENFLOW_PORTS = (6633, 6653)  # POX's own OpenFlow 1.0, and OpenFlow 1.3 for meters
BRIDGE = (
    "fail_mode=secure",
    "protocols=OpenFlow10,OpenFlow13",
    "other_config:disable-in-band=true",
)
# [ms]. With the long probe interval, a switch keeps its connection while the controller is stopped
# for a while. A connection attempt also ends after the backoff; with a shorter one, many switches
# would reconnect every second to a slow controller.
TIMEOUTS = ("inactivity_probe=60000", "max_backoff=4000")


def make(dpids: Mapping[str, int], ports: Iterable[tuple[str, str]]) -> None:
    """Make one bridge per switch or access point, and add ports to the bridges.

    `dpids` maps the name of each bridge to its OpenFlow datapath ID. `ports` lists pairs: the name
    of a bridge, and the name of the interface that becomes its port.
    """
    argv = ["--retry"]
    for switch, dpid in dpids.items():
        argv += ["--", "add-br", switch, "--", "set", "bridge", switch]
        argv += [f"other_config:datapath-id={dpid:016x}", *BRIDGE]
    for switch, port in ports:
        argv += ["--", "add-port", switch, port]
    open_vswitch.change(argv, "make the bridges")


def connect_controller(switches: Iterable[str]) -> None:
    """Connect every bridge to POX by two connections: OpenFlow 1.0, and OpenFlow 1.3 for meters.

    A second command sets the timeouts, because Open vSwitch 3.1 ignores timeouts in the command
    that makes a connection.
    """
    argv: list[str] = []
    for switch in switches:
        connections = [f"@{switch}-{port}" for port in OPENFLOW_PORTS]
        for connection, port in zip(connections, OPENFLOW_PORTS, strict=True):
            argv += ["--", f"--id={connection}", "create", "controller"]
            argv += [f'target="tcp:127.0.0.1:{port}"']
        argv += ["--", "set", "bridge", switch, f"controller={','.join(connections)}"]
    made = open_vswitch.change(argv, "connect the bridges to POX").split()
    timeouts = [word for uuid in made for word in ("--", "set", "controller", uuid, *TIMEOUTS)]
    open_vswitch.change(timeouts, "set the timeouts of the connections to POX")
