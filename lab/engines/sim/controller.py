"""The controller inside the simulator: the same `Control` as in POX, stepped in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Collection

from controller import decision_log as lines
from controller.command import Command, Expect, Route, SetBackup, Throttle, Unthrottle
from controller.control import Control
from controller.observation import SubflowKey, Tiers
from lab.engines.sim.core import layout as at
from lab.engines.sim.network import Network
from lab.engines.sim.observer import Observer

Record = Callable[..., None]  # kind, then the fields of an event


class Brain:
    """Asks the strategy when it is time and carries out what it says; everything decided becomes an event."""

    def __init__(
        self, network: Network, observer: Observer, control: Control, record: Record
    ) -> None:
        self.network, self.observer, self.control, self.record = network, observer, control, record
        self.tiers: Tiers = {}
        self.limits_bps: dict[str, int | None] = dict.fromkeys(network.tables.cells)
        self.demands_bps: dict[str, int | None] = {}  # of all Tier 1 of an access point
        self._known: set[SubflowKey] = set()

    def step_if_due(self, now_ns: int) -> None:
        """Observe, decide, carry out, write down."""
        self._meet(self.observer.alive())
        if not self.control.due(now_ns):
            return
        step = self.control.step(self.observer.observe(now_ns, self.tiers, self.limits_bps))
        self.tiers = step.observation.tiers
        for line in (
            lines.observation_line(step),
            *(
                lines.decision_line(step.strategy, each, step.observation.rate_scale)
                for each in step.decisions
            ),
        ):
            self.record(line.pop("kind"), **line)
        for decision in step.decisions:
            if decision.command is not None:
                self._carry_out(decision.command)
        for text in step.refused:
            self.record("warning", text=text)
        for ap in self.demands_bps:
            self._meter_demand(ap)

    def demand(self, ap: str, rate_bps: int | None) -> None:
        """Tier 1 of an access point asks for no more than this from now on: the switch's second meter; None: for all there is."""
        self.demands_bps[ap] = rate_bps
        self._meter_demand(ap)

    def hand_over(self, user: str, old: str, new: str) -> None:
        """Until tiers are chosen again, the association at another access point is what the old one was."""
        self.tiers = {
            (who, new if (who, ap) == (user, old) else ap): tier
            for (who, ap), tier in self.tiers.items()
        }

    def _meter_demand(self, ap: str) -> None:
        here = (each.node for each in self.network.tables.wiring.interfaces if each.link == ap)
        primary = [user for user in here if self.tiers.get((user, ap), 1) == 1]
        self.network.set_meter(ap, primary, self.demands_bps[ap], at.DEMAND_METER)

    def _meet(self, alive: Collection[SubflowKey]) -> None:
        """A strategy may want to know at once that subflows came or went."""
        for key in sorted(set(alive) - self._known):
            line = lines.subflow_line(
                self.observer.subflow(key, self.tiers), self.control.rate_scale
            )
            self.record(line.pop("kind"), **line)
        if self._known != set(alive):
            self._known = set(alive)
            self.control.wake()

    def _carry_out(self, command: Command) -> None:
        network = self.network
        match command:
            case Route(key, path):
                network.route(network.subflow(key), path)
            case Expect(key, rate_bps):
                network.expect(network.subflow(key), rate_bps)
            case SetBackup(key, backup):
                network.set_backup(network.subflow(key), backup)
            case Throttle(ap, addresses, rate_bps):
                here = [each for each in network.tables.wiring.interfaces if each.link == ap]
                self._meter(
                    ap,
                    [each.node for each in here if addresses & {each.address, *each.further}],
                    rate_bps,
                )
            case Unthrottle(ap):
                self._meter(ap, [], None)

    def _meter(self, ap: str, users: list[str], rate_bps: int | None) -> None:
        self.limits_bps[ap] = rate_bps
        self.network.set_meter(ap, users, rate_bps)
