"""What hosts are asked for, until they confirm it: one order per connection and host, with what is still to be done in it.

1) a strategy asks something of a subflow: remember it, and tell both of its hosts at once
2) what was not confirmed after `AGAIN_S` is said again; a confirmed wish is kept, so that what a host loses is asked for again
3) a connection that is over is forgotten
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from controller.host_messages import Order, SubflowOrder, written
from controller.observation import Subflow, SubflowKey
from controller.units import mbps_from_bps

AGAIN_S = 1.0
RATE_TOLERANCE = 0.001
Send = Callable[[str, bytes], bool]


@dataclass(frozen=True)
class Wish:
    """What was asked of a subflow; `backup` None: nothing, and `rate_bps` None: nothing, 0: no rate."""

    backup: bool | None = None
    rate_bps: int | None = None

    def left(self, subflow: Subflow) -> Wish:
        """What the hosts have not confirmed."""
        held = self.rate_bps is None or _same(self.rate_bps, subflow.expected_bps or 0)
        return Wish(
            None if self.backup == subflow.backup else self.backup, None if held else self.rate_bps
        )


class Orders:
    """Wishes by subflow; `send(host, datagram)` returns False when the host cannot be reached."""

    def __init__(
        self, key: str, send: Send, host_of: Callable[[str], str | None], now_ms: Callable[[], int]
    ) -> None:
        """`host_of(address)` names the host of an address, `now_ms` the time of day: a later controller counts on from it."""
        self._key, self._send, self._host_of, self._now_ms = key, send, host_of, now_ms
        self._wishes: dict[SubflowKey, Wish] = {}
        self._due_s: dict[str, float] = {}
        self._seq = 0

    def set_backup(self, key: SubflowKey, backup: bool) -> None:
        """Ask for a priority."""
        self._wish(key, replace(self._wishes.get(key, Wish()), backup=backup))

    def expect(self, key: SubflowKey, rate_bps: int | None) -> None:
        """Ask for a rate, or to lift it."""
        self._wish(key, replace(self._wishes.get(key, Wish()), rate_bps=rate_bps or 0))

    def refresh(self, subflows: Iterable[Subflow], now_s: float) -> list[str]:
        """Say what is due; the hosts that could not be reached."""
        connections: dict[str, list[Subflow]] = {}
        for each in subflows:
            connections.setdefault(each.connection, []).append(each)
        self._wishes = {
            key: wish for key, wish in self._wishes.items() if key[0] in connections
        }  # 3
        return [host for found in connections.values() for host in self._refresh(found, now_s)]

    def _wish(self, key: SubflowKey, wish: Wish) -> None:
        self._wishes[key] = wish
        self._due_s.pop(key[0], None)  # 1

    def _refresh(self, subflows: list[Subflow], now_s: float) -> list[str]:
        connection = subflows[0].connection
        left = {each: self._wishes.get(each.key, Wish()).left(each) for each in subflows}
        orders = tuple(_order(each, wish) for each, wish in left.items() if wish != Wish())
        if not orders or now_s < self._due_s.get(connection, 0.0):  # 2
            return []
        self._due_s[connection] = now_s + AGAIN_S
        hosts = {
            self._host_of(address)
            for each, wish in left.items()
            if wish != Wish()
            for address in each.ends
        }
        return [
            host
            for host in sorted(host for host in hosts if host)
            if not self._tell(host, connection, orders)
        ]

    def _tell(self, host: str, connection: str, orders: tuple[SubflowOrder, ...]) -> bool:
        self._seq = max(self._seq + 1, self._now_ms())
        return self._send(host, written(Order(self._seq, host, connection, orders), self._key))


def _order(subflow: Subflow, wish: Wish) -> SubflowOrder:
    return SubflowOrder(
        subflow.source,
        subflow.destination,
        wish.backup,
        None if wish.rate_bps is None else mbps_from_bps(wish.rate_bps),
    )


def _same(asked_bps: int, held_bps: int) -> bool:
    """Two rates are one when they differ by less than what is lost on the way there and back."""
    return abs(asked_bps - held_bps) <= RATE_TOLERANCE * asked_bps
