"""Explain how the congestion control divides a full link among the subflows that share it."""

from __future__ import annotations

from collections import Counter

from lab import extensions
from lab.results.effects import number_text
from lab.results.explain import split as split
from lab.results.explain.links import Shared, shared
from lab.results.explain.scene import Scene, listed, percent, subflow_number
from lab.results.labels import natural
from lab.results.stretches import Span

LONGER = 1.2  # a round trip has changed if the longer one is this many times as long
COUPLED, UNCOUPLED = "coupled", "uncoupled"
GROW = {
    COUPLED: "the subflows of a connection on one link grow together like one TCP connection, so "
    "equal shares per connection",
    UNCOUPLED: "each subflow grows like a TCP connection of its own, so equal shares per subflow",
}


def reasons(scene: Scene, old: str, new: str, before: Span, after: Span) -> list[str]:
    """Explain why a change of the congestion control divides shared links differently.

    `old` and `new` are the names of the congestion controls; `before` and `after` are the intervals
    of the run before and after the change. The text compares equal shares with the measured shares.
    Return [] unless one congestion control is coupled and the other is not. Also return [] if no
    connection has several subflows on a full link.
    """
    kinds = (_kind(old), _kind(new))
    if set(kinds) != {COUPLED, UNCOUPLED}:
        return []
    texts = []
    for each in shared(scene, after):
        subflows = Counter(scene.user_of(name) for name in each.subflows)
        connections = Counter(
            scene.user_of(name + "/1")
            for name in {subflow.rpartition("/")[0] for subflow in each.subflows}
        )
        if subflows == connections or len(subflows) < 2:
            continue
        ideal = {COUPLED: connections, UNCOUPLED: subflows}
        texts.append(
            " ".join(
                f"With {name}, {GROW[kind]} would be {_divided(ideal[kind])} of "
                f"{listed(each.links)}; measured: {_measured(scene, ideal[kind], each, span)}."
                for name, kind, span in zip((old, new), kinds, (before, after), strict=True)
            )
        )
    return texts[:1]


def slower(scene: Scene, target: str, before: Span, after: Span) -> list[str]:
    """Return a sentence about the subflow whose RTT changed most when the rate of a link was
    changed.

    `target` names the changed parameter; `before` and `after` are the intervals of the run before
    and after the change. Only subflows across the link count, and only if the RTT fell with a
    higher rate or rose with a lower rate.
    """
    kind, _, rest = target.partition(".")
    link = next((each for each in scene.network.links if rest == f"{each.id}.rate_mbps"), None)
    if kind != "link" or link is None or link.rate_bps is None:
        return []
    rates = [scene.rate_mbps(link, span.end_s) for span in (before, after)]
    found = []
    for name, path in scene.routes(after.end_s).items():
        trips = [
            span.mean(scene.frames, subflow_number(name, "rtt_ms")) for span in (before, after)
        ]
        if link not in scene.crossed(path) or not all(trips):
            continue
        was, now = (float(each or 0) for each in trips)
        if (now - was) * (rates[1] - rates[0]) < 0 and max(was, now) > LONGER * min(was, now):
            found.append((max(was, now) / min(was, now), name, was, now))
    if not found:
        return []
    _, name, was, now = max(found)
    return [
        f"The round trip of {name} took {was:.0f} ms before, {now:.0f} ms after: packets that wait "
        f"at {link.id} leave at {number_text(rates[1])} instead of {number_text(rates[0])} Mb/s. "
        f"Windows grow by round trips, so they now grow {'more slowly' if now > was else 'faster'}."
    ]


def _kind(name: str) -> str:
    """Return the first word of the help text of a congestion control, such as "coupled"."""
    words = extensions.congestion_controls().get(name, "").replace(":", " ").replace(",", " ")
    return next(iter(words.split()), "")


def _divided(shares: Counter[str]) -> str:
    """Return the percentage of a link that each user gets, in words.

    `shares` has the number of equal shares of each user.
    """
    total = sum(shares.values())
    return listed([f"{user} {percent(shares[user] / total)}" for user in _sorted(shares)])


def _measured(scene: Scene, shares: Counter[str], each: Shared, span: Span) -> str:
    found = split.parts(scene, _sorted(shares), each.subflows, span)
    return listed([f"{user} {percent(share)}" for user, share in found.items()])


def _sorted(shares: Counter[str]) -> list[str]:
    return sorted(shares, key=natural)
