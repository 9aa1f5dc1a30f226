"""The controller at work: a tick four times a second, and a step of control whenever one is due.

1) a step is due, and the bridges are there: ask them for their counters
2) all have answered, or a second has passed: observe, decide, carry out, write down
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from controller import lines
from controller.command import Throttle, Unthrottle
from controller.control import Control, Step
from controller.errors import ControllerError
from controller.messages import InboxMessage, LinkFlip, ParamsFlip, StrategyFlip, ap_report
from controller.plan import Plan
from controller.pox_ext import openflow13 as of13
from controller.pox_ext.counters import Counters
from controller.pox_ext.forwarding import Forwarding
from controller.pox_ext.frames import Ip
from controller.pox_ext.hosts import Hosts
from controller.pox_ext.meters import Meters
from controller.pox_ext.observer import Observer
from controller.pox_ext.of13 import Channel
from controller.pox_ext.router import Router
from controller.pox_ext.run_folder import RunFolder
from controller.pox_ext.statistics import Tables
from controller.pox_ext.tracker import FellBack, Joined, Tracker

TICK_S = 0.25
ANSWERS_WITHIN_S = 1.0
PATIENCE_S = 10.0
MOST_WARNINGS = 500


class Session:
    """Joins the brain to the network; everything but the statistics file happens in POX's own thread."""

    def __init__(
        self,
        plan: Plan,
        control: Control,
        folder: RunFolder,
        nexus: Any,
        put: Callable[[Tables], None],
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._plan, self._control, self._folder, self._put, self._patience_s = plan, control, folder, put, patience_s
        self._hosts = Hosts(plan)
        self._router = Router(plan, self._hosts)
        self._tracker = Tracker()
        self._forwarding = Forwarding(nexus, plan, self._hosts, self._router, self._saw, self._switch_changed)
        self._meters = Meters(self._counted, lambda switch: self._part_ready(switch, "table 0"))
        self._observer = Observer(plan, self._hosts, self._router, self._tracker, self._meters)
        self._counters = Counters(self._forwarding.ports)
        self._ready: dict[str, set[str]] = {switch: set() for switch in plan.switches}
        self._started_s = time.monotonic()
        self._said: set[str] = set()
        self._unanswered = 0
        self._asked_s: float | None = None

    # --- what comes in

    def datagram(self, data: bytes) -> None:
        """A report of an agent."""
        try:
            self._observer.report(ap_report(data))
        except ValueError as error:
            self.warn(str(error))

    def channel_up(self, channel: Channel) -> None:
        switch = self._plan.names.get(channel.dpid or 0)
        if switch is not None:
            self._meters.connected(switch, channel)

    def channel_down(self, channel: Channel) -> None:
        switch = self._plan.names.get(channel.dpid or 0)
        if switch is not None:
            self._meters.lost(switch, channel)
            self._part_lost(switch, "table 0")

    def warn(self, text: str) -> None:
        """Say something once; garbage without end is not written down without end."""
        if text not in self._said and len(self._said) < MOST_WARNINGS:
            self._said.add(text)
            self._folder.write({"kind": "warning", "text": text})

    def restore(self, tables: Tables) -> None:
        """Take over the subflows that an earlier controller of this run has seen."""
        for document in tables.get("subflows", []):
            joined = self._counters.joined(document)
            self._tracker.restore(joined)
            self._router.route(joined.flow)
            self._router.route(joined.flow.back())

    def _saw(self, packet: Ip) -> None:
        news = self._tracker.saw(packet)
        if isinstance(news, Joined):
            self._folder.write(lines.subflow_line(self._observer.subflow(news), news.backup))
        elif isinstance(news, FellBack):
            flow = news.flow
            self.warn(f"{flow.source} asked {flow.destination}:{flow.destination_port} for Multipath TCP and got plain TCP")

    def _counted(self, switch: str) -> list[str]:
        users = [user for user in self._plan.multipath if switch in self._plan.aps]
        return [address for user in users for address in self._hosts.at(user, switch)]

    # --- switches

    def _switch_changed(self, switch: str, what: str) -> None:
        if what == "ready":
            self._part_ready(switch, "table 1")
            return
        self._folder.write({"kind": "switch", "switch": switch, "state": what})
        if what == "lost":
            self._part_lost(switch, "table 1")

    def _part_ready(self, switch: str, part: str) -> None:
        complete = self._all_ready()
        self._ready[switch].add(part)
        if not complete and self._all_ready():
            self._folder.write({"kind": "ready", "switches": sorted(self._ready), "strategy": self._control.strategy.name})

    def _part_lost(self, switch: str, part: str) -> None:
        self._ready[switch].discard(part)

    def _all_ready(self) -> bool:
        return all(len(parts) == 2 for parts in self._ready.values())

    def _say_who_is_missing(self) -> None:
        for switch, parts in self._ready.items():
            if "table 1" not in parts:
                self.warn(f"switch {switch} has not connected to POX. Try: ovs-vsctl get-controller {switch}")
            elif "table 0" not in parts:
                self.warn(
                    f"switch {switch} has no OpenFlow 1.3 channel, so nothing is forwarded there. Try: ovs-vsctl set bridge {switch} "
                    f"protocols=OpenFlow10,OpenFlow13, and give it a second controller (docs/formats.md)"
                )

    # --- the loop

    def tick(self) -> None:
        """Four times a second."""
        for message in self._folder.messages():
            self._take(message)
        now_s = time.monotonic()
        late = now_s - self._started_s > self._patience_s
        if late and not self._all_ready():
            self._say_who_is_missing()
        if self._asked_s is None and (late or self._all_ready()) and self._control.due(time.monotonic_ns()):
            self._ask()  # 1
        elif self._asked_s is not None and (self._unanswered == 0 or now_s - self._asked_s > ANSWERS_WITHIN_S):
            self._step()  # 2

    def _take(self, message: InboxMessage | str) -> None:
        if isinstance(message, str):
            self.warn(message)
            return
        try:
            effect = self._apply(message)
        except ControllerError as error:
            self._folder.write({"kind": "warning", "seq": message.seq, "text": str(error)})
            return
        self._folder.write({"kind": "flip", "seq": message.seq, "what": message.kind, **effect})

    def _apply(self, message: InboxMessage) -> dict[str, Any]:
        if isinstance(message, ParamsFlip):
            self._control.change(message.value)
            return {"value": message.value}
        if isinstance(message, StrategyFlip):
            self._control.switch(message.value.name, message.value.params)
            return {"value": message.value.model_dump()}
        assert isinstance(message, LinkFlip)
        moved = self._forwarding.set_link(message.value.link, message.value.up)
        return {"value": message.value.model_dump(), "flows_moved": moved}

    def _ask(self) -> None:
        self._asked_s = time.monotonic()
        channels = self._meters.channels
        aps = [switch for switch in self._plan.aps if switch in channels]
        self._unanswered = len(aps) + 2 * len(channels)
        for switch in aps:
            self._meters.read(switch, self._answered)
        for switch, channel in channels.items():
            self._ask_counters(switch, channel)

    def _ask_counters(self, switch: str, channel: Channel) -> None:
        def with_ports(body: bytes | None) -> None:
            self._counters.take_ports(switch, of13.ports(body or b""))
            self._answered()

        def with_flows(body: bytes | None) -> None:
            self._counters.take_flows(switch, of13.flows(body or b""))
            self._answered()

        channel.ask(of13.ask_ports(), with_ports)
        channel.ask(of13.ask_flows(of13.PATHS_TABLE), with_flows)

    def _answered(self) -> None:
        self._unanswered -= 1
        if self._unanswered == 0 and self._asked_s is not None:
            self._step()

    def _step(self) -> None:
        self._asked_s = None
        step = self._control.step(self._observer.observe(time.monotonic_ns()))
        self._observer.tiers = step.seen.tiers
        self._folder.write(lines.observation_line(step))
        for decision in step.decisions:
            if isinstance(decision.command, Throttle | Unthrottle):
                self._meters.carry_out(decision.command)
            self._folder.write(lines.decision_line(step.strategy, decision))
        for text in step.refused:
            self.warn(text)
        for switch in self._plan.aps:
            self._meters.refresh(switch)
        self._put(self._tables(step))

    def _tables(self, step: Step) -> Tables:
        control = {"at": time.time(), "strategy": step.strategy, "params": self._control.params.model_dump()}
        subflows = [(each, self._observer.subflow(each)) for each in self._tracker.subflows()]
        return {"control": [control], "aps": self._counters.ap_documents(step), **self._counters.documents(subflows)}
