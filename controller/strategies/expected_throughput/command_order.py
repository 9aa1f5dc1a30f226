"""Put the commands of one step into an order in which they never overload a link.

The commands are carried out one after the other. The load of an arc (one direction of a link) is
the sum of the pacing rates of the normal subflows that cross it; a backup subflow and one without a
pacing rate do not count. If no arc is overloaded before the first and after the last command, none
is in between:
1) Lower rates. A subflow that loses its rate becomes backup first, then its pacing ends. It keeps
   its rate for now if it is the only normal subflow of its connection.
2) Set paths, make subflows normal, and make the remaining ones backup. A subflow that is to get
   more than it has keeps the lower rate.
3) Raise rates. A subflow that became backup last in phase 2 gets its new path only now.
In phase 2, some subflows have left their old arcs and others have not. If an arc has no room for
both, all subflows that leave it or come to it have half their rate until phase 3. This is enough:
the load is then at most the mean of the loads before and after, and neither is too large.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from controller.graph import ArcUse

ROUNDING = 1e-9  # of a capacity: a smaller overload is a rounding error
NOWHERE: ArcUse = {}


@dataclass(frozen=True)
class Load:
    """Hold what a subflow loads: for each arc of its path the part of its rate, and its rate.

    `rate_bps` is 0 for a backup subflow and for a subflow without a pacing rate.
    """

    use: ArcUse
    rate_bps: float
    backup: bool

    def on_arcs(self, rate_bps: float) -> Iterable[tuple[int, float]]:
        """Yield each arc with its load in bit/s if the subflow had this rate."""
        return ((arc, part * rate_bps) for arc, part in self.use.items())


@dataclass(frozen=True)
class Change:
    """Hold the load of one subflow before and after the commands of a step.

    `alone` is True if no subflow of the connection is normal both before and after the step.
    """

    before: Load
    after: Load
    alone: bool = False

    @property
    def leaves_late(self) -> bool:
        """Return whether the subflow becomes backup only after another one became normal."""
        return self.alone and self.after.backup and not self.before.backup

    @property
    def moves(self) -> bool:
        """Return whether arcs get or lose load of the subflow in phase 2."""
        return (
            self.leaves_late
            or self.before.use != self.after.use
            or (self.before.backup and not self.after.backup)
        )

    @property
    def leaving_bps(self) -> float:
        """Return the rate in bit/s on the old path during phase 2, without halving."""
        return self.before.rate_bps if self.leaves_late else self.staying_bps

    @property
    def coming_bps(self) -> float:
        """Return the rate in bit/s on the new path during phase 2, without halving."""
        return self.after.rate_bps if self.before.backup else self.staying_bps

    @property
    def staying_bps(self) -> float:
        """Return the smaller one of the rates before and after, in bit/s."""
        return min(self.before.rate_bps, self.after.rate_bps)


def crowded(capacity_bps: Sequence[float], changes: Iterable[Change]) -> list[bool]:
    """Return for each change whether the subflow needs half its rate during phase 2.

    `changes` holds all subflows of the network, also those that stay as they are.
    """
    changes = list(changes)
    most: dict[int, float] = {}
    for each in changes:
        if each.moves:
            _add(most, each.before.on_arcs(each.leaving_bps))
            _add(most, each.after.on_arcs(each.coming_bps))
        else:
            _add(most, each.before.on_arcs(each.staying_bps))
    full = {arc for arc, rate in most.items() if rate > (1 + ROUNDING) * capacity_bps[arc]}
    return [
        each.moves
        and any(
            arc in full and rate > 0
            for load, bps in ((each.before, each.leaving_bps), (each.after, each.coming_bps))
            for arc, rate in load.on_arcs(bps)
        )
        for each in changes
    ]


def _add(load: dict[int, float], more: Iterable[tuple[int, float]]) -> None:
    for arc, rate in more:
        load[arc] = load.get(arc, 0.0) + rate
