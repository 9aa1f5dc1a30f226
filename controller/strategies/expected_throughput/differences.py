"""From what is to what shall be: the commands that make up the difference, each with its reason in numbers.

1) ways; a new subflow's too if it stays, so that the network does not hash it anew when a link breaks elsewhere   2) lower rates, then higher ones, so that no arc is asked for too much   3) who is no backup any more   4) who becomes one
"""

from __future__ import annotations

from collections.abc import Iterator

from controller.command import Decision, Expect, Route, SetBackup, SubflowCommand, about
from controller.graph import switches, use
from controller.observation import Subflow
from controller.strategies.expected_throughput.allocation import neighbours, reached
from controller.strategies.expected_throughput.ledger import Ledger, Standing, load
from controller.units import mbps_from_bps

LEAST_CHANGE = 0.01  # of a rate: hosts are told of no smaller one (S-MPTCP, section V-C)
LEAST_PART = 0.01  # of a connection's rate: a subflow with less is backup
Ranked = tuple[int, Decision]
WAY, LOWER, HIGHER, NORMAL, BACKUP = range(5)


def decisions(before: Ledger, after: Ledger) -> list[Decision]:
    """What to ask for, in the order in which it should be done; connections that were not changed are left alone."""
    found: list[Ranked] = []
    for name, why in after.why.items():
        standing = after.connections[name]
        found += _routes(before.connections[name], standing, after, f"{why}: ")
        found += _rates(standing, f"{why}: {_beside(name, after)}")
    return [decision for _, decision in sorted(found, key=lambda each: each[0])]


def _routes(was: Standing, shall: Standing, after: Ledger, why: str) -> Iterator[Ranked]:
    ways, shares = after.settled()
    carried = load(ways, shares)
    for subflow, now, then, rate in zip(
        shall.subflows, was.ways, shall.ways, shall.rates, strict=True
    ):
        is_new = subflow.expected_bps is None and not subflow.backup
        if then is not None and (then != now or is_new):
            path = switches(after.on, then)
            left = (
                (after.on.capacity_bps[arc] - carried[arc] + rate * part, arc)
                for arc, part in use(after.on, then).items()
            )
            free_bps, arc = min(left)
            text = f"{why}by {' '.join(path)} others leave {_text(free_bps)} of {_text(after.on.capacity_bps[arc])}"
            yield WAY, _decision(subflow, text, Route(subflow.key, path))


def _rates(standing: Standing, why: str) -> Iterator[Ranked]:
    whole = sum(standing.rates)
    idle = [rate <= LEAST_PART * whole for rate in standing.rates]
    if all(idle):  # the last one is never backup
        idle[0] = False
    for subflow, rate, nothing in zip(standing.subflows, standing.rates, idle, strict=True):
        then = None if nothing or rate < 1 else round(rate)
        if _differs(subflow.expected_bps, then):
            rank = HIGHER if then is None or then > (subflow.expected_bps or 0) else LOWER
            yield (
                rank,
                _decision(subflow, f"{why}, {_text(rate)} of it here", Expect(subflow.key, then)),
            )
        if nothing != subflow.backup:
            text = (
                f"{why}, nothing of it here"
                if nothing
                else f"{why}, {_text(rate)} of it here again"
            )
            yield (
                BACKUP if nothing else NORMAL,
                _decision(subflow, text, SetBackup(subflow.key, nothing)),
            )


def _differs(now_bps: int | None, then_bps: int | None) -> bool:
    if now_bps is None or then_bps is None:
        return now_bps != then_bps
    return abs(then_bps - now_bps) > LEAST_CHANGE * now_bps


def _beside(name: str, after: Ledger) -> str:
    """A connection's rate, and those of the connections it shares arcs with, directly or through others."""
    ways, shares = after.settled()
    together = reached(neighbours(ways), [name]) if name in ways else {name}
    own = sum(after.connections[name].rates)
    if len(together) < 2:
        return f"{_text(own)} for this connection, which shares no link"
    mean = sum(sum(shares[each]) for each in together) / len(together)
    return f"{_text(own)} for this connection, and {_text(mean)} on average for the {len(together)} that share links"


def _decision(subflow: Subflow, reason: str, command: SubflowCommand) -> Decision:
    return Decision(about(subflow.key), reason, command)


def _text(rate_bps: float) -> str:
    return f"{mbps_from_bps(rate_bps):.3g} Mb/s"
