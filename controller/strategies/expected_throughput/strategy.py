"""S-MPTCP: the controller finds ways for every subflow and says how much each may expect, so that connections are equal.

Source: S-MPTCP, sections III to V. At once when a subflow comes or goes, and every `interval_s`:
1) a connection of which a subflow is new, or has lost its way, gets ways, and a share beside the others; the eldest first
2) so does one on an arc of which more is expected than it carries
3) when a link came or grew, each connection is offered other ways
4) what was left free is given out, the poorest connection first
5) a connection that has much less than those it shares with gets another turn: the paper's last arrival stops as soon as it has
   enough itself, and may leave one that gave way to an earlier one poor
6) what differs from what is becomes a command. A subflow that may expect nothing is backup, unless it is the last that is not
3 to 5 are kept only where they are worth it, and nothing is changed twice. So a controller that starts again takes over ways
and shares from what the hosts confirm, and disturbs nobody.
"""

from __future__ import annotations

from controller.command import Decision, Expect, SetBackup, about
from controller.graph import graph
from controller.observation import Observation
from controller.strategies.base import Strategy, StrategyParams, param
from controller.strategies.expected_throughput.differences import decisions
from controller.strategies.expected_throughput.ledger import SLACK, Ledger, read
from controller.strategies.hashed import released
from controller.units import mbps_from_bps

Capacities = dict[tuple[str, str], int]


class ExpectedThroughputParams(StrategyParams):
    """`fairness` is the paper's; subflows beyond `max_subflows` of a connection are backup."""

    interval_s: float = param(
        2.0, "s", "Time between two looks while no subflow comes or goes", ge=0.2, le=60
    )
    fairness: float = param(
        0.9,
        "fraction",
        "Part of the mean from which on a connection takes nothing from others",
        gt=0,
        le=1,
    )
    max_subflows: int = param(
        8, "subflows", "How many subflows of a connection get a way", ge=1, le=16
    )


class ExpectedThroughput(Strategy):
    """Remembers the capacities it saw last, to notice what is new; all else comes with the observation."""

    name = "expected_throughput"
    wakes_on_subflows = True
    Params = ExpectedThroughputParams
    params: ExpectedThroughputParams

    def __init__(self, params: StrategyParams) -> None:
        super().__init__(params)
        self._capacities: Capacities | None = None

    def decide(self, seen: Observation) -> list[Decision]:
        if not seen.arcs:  # nobody has said yet how the network looks
            return []
        before = ledger = read(
            graph(seen.arcs), seen, self.params.fairness, self.params.max_subflows
        )
        for name in ledger.waiting:  # 1
            ledger = ledger.settle(name, f"{_user(ledger, name)} needs a way")
        for name in ledger.overloaded():  # 2
            if name in ledger.overloaded():
                ledger = ledger.settle(
                    name,
                    f"{_user(ledger, name)} is on a link of which more was expected than it carries",
                )
        if self._grew(seen):  # 3
            for name in ledger.connections:
                ledger = ledger.or_better(
                    ledger.settle(
                        name, f"there is more room for {_user(ledger, name)} on other links"
                    )
                )
        for name in list(ledger.with_room()):  # 4
            ledger = ledger.or_better(
                ledger.share(name, f"{_user(ledger, name)} can have what was left free")
            )
        return decisions(before, ledger.levelled())  # 5, 6

    def withdraw(self, seen: Observation) -> list[Decision]:
        why = "the strategy was withdrawn"
        held = [
            Decision(
                about(each.key),
                f"{why}: held to {mbps_from_bps(each.expected_bps):.3g} Mb/s no longer",
                Expect(each.key, None),
            )
            for each in seen.subflows
            if each.expected_bps is not None
        ]
        idle = [each for each in seen.subflows if each.backup]
        return (
            released(seen)
            + held
            + [
                Decision(
                    about(each.key),
                    f"{why}: subflow {each.number} is used again",
                    SetBackup(each.key, False),
                )
                for each in idle
            ]
        )

    def _grew(self, seen: Observation) -> bool:
        """Whether a link is new, or carries more than at the last look."""
        before, self._capacities = (
            self._capacities,
            {(arc.tail, arc.head): arc.capacity_bps for arc in seen.arcs},
        )
        if before is None:
            return False
        return any(
            now > (1 + SLACK) * before.get(ends, 0) for ends, now in self._capacities.items()
        )


def _user(ledger: Ledger, name: str) -> str:
    """Whose connection it is."""
    subflows = ledger.connections[name].subflows
    return subflows[0].user if subflows else name
