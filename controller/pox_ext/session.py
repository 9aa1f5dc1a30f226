"""Run the controller: a tick four times a second, and a control step whenever one is due.

1) When a step is due and the switches are connected, request their counters.
2) When all have replied, or after a second: observe the network, let the strategy decide, carry out
   its commands, and write the decision log and the statistics.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from controller import decision_log as lines
from controller.agent_messages import (
    InboxMessage,
    LinkFlip,
    LinkState,
    ParamsFlip,
    StepsFlip,
    StrategyFlip,
    Tier1Flip,
    read_ap_report,
)
from controller.command import Command, Expect, Route, SetBackup, Throttle, Unthrottle
from controller.control import Control, Step
from controller.errors import ControllerError, StrategyFailed, UserFileRefused
from controller.pox_ext import openflow13_messages as messages
from controller.pox_ext.counters import Counters
from controller.pox_ext.forwarding import Forwarding
from controller.pox_ext.frames import Ip
from controller.pox_ext.host_agents import Address, HostChannel, HostCommands, HostReports
from controller.pox_ext.hosts import Hosts
from controller.pox_ext.meters import Meters
from controller.pox_ext.observer import Handovers, Observer
from controller.pox_ext.openflow13_channel import Channel
from controller.pox_ext.router import Router
from controller.pox_ext.run_folder import RunFolder, Unreadable
from controller.pox_ext.statistics import Tables
from controller.pox_ext.subflow_lifecycle import SubflowLifecycle
from controller.pox_ext.switches import Switches
from controller.pox_ext.tracker import Tracker
from controller.strategies import from_file
from controller.topology import Topology

TICK_S = 0.25
HOST_CHECK_S = 1.0  # between two checks of what hosts confirm, if no step is made
PATIENCE_S = 10.0  # for switches and hosts to connect
MOST_WARNINGS = 500


def register_copy(path: str, copy: str | None) -> None:
    """Register the strategy of the file `path`, but run the content of the file `copy`.

    If `copy` is None, the file `path` itself runs. Raise `UserFileRefused` as `from_file.register`
    does, or if the copy cannot be read.
    """
    try:
        source = None if copy is None else Path(copy).read_bytes()
    except OSError as error:
        raise UserFileRefused(f"import {path}: read its copy {copy}: {error.strerror}") from error
    from_file.register(path, source)


class Session:
    """The running controller: it passes reports, events and commands between its parts.

    Everything but the writing of the statistics file runs in POX's own thread.
    """

    def __init__(
        self,
        network: Topology,
        control: Control,
        folder: RunFolder,
        nexus: Any,
        put: Callable[[Tables], None],
        patience_s: float = PATIENCE_S,
        hosts: HostChannel | None = None,
    ) -> None:
        self._network, self._control, self._folder = network, control, folder
        self._put, self._patience_s = put, patience_s
        self._started_s = time.monotonic()
        self._warned: set[str] = set()
        self._host_check_due_s = 0.0
        self._failed = False  # a strategy raised an exception: no further step is made
        self._held = False  # the runner holds the control steps
        self._readiness = Readiness(network.switches)
        self._hosts = Hosts(network)
        self._router = Router(network, self._hosts)
        tracker, host_reports = Tracker(), HostReports()
        switches = Switches(nexus, network)
        self._counters = Counters(switches.ports, network.rate_scale)
        self._meters = Meters(network, self._hosts, self._table_0_ready)
        self._observer = Observer(
            network, self._hosts, self._router, tracker, self._meters, self._counters, host_reports
        )
        self._subflows = SubflowLifecycle(
            tracker,
            host_reports,
            self._observer,
            self._router,
            self._hosts,
            folder.write,
            control.wake,
            network.rate_scale,
        )
        self._channel = hosts or HostChannel()
        self._host_commands = HostCommands(
            self._channel.key,
            self._channel.send,
            self._hosts.owner,
            lambda: round(time.monotonic() * 1e3),  # also after a restart of POX
        )
        self._poll = CounterPoll(self._meters, self._counters, network.aps, self._step)
        self._forwarding = Forwarding(  # it listens to POX from here on
            nexus,
            network,
            switches,
            self._hosts,
            self._router,
            self._handle_syn,
            self._switch_changed,
            self._subflows.handle_idle_entry,
            self.warn,
        )
        self._handovers = Handovers(
            self._observer, self._router, self._meters, self._forwarding.reroute, folder.write
        )

    # Reports and connections

    def datagram(self, data: bytes, _sender: Address) -> None:
        """Handle a datagram from an AP agent; log a warning if it is not valid."""
        try:
            self._handovers.handle(read_ap_report(data, self._channel.key))
        except ValueError as error:
            self.warn(str(error))

    def host_datagram(self, data: bytes, sender: Address) -> None:
        """Handle a datagram from a host agent; log a warning if it is not valid."""
        try:
            self._subflows.handle_report(self._channel.report(data, sender))
        except ControllerError as error:
            self.warn(str(error))

    def channel_up(self, channel: Channel) -> None:
        """Set up table 0 and the meters of a switch that has connected with OpenFlow 1.3."""
        switch = self._network.names.get(channel.dpid or 0)
        if switch is not None:
            self._meters.connected(switch, channel)

    def channel_down(self, channel: Channel) -> None:
        switch = self._network.names.get(channel.dpid or 0)
        if switch is not None:
            self._meters.lost(switch, channel)
            self._readiness.lost(switch, TABLE_0)

    def warn(self, text: str) -> None:
        """Log a warning, unless the same text was logged before. Log at most `MOST_WARNINGS`."""
        if text not in self._warned and len(self._warned) < MOST_WARNINGS:
            self._warned.add(text)
            self._folder.write({"kind": "warning", "text": text})

    def restore(self, tables: Tables) -> None:
        """Restore link settings and subflows from the statistics of an earlier controller."""
        for document in tables.get("links", []):
            self._link(LinkState.model_validate(document).scaled(self._network.rate_scale))
        self._subflows.restore(tables.get("subflows", []))

    def _handle_syn(self, packet: Ip) -> None:
        fallback = self._subflows.handle_syn(packet)
        if fallback is not None:
            flow = fallback.joined.flow
            server = f"{flow.destination}:{flow.destination_port}"
            self.warn(f"{flow.source} requested Multipath TCP of {server} and got plain TCP")

    def _switch_changed(self, switch: str, state: str) -> None:
        if state == "ready":
            self._part_ready(switch, TABLE_1)
            return
        self._folder.write({"kind": "switch", "switch": switch, "state": state})
        if state == "lost":
            self._readiness.lost(switch, TABLE_1)

    def _table_0_ready(self, switch: str) -> None:
        self._part_ready(switch, TABLE_0)

    def _part_ready(self, switch: str, part: str) -> None:
        if self._readiness.ready(switch, part):
            switches = sorted(self._network.switches)
            self._folder.write(
                {"kind": "ready", "switches": switches, "strategy": self._control.strategy.name}
            )

    # The loop

    def tick(self) -> None:
        """Handle new messages, and start or finish a control step if it is time."""
        for message in self._folder.messages():
            self._handle_message(message)
        now_s = time.monotonic()
        self._forwarding.tick()
        if now_s >= self._host_check_due_s:
            self._command_hosts(now_s)
        late = self._late(now_s)
        for text in self._readiness.complaints() if late else ():
            self.warn(text)
        if self._poll.is_over(now_s):
            self._step()  # 2
        elif not self._poll.is_running and self._may_step(late):
            self._poll.start()  # 1

    def _may_step(self, late: bool) -> bool:
        may = (late or self._readiness.complete) and not (self._failed or self._held)
        return may and self._control.due(time.monotonic_ns())

    def _handle_message(self, message: InboxMessage | Unreadable) -> None:
        """Carry out a request of the runner, and write an answer to the decision log.

        The runner is the process that runs a scenario.
        """
        if isinstance(message, Unreadable):
            if message.seq is None:
                self.warn(message.why)
            else:
                self._folder.write(lines.refused_line(message.seq, message.why))
            return
        if isinstance(message, StepsFlip):
            self._held = message.value.held
            self._poll.end()  # a step that has begun is given up
            self._folder.write({"kind": "steps", "seq": message.seq, "held": self._held})
            return
        try:
            effect = self._apply(message)
        except ControllerError as error:
            self._folder.write(lines.refused_line(message.seq, str(error)))
            return
        self._folder.write(lines.applied_line(message.seq, message.kind, effect))

    def _apply(self, message: InboxMessage) -> dict[str, Any]:
        if isinstance(message, ParamsFlip):
            self._control.change(message.value)
            return {"value": message.value}
        if isinstance(message, StrategyFlip):
            if message.value.file is not None:
                register_copy(message.value.file, message.value.source)
            self._control.switch(message.value.name, message.value.params)
            return {"value": message.value.model_dump(exclude_none=True)}
        if isinstance(message, Tier1Flip):
            return {"value": message.value.limit(self._network, self._meters.limit_tier1)}
        assert isinstance(message, LinkFlip)
        return {
            "value": message.value.scaled(1 / self._network.rate_scale).model_dump(
                exclude_none=True
            ),
            "flows_moved": self._link(message.value),
        }

    def _link(self, state: LinkState) -> int | None:
        """Apply new settings of a link; return how many flows move to other paths.

        Return None if `state.up` is None, or if the link does not join two switches.
        """
        self._observer.arcs.change_link(state)
        return None if state.up is None else self._forwarding.set_link(state.link, state.up)

    def _late(self, now_s: float) -> bool:
        return now_s - self._started_s > self._patience_s

    def _command_hosts(self, now_s: float) -> None:
        self._host_check_due_s = now_s + HOST_CHECK_S
        unreachable = self._host_commands.refresh(self._subflows.refresh(now_s), now_s)
        for host in unreachable if self._late(now_s) else ():
            self.warn(
                f"host {host}: no host agent reports, so its subflows get no backup flag and no "
                "pacing rate. See --key_file (docs/formats.md)"
            )

    def _step(self) -> None:
        self._poll.end()
        try:
            step = self._control.step(self._observer.observe(time.monotonic_ns()))
        except StrategyFailed as failure:
            self._failed = True
            self._folder.write(lines.failure_line(self._control.strategy.name, failure))
            return
        self._observer.tiers = step.observation.tiers
        scale = step.observation.rate_scale
        decisions = [lines.decision_line(step.strategy, each, scale) for each in step.decisions]
        self._folder.write(lines.observation_line(step), *decisions)
        for decision in step.decisions:
            if decision.command is not None:
                self._apply_command(decision.command)
        for text in step.refused:
            self.warn(text)
        for switch in self._network.aps:
            self._meters.refresh(switch, self._observer.tiers)
        self._command_hosts(time.monotonic())
        self._put(self._tables(step))

    def _apply_command(self, command: Command) -> None:
        match command:
            case Throttle() | Unthrottle():
                self._meters.apply(command)
            case Route(key, path):
                flow = self._subflows.flow(key)
                if flow is not None:
                    self._forwarding.pin(flow, path)
            case SetBackup(key, backup):
                self._host_commands.set_backup(key, backup)
            case Expect(key, rate_bps):
                self._host_commands.expect(key, rate_bps)

    def _tables(self, step: Step) -> Tables:
        params = self._control.params.model_dump()
        return {
            "control": [{"at": time.time(), "strategy": step.strategy, "params": params}],
            "aps": self._counters.ap_documents(step),
            "links": self._observer.arcs.documents(),
            **self._counters.documents(self._subflows.documents()),
        }


TABLE_0, TABLE_1 = "table 0", "table 1"


class Readiness:
    """Keeps track of which switches are ready: those with both flow tables written.

    Table 0 counts traffic and limits its rate; it is written with OpenFlow 1.3. Table 1 forwards
    packets and is written with OpenFlow 1.0.
    """

    def __init__(self, switches: Iterable[str]) -> None:
        self._parts: dict[str, set[str]] = {switch: set() for switch in switches}

    @property
    def complete(self) -> bool:
        return all(len(parts) == 2 for parts in self._parts.values())

    def ready(self, switch: str, part: str) -> bool:
        """Record that the table `part` of a switch is written.

        Return True if this was the last missing table of all switches.
        """
        before = self.complete
        self._parts[switch].add(part)
        return self.complete and not before

    def lost(self, switch: str, part: str) -> None:
        self._parts[switch].discard(part)

    def complaints(self) -> Iterator[str]:
        """Yield a warning, with advice, for each switch that is not ready."""
        for switch, parts in self._parts.items():
            if TABLE_1 not in parts:
                yield (
                    f"switch {switch} has not connected to POX. "
                    f"Try: ovs-vsctl get-controller {switch}"
                )
            elif TABLE_0 not in parts:
                yield (
                    f"switch {switch} has no OpenFlow 1.3 channel, so nothing is forwarded there. "
                    f"Try: ovs-vsctl set bridge {switch} protocols=OpenFlow10,OpenFlow13, "
                    "and give it a second controller (docs/formats.md)"
                )


REPLY_TIMEOUT_S = 1.0


class CounterPoll:
    """Requests the counters of all switches, and calls `done()` after the last reply.

    These are the counters of ports, of meters, and of the flow entries that forward a flow. `aps`
    names the access points; only they can have meters.
    """

    def __init__(
        self, meters: Meters, counters: Counters, aps: Iterable[str], done: Callable[[], None]
    ) -> None:
        self._meters, self._counters, self._aps, self._done = meters, counters, list(aps), done
        self._number = self._outstanding = 0
        self._started_s: float | None = None

    @property
    def is_running(self) -> bool:
        return self._started_s is not None

    def is_over(self, now_s: float) -> bool:
        """Return whether the present poll can end; False if no poll runs.

        A poll can end when all replies have come, or after `REPLY_TIMEOUT_S`.
        """
        if self._started_s is None:
            return False
        return self._outstanding == 0 or now_s - self._started_s > REPLY_TIMEOUT_S

    def start(self) -> None:
        self._started_s = time.monotonic()
        self._number += 1
        replied = partial(self._replied, self._number)
        channels = self._meters.channels
        aps = [switch for switch in self._aps if switch in channels]
        self._outstanding = len(aps) + 2 * len(channels)
        for switch in aps:
            self._meters.read(switch, replied)
        for switch, channel in channels.items():
            self._request(switch, channel, replied)

    def end(self) -> None:
        """Stop waiting for replies; a later reply still updates the counters."""
        self._started_s = None

    def _request(self, switch: str, channel: Channel, replied: Callable[[], None]) -> None:
        def with_ports(body: bytes | None) -> None:
            self._counters.take_ports(switch, messages.ports(body or b""))
            replied()

        def with_flows(body: bytes | None) -> None:
            self._counters.take_flows(switch, messages.flow_counts(body or b""))
            replied()

        channel.request(messages.port_stats_request(), with_ports)
        channel.request(messages.flow_stats_request(messages.PATHS_TABLE), with_flows)

    def _replied(self, number: int) -> None:
        if number != self._number:
            return  # it answers an earlier poll
        self._outstanding -= 1
        if self._outstanding == 0 and self.is_running:
            self._done()
