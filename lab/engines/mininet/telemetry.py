"""One frame per sample, put together from everything that can be read without starting a process."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lab.engines.mininet.ap_agent_process import Agents
from lab.engines.mininet.kernel import netlink
from lab.engines.mininet.kernel.shaping import FQ, NETEM
from lab.engines.mininet.network.links import Links
from lab.engines.mininet.network.network import Network
from lab.engines.mininet.sampler import Sampler
from lab.engines.mininet.traffic_processes import TrafficProcesses
from lab.engines.mininet.watchdog import Watchdog
from lab.radio.cell import Cell
from lab.run.frame import ApSample, Direction, Frame, LinkSample
from lab.run.reading import Follower
from lab.topologies.topology import Topology, Trunk, Wiring


class Telemetry:
    """Reads sockets, queues, POX's decisions and the agents' reports; keeps what it saw last to difference it."""

    def __init__(
        self,
        topology: Topology,
        wiring: Wiring,
        network: Network,
        programs: TrafficProcesses,
        links: Links,
        decisions: Path,
        rate_scale: float,
    ) -> None:
        self.rate_scale = rate_scale  # decisions are written in the scenario's units
        self.topology, self.wiring, self.programs, self.links = topology, wiring, programs, links
        self.agents: Agents | None = None
        self.sampler, self.watchdog = Sampler(wiring), Watchdog()
        # a netlink socket stays in the namespace it was opened in; the first question makes the kernel load a module
        self._diagnoses = {
            host: netlink.inside(network.pid(host), netlink.Diagnosis) for host in programs.hosts
        }
        for diagnosis in self._diagnoses.values():
            diagnosis.sockets()
        self._scheduler = netlink.Scheduler()
        self._device = {
            port: self._scheduler.index(port)
            for trunk in wiring.trunks
            for port in (trunk.a_port, trunk.b_port)
        }
        self._radio = {ap: self._scheduler.index(f"{ap}-wlan1") for ap in links.cells}
        self._watched = [(number, NETEM) for number in self._device.values()] + [
            (number, FQ) for number in self._radio.values()
        ]
        self._queues = self._scheduler.queues(self._watched)
        self._decisions = Follower(decisions)
        self._meter: dict[str, float | None] = {}
        self._tiers: dict[str, dict[str, int]] = {}
        self._sampled = time.monotonic()

    def begin(self) -> None:
        """t = 0: rates count from here, and what was decided before has been read."""
        self._read_decisions()
        self._sampled = time.monotonic()

    def close(self) -> None:
        """Let go of the hosts' namespaces: each would live, with its radios, as long as a socket in it."""
        for diagnosis in self._diagnoses.values():
            diagnosis.close()
        self._scheduler.close()

    def frame(self, t: float, late_s: float) -> tuple[Frame, list[str]]:
        """Return the frame at `t`, and the reasons for overload that are new with it."""
        self._read_decisions()
        now = time.monotonic()
        elapsed_s, self._sampled = now - self._sampled, now
        found = {host: diagnosis.sockets() for host, diagnosis in self._diagnoses.items()}
        of = {
            kind: [each for host in self.topology.ids(kind) for each in found.get(host, ())]
            for kind in ("server", "user")
        }
        self.sampler.take(of["server"], of["user"])
        hosts = self.sampler.sample(elapsed_s, self.receiving(), self._tiers)
        queues = self._scheduler.queues(self._watched)
        links = {trunk.link: self._link(trunk, queues, elapsed_s) for trunk in self.wiring.trunks}
        wrong = self.watchdog.look(t, late_s, self.links.lag_ms(queues, self._radio))
        self._queues = queues
        occupancy = self.agents.occupancy(self._tiers) if self.agents else {}
        aps = {
            cell.ap: self._ap(cell, hosts.tier_mbps.get(cell.ap, {}), occupancy)
            for cell in self.topology.cells
        }
        return Frame(round(t, 3), aps, links, hosts.users, hosts.subflows), wrong

    def receiving(self) -> dict[str, Any]:
        """Every flow's status at the end that receives."""
        answers = self.programs.send_all({host: {"do": "status"} for host in self._diagnoses})
        return {
            name: flow
            for answer in answers.values()
            for name, flow in answer["flows"].items()
            if not flow["sends"]
        }

    def _read_decisions(self) -> None:
        for line in self._decisions.new():
            if line["kind"] == "observation":
                self._tiers = line.get("tiers", self._tiers)
                self._meter |= {
                    ap: row.get("meter_mbps") for ap, row in line.get("aps", {}).items()
                }
            elif line["kind"] == "subflow":
                address, port = line["destination"].rsplit(":", 1)
                self.sampler.routed((address, int(port)), line["subflow"], tuple(line["path"]))
            elif line["kind"] == "decision" and "meter_mbps" in line:
                self._meter[line["ap"]] = line["meter_mbps"]

    def _ap(
        self, cell: Cell, tier_mbps: Mapping[int, float], occupancy: Mapping[str, float]
    ) -> ApSample:
        measured = occupancy.get(cell.ap)
        meter_mbps = self._meter.get(cell.ap)
        return ApSample(
            tier_mbps.get(1, 0.0),
            tier_mbps.get(2, 0.0),
            None if measured is None else round(measured, 4),
            None if meter_mbps is None else meter_mbps * self.rate_scale,
            len(cell.stations),
        )

    def _link(
        self, trunk: Trunk, queues: Mapping[tuple[int, int], netlink.Queue], elapsed_s: float
    ) -> LinkSample:
        """Return what a shaped trunk carried; an unshaped one has no queue to read."""
        ab, ba = (self._direction(port, queues, elapsed_s) for port in (trunk.a_port, trunk.b_port))
        return LinkSample.of(ab, ba) if ab and ba else LinkSample()

    def _direction(
        self, port: str, queues: Mapping[tuple[int, int], netlink.Queue], elapsed_s: float
    ) -> Direction | None:
        """Return what left a port since the last sample; None without a queue."""
        key = (self._device[port], NETEM)
        now, before = queues.get(key), self._queues.get(key)
        if now is None or before is None:
            return None
        return Direction.of(
            now.sent_bytes - before.sent_bytes,
            now.sent_packets - before.sent_packets,
            now.drops - before.drops,
            now.backlog_packets,
            elapsed_s,
        )
