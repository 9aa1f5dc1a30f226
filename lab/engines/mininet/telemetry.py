"""Take the samples of a run.

The values come from sockets, queues, the decisions of POX and the reports of the AP agent. No
process is started for a sample.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from lab.engines.mininet.agents import ApAgentProcess
from lab.engines.mininet.controller_client import Decided, Line, Observed, SubflowSeen
from lab.engines.mininet.emulated_network import EmulatedNetwork
from lab.engines.mininet.kernel import netlink, tcp_sockets
from lab.engines.mininet.kernel.shaping import FQ, NETEM, PFIFO
from lab.engines.mininet.kernel.subflow_rates import ExpectedRates, pacing_rate_bps
from lab.engines.mininet.kernel.tcp_sockets import TcpSocket
from lab.engines.mininet.traffic import sampler
from lab.engines.mininet.traffic.sampler import Sampler
from lab.engines.mininet.watchdog import Watchdog
from lab.frame import ApSample, Direction, Frame, LinkSample, UserSample
from lab.radio.cell import Cell
from lab.radio.mobility import Place
from lab.topologies.topology import Trunk
from lab.vm_environment import LOST_SHARE_FILE

QUEUES = NETEM, PFIFO  # of a shaped port: netem counts what is sent and lost, pfifo what waits


class Telemetry:
    """Takes samples of the emulated network, each as a `Frame`.

    Rates are differences of counters, so the counters of the last sample are kept.
    """

    def __init__(self, emulated: EmulatedNetwork, rate_scale: float) -> None:
        """Open a netlink socket in every host that has flows.

        `rate_scale` is the ratio of an emulated rate to the same rate in the scenario.
        """
        self.rate_scale = rate_scale
        self.topology, self.wiring = emulated.topology, emulated.wiring
        self.programs, self.links = emulated.programs, emulated.links
        self._stations = emulated.stations
        self.places: Mapping[str, Place] = {}
        self.ap_agent: ApAgentProcess | None = None
        expected = ExpectedRates(emulated.expected).rate_bps if emulated.expected else None
        self.sampler = Sampler(self.wiring, expected or pacing_rate_bps)
        file = os.environ.get(LOST_SHARE_FILE)
        self.watchdog = Watchdog(Path(file) if file else None)
        for reason in emulated.misleading:
            self.watchdog.add(reason)
        # a netlink socket stays in the namespace where it was opened
        self._diagnoses = {
            host: netlink.inside(emulated.network.pid(host), tcp_sockets.Diagnosis)
            for host in self.programs.hosts
        }
        for diagnosis in self._diagnoses.values():
            diagnosis.sockets()  # the first request makes the kernel load a module
        self._scheduler = netlink.Scheduler()
        sampled = {link.id for link in self.topology.sampled_links}
        self._trunks = [each for each in self.wiring.trunks if each.link in sampled]
        ports = [port for each in self._trunks for port in (each.a_port, each.b_port)]
        self._device = {port: self._scheduler.index(port) for port in ports}
        self._radio = {ap: self._scheduler.index(f"{ap}-wlan1") for ap in self.links.cells}
        self._handles = [(number, kind) for number in self._device.values() for kind in QUEUES]
        self._handles += [(number, FQ) for number in self._radio.values()]
        self._queues = self._scheduler.queues(self._handles)
        self._meter_mbps: dict[str, float | None] = {}
        self._tiers: dict[str, dict[str, int]] = {}
        self._sampled = time.monotonic()

    def begin(self, zero_s: float) -> None:
        """Begin the first sampling interval. It begins at `zero_s` of the monotonic clock."""
        self._sampled = zero_s

    def close(self) -> None:
        """Close the netlink sockets.

        An open socket in a host's network namespace would keep the namespace and its radio alive.
        """
        for diagnosis in self._diagnoses.values():
            diagnosis.close()
        self._scheduler.close()

    def frame(self, t: float, late_s: float) -> tuple[Frame, list[str]]:
        """Take a sample at time `t` of the run; return the sample and new reasons for overload.

        `late_s` is how much later than planned the sample is taken. A reason is a text that says
        why the machine is too slow.
        """
        now = time.monotonic()
        elapsed_s, self._sampled = now - self._sampled, now
        found = {host: diagnosis.sockets() for host, diagnosis in self._diagnoses.items()}
        self.sampler.take(_of(self.topology.ids("server"), found), _of(self.topology.users, found))
        hosts = self.sampler.sample(elapsed_s, self.receiving(), self._tiers)
        queues = self._scheduler.queues(self._handles)
        links = {trunk.link: self._link(trunk, queues, elapsed_s) for trunk in self._trunks}
        reasons = self.watchdog.sample(t, late_s, self.links.lag_ms(queues, self._radio))
        self._queues = queues
        occupancy = self.ap_agent.occupancy(self._tiers) if self.ap_agent else {}
        aps = {
            cell.ap: self._ap(cell, hosts.tier_mbps.get(cell.ap, {}), occupancy)
            for cell in self.topology.cells
        }
        users = {user: self._placed(user, each) for user, each in hosts.users.items()}
        interval_s = round(elapsed_s, 4)
        return Frame(round(t, 3), aps, links, users, hosts.subflows, interval_s), reasons

    def _placed(self, user: str, sample: UserSample) -> UserSample:
        if user not in self.places:
            return sample
        x_m, y_m = self.places[user]
        return replace(sample, x_m=round(x_m, 2), y_m=round(y_m, 2))

    def receiving(self) -> dict[str, dict[str, Any]]:
        """Return the status of every flow at its receiver, by the flow's ID."""
        answers = self.programs.send_all({host: {"do": "status"} for host in self._diagnoses})
        found = sampler.receivers(answers.values())
        self.sampler.collect(found)
        return found

    def heard(self, lines: Iterable[Line]) -> None:
        """Store what POX has reported: users' tiers, access points' limits and subflows' paths."""
        for line in lines:
            if isinstance(line, Observed):
                self._tiers = self._tiers if line.tiers is None else line.tiers
                self._meter_mbps |= line.meters_mbps
            elif isinstance(line, SubflowSeen):
                path = tuple(line.fields["path"])
                self.sampler.routed(line.destination, line.fields["subflow"], path)
            elif isinstance(line, Decided) and line.meter:
                ap, mbps = line.meter
                self._meter_mbps[ap] = mbps

    def _ap(
        self, cell: Cell, tier_mbps: Mapping[int, float], occupancy: Mapping[str, float]
    ) -> ApSample:
        measured = occupancy.get(cell.ap)
        meter_mbps = self._meter_mbps.get(cell.ap)
        return ApSample(
            tier_mbps.get(1, 0.0),
            tier_mbps.get(2, 0.0),
            None if measured is None else round(measured, 4),
            None if meter_mbps is None else meter_mbps * self.rate_scale,
            self._stations.count(cell.ap),
        )

    def _link(
        self, trunk: Trunk, queues: Mapping[tuple[int, int], netlink.Queue], elapsed_s: float
    ) -> LinkSample:
        """Return the traffic on a trunk (a link between two switches) since the last sample.

        The result is empty for a trunk without shaping, which has no queue to read.
        """
        ab, ba = (self._direction(port, queues, elapsed_s) for port in (trunk.a_port, trunk.b_port))
        return LinkSample.of(ab, ba) if ab and ba else LinkSample()

    def _direction(
        self, port: str, queues: Mapping[tuple[int, int], netlink.Queue], elapsed_s: float
    ) -> Direction | None:
        """Return what a port has sent since the last sample; None if it has no queue."""
        sent, waiting = ((self._device[port], kind) for kind in QUEUES)
        now, before, queue = queues.get(sent), self._queues.get(sent), queues.get(waiting)
        if now is None or before is None or queue is None:
            return None
        return Direction.of(
            now.sent_bytes - before.sent_bytes,
            now.sent_packets - before.sent_packets,
            now.drops - before.drops,
            queue.backlog_packets,
            elapsed_s,
        )


def _of(hosts: Iterable[str], sockets: Mapping[str, Iterable[TcpSocket]]) -> list[TcpSocket]:
    return [each for host in hosts for each in sockets.get(host, ())]
