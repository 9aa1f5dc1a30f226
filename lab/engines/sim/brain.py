"""The controller inside the simulator: the same `Control` as in POX, stepped in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from controller import lines
from controller.command import Throttle, Unthrottle
from controller.control import Control
from controller.observation import AccessPoint, Association, Observation, Subflow, Tiers
from lab.engines.sim import layout as at
from lab.engines.sim.cells import Cells
from lab.engines.sim.network import Network
from lab.engines.sim.tables import DOWN
from lab.topology import Topology

Record = Callable[..., None]  # kind, then the fields of an event


class Brain:
    """Turns counters into an observation, and commands into meters; everything decided becomes an event."""

    def __init__(self, topology: Topology, network: Network, cells: Cells, control: Control, record: Record) -> None:
        self.topology, self.network, self.cells, self.control, self.record = topology, network, cells, control, record
        self.subflows: list[Subflow] = []
        self.tiers: Tiers = {}
        self.limits_bps: dict[str, int | None] = dict.fromkeys(network.tables.cells)
        self._occupancies: dict[str, list[float]] = {}
        self._passed = dict.fromkeys(network.tables.stations, 0)
        self._stepped_ns = 0

    def see(self, occupancies: Mapping[str, float]) -> None:
        """One look at the access points; a step takes the mean of all since the last one."""
        for ap, value in occupancies.items():
            self._occupancies.setdefault(ap, []).append(value)

    def step_if_due(self, now_ns: int) -> None:
        """Observe, decide, carry out, write down."""
        if not self.control.due(now_ns):
            return
        step = self.control.step(self._observe(now_ns))
        self.tiers = step.seen.tiers
        for line in (lines.observation_line(step), *(lines.decision_line(step.strategy, each) for each in step.decisions)):
            self.record(line.pop("kind"), **line)
        for decision in step.decisions:
            if isinstance(decision.command, Throttle | Unthrottle):
                self._carry_out(decision.command)
        for text in step.refused:
            self.record("warning", text=text)

    def _carry_out(self, command: Throttle | Unthrottle) -> None:
        rate_bps = command.rate_bps if isinstance(command, Throttle) else None
        named = command.addresses if isinstance(command, Throttle) else frozenset()
        users = [
            each.node for each in self.network.tables.wiring.interfaces if each.link == command.ap and each.address in named
        ]
        self.limits_bps[command.ap] = rate_bps
        self.network.set_meter(command.ap, users, rate_bps)

    def _observe(self, now_ns: int) -> Observation:
        associations = tuple(
            Association(user, ap, station.rate_bps, station.weight, (self.network.tables.wiring.at(user, ap).address,))
            for (ap, user), station in self.cells.stations.items()
        )
        carried_bps = self._carried_bps(now_ns)
        occupancies, self._occupancies = self._occupancies, {}
        aps = tuple(
            AccessPoint(
                cell.ap,
                cell.kind,
                cell.capacity_bps,
                mac_occupancy=_mean(occupancies.get(cell.ap, [])),
                tier2_bps=carried_bps.get(cell.ap),
                meter_bps=self.limits_bps[cell.ap],
            )
            for cell in self.topology.cells
        )
        return Observation(now_ns, aps, associations, frozenset(self.topology.multipath), tuple(self.subflows), self.tiers)

    def _carried_bps(self, now_ns: int) -> dict[str, int]:
        """What passed the place of the meter for Tier 2 since the last step, in bit/s of Ethernet frames."""
        elapsed_ns, self._stepped_ns = now_ns - self._stepped_ns, now_ns
        sums = dict.fromkeys(self.network.tables.cells, 0)
        for key in self._passed:
            ap, user, direction = key
            passed = self.network.station(*key, at.METER_PASSED_BYTES)
            if direction == DOWN and self.tiers.get((user, ap), 1) == 2:
                sums[ap] += passed - self._passed[key]
            self._passed[key] = passed
        return {ap: passed * 8 * at.NS_PER_S // elapsed_ns for ap, passed in sums.items()} if elapsed_ns else {}


def control_for(strategy: str, params: Mapping[str, Any]) -> Control:
    """The brain with the strategy of a scenario."""
    return Control(strategy, dict(params))


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None
