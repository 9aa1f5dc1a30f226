"""Exchange datagrams with host agents, the programs of the lab that run on the hosts.

`HostChannel` carries the datagrams, `HostReports` stores the reports of the agents, and
`HostCommands` sends them the settings that strategies choose.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from controller import host_messages
from controller.host_messages import (
    NO_TOKEN,
    HostCommand,
    HostReport,
    SubflowChange,
    SubflowState,
    encode,
)
from controller.observation import Subflow, SubflowKey
from controller.paths import Flow
from controller.pox_ext.tracker import PLAIN
from controller.units import bps_from_mbps, mbps_from_bps

Address = tuple[str, int]


class HostChannel:
    """Reads the reports of host agents and sends datagrams to host agents.

    A host agent is a program on a host. Datagrams to an agent go to the address from which its
    latest report came. `key` is the secret that agents and controller share. `send(datagram,
    address)` must transmit the datagram; the default transmits nothing.
    """

    def __init__(
        self, key: str = "", send: Callable[[bytes, Address], None] = lambda *_: None
    ) -> None:
        self.key, self._send = key, send
        self._addresses: dict[str, Address] = {}

    def report(self, data: bytes, sender: Address) -> HostReport:
        """Parse the report of a host agent, and store the address of the sender.

        Raise `MessageRefused` if the report is not valid.
        """
        report = host_messages.read_report(data, self.key)
        self._addresses[report.host] = sender
        return report

    def send(self, host: str, data: bytes) -> bool:
        """Send `data` to the agent on `host`.

        Return False, and send nothing, if the agent has not sent a report yet.
        """
        address = self._addresses.get(host)
        if address is not None:
            self._send(data, address)
        return address is not None


TCP = 6
# A new subflow appears in the reports of its hosts within this time; slow hosts report late.
MISSING_AFTER_S, MISSING_AFTER_REPORTS = 5.0, 4


@dataclass(frozen=True)
class Confirmed:
    """The settings of a subflow that the reports of its two hosts confirm.

    A setting that is not confirmed is None. `backup` comes from the server's report. The user's
    host sends the backup flag (MP_PRIO), so its own report would only show that the flag was sent.
    `expected_bps` is the pacing rate, if all hosts that report the subflow report the same rate.
    `retransmitted_packets` is the sum over both hosts.
    """

    backup: bool | None = None
    expected_bps: int | None = None
    retransmitted_packets: int | None = None


class HostReports:
    """The latest report of every host agent."""

    def __init__(self) -> None:
        self._latest: dict[str, HostReport] = {}
        self._states: dict[tuple[str, str], SubflowState] = {}
        self._report_counts: Counter[str | None] = Counter()
        self._unreported_since: dict[Flow, tuple[float, int]] = {}

    def add(self, report: HostReport) -> bool:
        """Store a report.

        Return False, and store nothing, if `seq` shows that the report is not newer than the stored
        one.
        """
        before = self._latest.get(report.host)
        if before is not None and report.seq <= before.seq:
            return False
        self._report_counts[report.host] += 1
        for state in before.subflows if before else ():
            self._states.pop((state.local, state.remote), None)
        self._latest[report.host] = report
        self._states |= {(state.local, state.remote): state for state in report.subflows}
        return True

    def confirmed(self, to_user: Flow) -> Confirmed:
        """Return the settings of a subflow that its hosts confirm.

        `to_user` is the 5-tuple of the subflow in the direction from the server to the user. Every
        setting is None if no host reports the subflow.
        """
        source, destination = ends(to_user)
        server, user = (
            self._states.get((source, destination)),
            self._states.get((destination, source)),
        )
        both = [state for state in (server, user) if state is not None]
        if not both:
            return Confirmed()
        rates = {state.expected_mbps for state in both}
        expected_mbps = rates.pop() if len(rates) == 1 else None
        return Confirmed(
            backup=(server or both[0]).backup,
            expected_bps=None if expected_mbps is None else bps_from_mbps(expected_mbps),
            retransmitted_packets=sum(state.retransmitted_packets for state in both),
        )

    def loss(self, address: str) -> float | None:
        """Return the reported loss on the path to `address`, a fraction; None without a report."""
        return next(
            (report.loss[address] for report in self._latest.values() if address in report.loss),
            None,
        )

    def reports_any(self, hosts: Iterable[str | None]) -> bool:
        return any(host in self._latest for host in hosts)

    def is_over(self, to_user: Flow, hosts: Iterable[str | None], now_s: float) -> bool:
        """Return whether a subflow has ended: its hosts send reports, but these do not list it.

        `to_user` is the 5-tuple of the subflow in the direction to the user. `hosts` are the two
        hosts at its ends. If neither of them sends reports, the result is False.

        A subflow that no report has listed yet may be a new one. It counts as ended only after
        `MISSING_AFTER_S` seconds in which at least `MISSING_AFTER_REPORTS` reports have come.
        """
        ends_of = set(hosts)
        if not self.reports_any(ends_of):
            return False
        reports = sum(self._report_counts[host] for host in ends_of)
        if any(each in self._states for each in (ends(to_user), ends(to_user)[::-1])):
            self._unreported_since[to_user] = (
                now_s - 2 * MISSING_AFTER_S,
                reports - MISSING_AFTER_REPORTS,
            )
            return False
        since_s, before = self._unreported_since.setdefault(to_user, (now_s, reports))
        return now_s - since_s > MISSING_AFTER_S and reports - before >= MISSING_AFTER_REPORTS

    def forget(self, to_user: Flow) -> None:
        """Forget the subflow `to_user` after its end."""
        self._unreported_since.pop(to_user, None)

    def subflows_at(self, host: str) -> Iterator[tuple[str | None, Flow]]:
        """Yield the MPTCP token and the 5-tuple of each subflow in the latest report of `host`.

        The token is None for a connection without MPTCP. `host` is the source of the 5-tuple. A
        restarted controller learns from these reports which subflows exist.
        """
        for state in self._latest[host].subflows if host in self._latest else ():
            (source, source_port), (destination, port) = (
                end.rsplit(":", 1) for end in (state.local, state.remote)
            )
            token = None if state.token == NO_TOKEN else state.token
            yield token, Flow(source, destination, TCP, int(source_port), int(port))


def ends(flow: Flow) -> tuple[str, str]:
    """Return the source and the destination of a flow, each as `address:port`."""
    return f"{flow.source}:{flow.source_port}", f"{flow.destination}:{flow.destination_port}"


# Commands to hosts
#
# A command contains the settings (backup flag or pacing rate of a subflow) of a connection that
# reports do not confirm yet. It is sent to both hosts of the connection, until they do.
#
# 1) When a strategy changes a setting, store the setting and make the command of its connection
#    due.
# 2) Repeat a command that is not confirmed after `REPEAT_AFTER_S`. A confirmed setting stays
#    stored, so that the command is sent again if a host loses the setting. Commands that lower
#    the rate of a subflow are sent before those that raise one, so that no link is overloaded in
#    between.
# 3) Forget the settings of a connection that has ended.


REPEAT_AFTER_S = 1.0
RATE_TOLERANCE = 0.001
Send = Callable[[str, bytes], bool]


@dataclass(frozen=True)
class Desired:
    """The settings that strategies have chosen for a subflow.

    A setting is None if no strategy has chosen it. `rate_bps` is the pacing rate; 0 means that the
    subflow must not be paced.
    """

    backup: bool | None = None
    rate_bps: int | None = None

    def unconfirmed(self, subflow: Subflow) -> Desired:
        """Return the settings that the hosts have not confirmed yet.

        In the result, a setting is None if the hosts have confirmed it or if no strategy has chosen
        it.
        """
        is_confirmed = self.rate_bps is None or _is_same_rate(
            self.rate_bps, subflow.expected_bps or 0
        )
        return Desired(
            None if self.backup == subflow.backup else self.backup,
            None if is_confirmed else self.rate_bps,
        )


class HostCommands:
    """Sends the settings that strategies choose to the hosts, until the hosts confirm them."""

    def __init__(
        self, key: str, send: Send, host_of: Callable[[str], str | None], now_ms: Callable[[], int]
    ) -> None:
        """`send(host, datagram)` must return False if the host cannot be reached.

        `host_of(address)` returns the name of the host with this address. `now_ms()` returns the
        time of day in ms. The number of each command is at least this time, so that a restarted
        controller uses larger numbers than before.
        """
        self._key, self._send, self._host_of, self._now_ms = key, send, host_of, now_ms
        self._desired: dict[SubflowKey, Desired] = {}
        self._due_s: dict[str, float] = {}
        self._seq = 0

    def set_backup(self, key: SubflowKey, backup: bool) -> None:
        """Choose the backup flag of a subflow. The next `refresh` sends it to the hosts."""
        self._desire(key, replace(self._desired.get(key, Desired()), backup=backup))

    def expect(self, key: SubflowKey, rate_bps: int | None) -> None:
        """Choose the pacing rate of a subflow. The next `refresh` sends it to the hosts.

        None means that the subflow is not paced.
        """
        self._desire(key, replace(self._desired.get(key, Desired()), rate_bps=rate_bps or 0))

    def refresh(self, subflows: Iterable[Subflow], now_s: float) -> list[str]:
        """Send the commands that are due at `now_s`; return the hosts that cannot be reached.

        `subflows` must contain all open subflows. If a connection has no open subflow, its settings
        are forgotten.
        """
        connections: dict[str, list[Subflow]] = {}
        for each in subflows:
            connections.setdefault(each.connection, []).append(each)
        self._desired = {
            key: desired for key, desired in self._desired.items() if key[0] in connections
        }  # 3
        due = [self._due(found, now_s) for found in connections.values()]
        away = [
            host
            for rises in (False, True)
            for changes in due
            for host in self._command(
                {each: to for each, to in changes.items() if _rises(each, to) == rises}
            )
        ]
        return list(dict.fromkeys(away))

    def _desire(self, key: SubflowKey, desired: Desired) -> None:
        self._desired[key] = desired
        self._due_s.pop(key[0], None)  # 1

    def _due(self, subflows: list[Subflow], now_s: float) -> dict[Subflow, Desired]:
        """Return the settings that must be sent now, for the subflows of one connection.

        These are the settings that the hosts have not confirmed. The result is empty if settings of
        the connection were sent less than `REPEAT_AFTER_S` ago.
        """
        connection = subflows[0].connection
        changes = {
            each: to
            for each in subflows
            if (to := self._desired.get(each.key, Desired()).unconfirmed(each)) != Desired()
        }
        if not changes or now_s < self._due_s.get(connection, 0.0):  # 2
            return {}
        self._due_s[connection] = now_s + REPEAT_AFTER_S
        return changes

    def _command(self, changes: dict[Subflow, Desired]) -> list[str]:
        """Send `changes` to the two hosts of their connection; return the hosts not reached.

        For a connection without MPTCP, one reached host is enough: the result is then empty.
        """
        owners = {self._host_of(address) for each in changes for address in each.ends}
        hosts = sorted(host for host in owners if host)
        text = tuple(_change(each, to) for each, to in changes.items())
        connection = next(iter(changes)).connection if changes else ""
        away = [host for host in hosts if not self._send_command(host, connection, text)]
        return [] if connection.startswith(PLAIN) and len(away) < len(hosts) else away

    def _send_command(self, host: str, connection: str, changes: tuple[SubflowChange, ...]) -> bool:
        self._seq = max(self._seq + 1, self._now_ms())
        return self._send(
            host, encode(HostCommand(self._seq, host, connection, changes), self._key)
        )


def _rises(subflow: Subflow, desired: Desired) -> bool:
    """Return whether `desired` has a larger pacing rate than the subflow has now.

    Without pacing, the present rate counts as 0.
    """
    return desired.rate_bps is not None and desired.rate_bps > (subflow.expected_bps or 0)


def _change(subflow: Subflow, desired: Desired) -> SubflowChange:
    return SubflowChange(
        subflow.source,
        subflow.destination,
        desired.backup,
        None if desired.rate_bps is None else mbps_from_bps(desired.rate_bps),
    )


def _is_same_rate(desired_bps: int, confirmed_bps: int) -> bool:
    return abs(desired_bps - confirmed_bps) <= RATE_TOLERANCE * desired_bps
