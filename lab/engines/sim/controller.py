"""Run the controller inside the simulator: the same class `Control` as in POX, in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Collection

from controller import decision_log
from controller.command import Command, Expect, Route, SetBackup, Throttle, Unthrottle
from controller.control import Control, Step
from controller.observation import SubflowKey, Tiers
from lab.engines.sim.core import layout as at
from lab.engines.sim.observer import Observer
from lab.engines.sim.wireless import Wireless

Logged = tuple[tuple[str, ...], bool, int | None]  # path, backup flag, expected rate in bit/s
RecordEvent = Callable[..., None]  # kind, then the fields of an event


class SimController:
    """Take the control steps when they are due, execute the commands of the strategy, and record
    its decisions.

    `tiers` has the tier (1 or 2) of each user at each access point. `limits_bps` has the Tier 2
    limit of each access point in bit/s, None where there is no limit.
    """

    def __init__(
        self, wireless: Wireless, observer: Observer, control: Control, record: RecordEvent
    ) -> None:
        self.wireless, self.network = wireless, wireless.network
        self.observer, self.control, self.record = observer, control, record
        self.tiers: Tiers = {}
        self.limits_bps: dict[str, int | None] = dict.fromkeys(self.network.tables.cells)
        self._tier1_demands_bps: dict[str, int | None] = {}
        self._known: dict[SubflowKey, Logged] = {}

    def step_if_due(self, now_ns: int) -> None:
        """Record the subflows that are new or have changed since the last call. Then, if a control
        step is due, observe the network, let the strategy decide, record and execute its decisions,
        and record the subflows that these have changed."""
        self._update_subflows(self.observer.active_subflows())
        if not self.control.due(now_ns):
            return
        step = self.control.step(self.observer.observe(now_ns, self.tiers, self.limits_bps))
        self.tiers = step.observation.tiers
        self._record(step)
        for decision in step.decisions:
            if decision.command is not None:
                self._execute(decision.command)
        for text in step.refused:
            self.record("warning", text=text)
        for ap in self._tier1_demands_bps:
            self._meter_tier1(ap)
        self._update_subflows(self.observer.active_subflows())

    def set_tier1_demand(self, ap: str, rate_bps: int | None) -> None:
        """Limit the data of all Tier 1 users of access point `ap` together to `rate_bps`, with the
        second meter of its switch. None removes the limit."""
        self._tier1_demands_bps[ap] = rate_bps
        self._meter_tier1(ap)

    def hand_over(self, user: str, old: str, new: str) -> None:
        """Give a user at access point `new` the tier that it had at `old`. The next control step
        may change it."""
        self.tiers = {
            (each, new if (each, ap) == (user, old) else ap): tier
            for (each, ap), tier in self.tiers.items()
        }

    def _record(self, step: Step) -> None:
        """Record the observation of a control step as an event, then each decision of the step."""
        scale = step.observation.rate_scale
        lines = [decision_log.decision_line(step.strategy, each, scale) for each in step.decisions]
        for line in (decision_log.observation_line(step), *lines):
            self.record(line.pop("kind"), **line)

    def _meter_tier1(self, ap: str) -> None:
        here = (each.node for each in self.network.tables.wiring.interfaces if each.link == ap)
        users = [user for user in here if self.tiers.get((user, ap), 1) == 1]
        self.wireless.set_meter(ap, users, self._tier1_demands_bps[ap], at.DEMAND_METER)

    def _update_subflows(self, active: Collection[SubflowKey]) -> None:
        """Record each subflow of `active` that is new, or whose path, backup flag or expected rate
        has changed, as an event. If a subflow is new or has ended, wake the controller: a strategy
        that reacts to such a change then decides now, not at the end of its period."""
        known: dict[SubflowKey, Logged] = {}
        for key in sorted(active):
            subflow = self.observer.subflow(key, self.tiers)
            known[key] = (subflow.path, subflow.backup, subflow.expected_bps)
            if self._known.get(key) != known[key]:
                line = decision_log.subflow_line(subflow, self.control.rate_scale)
                self.record(line.pop("kind"), **line)
        if self._known.keys() != known.keys():
            self.control.wake()
        self._known = known

    def _execute(self, command: Command) -> None:
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
                users = [each.node for each in here if addresses & {each.address, *each.further}]
                self._meter_tier2(ap, users, rate_bps)
            case Unthrottle(ap):
                self._meter_tier2(ap, [], None)

    def _meter_tier2(self, ap: str, users: list[str], rate_bps: int | None) -> None:
        self.limits_bps[ap] = rate_bps
        self.wireless.set_meter(ap, users, rate_bps)
