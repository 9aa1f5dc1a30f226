"""Start POX and the host agent beside a network that somebody else's script has built.

1) Read addresses from the kernel, and refuse what POX cannot control. Nothing has changed so far.
2) Set up hosts: MPTCP, one routing table per address, ARP only from the interface with the address.
3) Start POX, and connect all bridges to it. The controllers of the script are no longer used.
4) Start the host agent, which reports subflows and carries out POX's commands, and the AP agent,
   which reports the queues of access points.
"""

from __future__ import annotations

import json
import secrets
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from controller.strategies import known
from controller.strategies.base import checked_params
from controller.units import bps_from_mbps
from lab.engines.mininet.adopt.description import (
    Description,
    Options,
    Port,
    Seen,
    describe,
    station_mbps,
)
from lab.engines.mininet.agents import ApAgentProcess, HostAgentProcess
from lab.engines.mininet.controller_client import (
    AP_AGENT_PORT,
    HOST_AGENT_PORT,
    ControllerClient,
    RunningStrategy,
    read_line,
)
from lab.engines.mininet.emulated_network import KEY, STATE
from lab.engines.mininet.kernel import netlink, shaping
from lab.engines.mininet.kernel.cell_maps import PINS
from lab.engines.mininet.machine import open_vswitch, shell, upstreams
from lab.engines.mininet.machine.ledger import Ledger, write_secret
from lab.engines.mininet.network import host_setup, packet_programs
from lab.engines.mininet.network.joins import MAX_SUBFLOWS
from lab.engines.mininet.programs.ap_agent import AccessPoint, Station
from lab.engines.mininet.programs.host_agent import HostSettings, Settings
from lab.errors import RequestError
from lab.run.reading import Follower

FIRST_TABLE = 101  # of routes; scripts use small numbers
ASSOCIATED_WITHIN_S = 20
METRIC = 4000  # of the route that a host uses only if the script gave it no other


class Adopted:
    """A network of a script, with POX and the host agent beside it until `close`.

    `folder` gets topology.json, commands, and what POX writes. `say` prints a line.
    """

    def __init__(
        self,
        net: Any,
        strategy: RunningStrategy,
        options: Options,
        folder: Path,
        ledger: Ledger,
        say: Callable[[str], None],
    ) -> None:
        """Take the network over. Raises `LabError`, and undoes its own part, if that fails."""
        self.net, self.strategy, self.folder, self._say = net, strategy, folder, say
        self._ledger, self._undo = ledger, ExitStack()
        pids = {each.name: each.pid for each in _hosts(net)}
        for each in _hosts(net):
            for radio in (getattr(each, "wintfs", None) or {}).values():
                if getattr(radio, "associatedTo", None) and not _is_associated(each.pid, radio):
                    say(
                        f"note: {radio.name} is not associated with {radio.associatedTo.name} "
                        f"after {ASSOCIATED_WITHIN_S} s, so nothing reaches it"
                    )
        forwards = [name for name, pid in pids.items() if _forwards(pid)]
        seen = {name: one for pid in pids.values() for name, one in _seen(pid).items()}
        self.found = describe(net, options, seen, forwards)
        for note in self.found.notes:
            say(f"note: {note}")
        if not self.found.users:
            say("note: no host has two addresses, so no connection has subflows to choose from")
        self._restore_rates()
        self._queues = {
            ap: queue
            for ap, radio in self.found.radios.items()
            if (queue := radio_queue(_root_qdisc(radio)))
        }
        for ap in self.found.cells:
            if ap not in self._queues:
                say(unmeasured(ap))
        try:
            self._start(pids)
        except BaseException:
            self.close()
            raise

    def _restore_rates(self) -> None:
        """Let Mininet-WiFi limit the radios of access points again.

        Open vSwitch removes the qdisc of an interface that becomes a port of a bridge.
        """
        for ap in getattr(self.net, "aps", ()):
            for radio in (getattr(ap, "wintfs", None) or {}).values():
                if not radio_queue(_root_qdisc(radio.name)) and hasattr(radio, "set_tc_ap"):
                    radio.set_tc_ap()

    def _start(self, pids: dict[str, int]) -> None:
        record(self._ledger, self.net)
        self._undo.enter_context(shell.journal_to(self._journal))
        for host in self.found.hosts:
            _set_up(self.found, host, pids[host])
        host_setup.without_offloads(_switch_ports(self.found), lambda argv: argv)
        pox = self._start_pox()
        self._connect()
        pox.wait_ready()
        agent = HostAgentProcess(
            STATE / "hosts.json", self._settings(pids), self._ledger, self.folder / "hosts.log"
        )
        self._undo.callback(agent.close)
        agent.wait()
        if self._queues:
            arguments = (self._ledger, (STATE, self.folder), KEY.read_text())
            self._undo.callback(ApAgentProcess(self._access_points(), *arguments).close)
        users = ", ".join(self.found.users) or "none"
        self._say(
            f"POX runs {self.strategy.name} on {len(self.found.dpids)} switches. "
            f"Users: {users}. Servers: {', '.join(self.found.servers)}. "
            f"Decisions: {self.folder / 'pox' / 'decisions.jsonl'}"
        )

    def _start_pox(self) -> ControllerClient:
        STATE.mkdir(parents=True, exist_ok=True)
        write_secret(KEY, secrets.token_hex(16), self._ledger)
        packet_programs.mount_pins(self._ledger)  # for pacing rates
        pox = ControllerClient(
            self.folder / "pox", upstreams.folder("pox"), self._ledger, self.strategy, KEY
        )
        description = self.found.to_json(self._rates_mbps())
        for name, ap in description["aps"].items():
            ap["is_measured"] = name in self._queues
        self._undo.callback(pox.stop)
        pox.start(description)
        return pox

    def _rates_mbps(self) -> dict[str, float]:
        return {self.found.radios[ap]: each.rate_mbps for ap, each in self._queues.items()}

    def _access_points(self) -> dict[str, AccessPoint]:
        """Return what the AP agent measures: the queue at the radio of each access point."""
        rates = self._rates_mbps()
        return {
            ap: AccessPoint(
                "queue",
                self.found.radios[ap],
                {
                    each.host: Station(bps_from_mbps(station_mbps(each, rates)), 1.0, each.port)
                    for each in self.found.stations(ap)
                },
                qdisc=queue.major,
            )
            for ap, queue in self._queues.items()
        }

    def _connect(self) -> None:
        """Connect every bridge to POX only, by OpenFlow 1.0 and 1.3."""
        words: list[str] = []
        for bridge in self.found.dpids:
            words += ["--", "set", "bridge", bridge, *open_vswitch.BRIDGE]
        open_vswitch.change(words, "set the bridges up for POX")
        open_vswitch.connect_controller(self.found.dpids)

    def _settings(self, pids: dict[str, int]) -> Settings:
        found, hosts = self.found, {}
        for host in dict.fromkeys((*found.users, *found.servers)):
            own = found.of(host) if host in found.users else ()
            hosts[host] = HostSettings(
                pid=pids[host],
                endpoints=host in found.users,
                loss={
                    address: found.loss_devices(each) for each in own for address in each.addresses
                },
                paced=[
                    shaping.paced(each.name, shaped=False)
                    for each in found.of(host)
                    if not each.wlan and not _is_shaped(each)
                ],
            )
        controller = ("127.0.0.1", HOST_AGENT_PORT)
        return Settings(
            controller, KEY.read_text(), 0.5, PINS / "pacing", hosts, None, adopted=True
        )

    def _journal(self, at: float, argv: Iterable[str], stdin: str | None) -> None:
        with (self.folder / "commands.sh").open("a") as file:
            file.write(shell.script_line(at, list(argv), stdin))

    def close(self) -> None:
        """End the host agent and POX, and say what POX has decided."""
        self._undo.close()
        decisions = Counter[str]()
        for line in Follower(self.folder / "pox" / "decisions.jsonl", read_line).new():
            if line.kind == "decision":
                decisions[str(line.fields.get("action"))] += 1
        shown = ", ".join(f"{count} {action}" for action, count in sorted(decisions.items()))
        self._say(f"POX has ended. Its decisions: {shown or 'none'}")


def unmeasured(ap: str) -> str:
    return (
        f"note: no agent measures {ap}: no station is associated with it, or its radio has no "
        "netem qdisc with a rate, so that nothing waits there. meter_throttling limits nothing at "
        f"it. For a rate, write in the script: {ap}.cmd('tc qdisc replace dev {ap}-wlan1 root "
        "handle 2: netem rate 20mbit')"
    )


@dataclass(frozen=True)
class RadioQueue:
    """The qdisc in which packets wait for a radio: its major number, and its rate."""

    major: int
    rate_mbps: float


def radio_queue(qdiscs: list[dict[str, Any]]) -> RadioQueue | None:
    """Return the queue at a radio, from the output of `tc -j qdisc show`; None without one.

    Mininet-WiFi limits a radio by netem at its root.
    """
    for each in qdiscs:
        rate = each.get("options", {}).get("rate", {})
        if each.get("root") and each["kind"] == "netem" and rate.get("rate"):
            return RadioQueue(int(each["handle"].rstrip(":"), 16), rate["rate"] * 8 / 1e6)
    return None


def _root_qdisc(radio: str) -> list[dict[str, Any]]:
    shown = shell.run(["tc", "-j", "qdisc", "show", "dev", radio], f"read the queue of {radio}")
    found: list[dict[str, Any]] = json.loads(shown)
    return found


def checked_strategy(name: str, params: dict[str, Any]) -> RunningStrategy:
    """Return the strategy `name`, as POX starts it. Raises `ControllerError` if it has no such
    parameter, or not this value for it."""
    checked_params(known(name).Params, params, f"start strategy '{name}'")
    return RunningStrategy(name, params)


def check_ports() -> None:
    """Raise `RequestError` if another controller listens where POX would."""
    for port in open_vswitch.OPENFLOW_PORTS:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                raise RequestError(
                    f"start POX: another controller listens on port {port}. End it first; "
                    f"`ss -ltnp sport = :{port}` names it"
                )
    for port in (AP_AGENT_PORT, HOST_AGENT_PORT):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError as error:
                raise RequestError(f"start POX: UDP port {port}: {error.strerror}") from error


def record(ledger: Ledger, net: Any) -> None:
    """Record what the script has made, so that `clean` removes it if the script is killed."""
    for host in _hosts(net):
        ledger.record("process", pid=host.pid)
    switches = [*net.switches, *getattr(net, "aps", ())]
    names = {each.name for each in switches}
    for link in net.links:
        for end in (getattr(link, "intf1", None), getattr(link, "intf2", None)):
            if getattr(getattr(end, "node", None), "name", None) in names:
                ledger.record("interface", name=str(getattr(end, "name", "")))
    ledger.record("bridges", names=sorted(names))


def _hosts(net: Any) -> list[Any]:
    return [*net.hosts, *getattr(net, "stations", ()), *getattr(net, "cars", ())]


def _is_associated(pid: int, radio: Any) -> bool:
    """Associate a station with the access point that Mininet-WiFi has chosen; return whether it is.

    Mininet-WiFi associates by iwconfig, which most machines no longer have, so iw repeats it.
    """
    ap, device = radio.associatedTo, [*_inside(pid), "iw", "dev", radio.name]
    deadline = time.monotonic() + ASSOCIATED_WITHIN_S
    while not shell.run([*device, "link"], f"read the state of {radio.name}").startswith("Conn"):
        if time.monotonic() > deadline:
            return False
        shell.succeeds([*device, "connect", str(ap.ssid), str(ap.mac)])  # fails while it connects
        time.sleep(1)
    return True


def _forwards(pid: int) -> bool:
    setting = Path("/proc/sys/net/ipv4/ip_forward")
    return netlink.inside(pid, setting.read_text).strip() == "1"


def _seen(pid: int) -> dict[str, Seen]:
    """Return the interfaces in the network namespace of a process, with their IPv4 addresses."""
    shown = shell.run([*_inside(pid), "ip", "-j", "address"], "read the addresses of a host")
    return {
        each["ifname"]: Seen(
            tuple(one["local"] for one in each["addr_info"] if one["family"] == "inet"),
            each.get("address", ""),
        )
        for each in json.loads(shown)
        if each["ifname"] != "lo"
    }


def _inside(pid: int) -> list[str]:
    return ["mnexec", "-a", str(pid)]


def _set_up(found: Description, host: str, pid: int) -> None:
    """Set a host up so that each of its addresses is used, and answered for, at its interface."""
    ports = found.of(host)
    names = [each.name for each in ports]

    def enter(argv: list[str]) -> list[str]:
        return [*_inside(pid), *argv]

    netlink.inside(pid, partial(host_setup.write_settings, host_setup.settings(names), enter))
    wired = [each.name for each in ports if not each.wlan]
    netlink.inside(pid, partial(host_setup.without_offloads, wired, enter))
    lines = [*ip_lines(ports), *endpoint_lines(found, host)]
    shell.run(
        enter(["ip", "-force", "-batch", "-"]), f"set up {host}", stdin="\n".join(lines) + "\n"
    )


def ip_lines(ports: tuple[Port, ...]) -> list[str]:
    """Return the `ip -batch` lines for the routes of a host.

    All other hosts are reached without a gateway: POX answers ARP requests for them.
    """
    lines = []
    for table, each in enumerate(ports, FIRST_TABLE):
        lines += [
            f"link set dev {each.name} gso_max_segs 1",
            f"route replace default dev {each.name} table {table}",
            *(f"rule add from {address} table {table}" for address in each.addresses),
        ]
    first = ports[0]
    lines.append(f"route replace default dev {first.name} src {first.addresses[0]} metric {METRIC}")
    return lines


def endpoint_lines(found: Description, host: str) -> list[str]:
    """Return the `ip -batch` lines for the MPTCP endpoints of a host.

    A user opens a subflow from each of its addresses. A server announces its further addresses.
    """
    addresses = [(each.name, one) for each in found.of(host) for one in each.addresses]
    if host in found.users:
        many = any(len(found.of(server)) > 1 for server in found.servers)
        words = "subflow fullmesh" if many else "subflow"
    else:
        words, addresses = "signal", addresses[1:]
    lines = [
        "mptcp endpoint flush",
        f"mptcp limits set subflow {MAX_SUBFLOWS} add_addr_accepted {MAX_SUBFLOWS}",
    ]
    return lines + [f"mptcp endpoint add {one} dev {name} {words}" for name, one in addresses]


def _is_shaped(port: Port) -> bool:
    """Return whether Mininet has put a qdisc of its own on a host's interface."""
    return any(port.shape.values())


def _switch_ports(found: Description) -> list[str]:
    ports = [each.port for each in found.ports if not each.wlan]
    return [*ports, *(end for each in found.trunks for end in (each.a_port, each.b_port))]
