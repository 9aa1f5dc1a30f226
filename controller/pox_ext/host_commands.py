"""Send commands to host agents, and repeat them until reports confirm the desired settings.

A host agent is the program of the lab on a host. A setting is the backup flag or the pacing rate of
a subflow. A command contains the settings of a connection that are not confirmed yet. It is sent to
both hosts of the connection.

1) When a strategy changes a setting, store the setting and make the command of its connection due.
2) Repeat a command that is not confirmed after `REPEAT_AFTER_S`. A confirmed setting stays stored,
   so that the command is sent once more if a host loses the setting. Commands that lower the rate
   of a subflow are sent before those that raise one, so that no link is overloaded in between.
3) Forget the settings of a connection that has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from controller.host_messages import HostCommand, SubflowChange, encode
from controller.observation import Subflow, SubflowKey
from controller.pox_ext.tracker import PLAIN
from controller.units import mbps_from_bps

REPEAT_AFTER_S = 1.0
RATE_TOLERANCE = 0.001
Send = Callable[[str, bytes], bool]


@dataclass(frozen=True)
class Desired:
    """Hold the settings that strategies have chosen for a subflow; None means not chosen.

    `rate_bps` is the pacing rate; 0 means that the subflow must have no pacing rate.
    """

    backup: bool | None = None
    rate_bps: int | None = None

    def unconfirmed(self, subflow: Subflow) -> Desired:
        """Return the settings that the reports about `subflow` do not confirm yet.

        In the result, a setting is None if it is confirmed or if no strategy has chosen it.
        """
        is_confirmed = self.rate_bps is None or _is_same_rate(
            self.rate_bps, subflow.expected_bps or 0
        )
        return Desired(
            None if self.backup == subflow.backup else self.backup,
            None if is_confirmed else self.rate_bps,
        )


class HostCommands:
    """Store the desired settings of each subflow; send commands until the hosts confirm them."""

    def __init__(
        self, key: str, send: Send, host_of: Callable[[str], str | None], now_ms: Callable[[], int]
    ) -> None:
        """Store the shared key and the functions that reach the hosts.

        `send(host, datagram)` returns False if the host cannot be reached. `host_of(address)`
        returns the name of the host with this address. `now_ms()` returns the time of day in ms.
        Command numbers start at this time, so that a restarted controller uses larger numbers than
        before.
        """
        self._key, self._send, self._host_of, self._now_ms = key, send, host_of, now_ms
        self._desired: dict[SubflowKey, Desired] = {}
        self._due_s: dict[str, float] = {}
        self._seq = 0

    def set_backup(self, key: SubflowKey, backup: bool) -> None:
        """Store the desired backup flag of a subflow; the command of its connection becomes due."""
        self._desire(key, replace(self._desired.get(key, Desired()), backup=backup))

    def expect(self, key: SubflowKey, rate_bps: int | None) -> None:
        """Store the desired pacing rate of a subflow; the command of its connection becomes due.

        With `rate_bps` None the subflow must have no pacing rate.
        """
        self._desire(key, replace(self._desired.get(key, Desired()), rate_bps=rate_bps or 0))

    def refresh(self, subflows: Iterable[Subflow], now_s: float) -> list[str]:
        """Send the commands that are due at `now_s`; return the hosts that cannot be reached.

        `subflows` must hold all open subflows. The settings of a connection that has no open
        subflow are forgotten.
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
        """Return the unconfirmed settings of a connection if it is time to send them."""
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
        """Send these changes of one connection; return the hosts that cannot be reached.

        For a connection without MPTCP one host is enough: the one that sends the data.
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
    """Return whether the pacing rate of the subflow rises. None counts as 0, as in strategies."""
    return desired.rate_bps is not None and desired.rate_bps > (subflow.expected_bps or 0)


def _change(subflow: Subflow, desired: Desired) -> SubflowChange:
    return SubflowChange(
        subflow.source,
        subflow.destination,
        desired.backup,
        None if desired.rate_bps is None else mbps_from_bps(desired.rate_bps),
    )


def _is_same_rate(desired_bps: int, confirmed_bps: int) -> bool:
    """Return whether two rates are equal except for the rounding in messages."""
    return abs(desired_bps - confirmed_bps) <= RATE_TOLERANCE * desired_bps
