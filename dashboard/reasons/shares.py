"""Say how the congestion control divides a full link among the subflows that share it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from dashboard.palette import natural
from dashboard.reasons.links import shared
from dashboard.reasons.scene import Scene, listed
from lab import extensions
from lab.results.effects import number_text
from lab.results.stretches import Span
from lab.run.frame import Frame

LONGER = 1.2  # ratio of two round trips that differ
COUPLED, UNCOUPLED = "coupled", "uncoupled"


def reasons(scene: Scene, old: str, new: str, after: Span) -> list[str]:
    """Return why another congestion control divides the shared links differently.

    `old` and `new` are the names of two congestion controls. The result is empty if both are
    coupled, or neither is, or if no connection has several subflows on a full link.
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
        by_kind = {
            COUPLED: _divided(connections, each.rate_mbps),
            UNCOUPLED: _divided(subflows, each.rate_mbps),
        }
        grow = {
            COUPLED: "the subflows of a connection on one link grow together like one TCP "
            "connection, so equal shares are per connection",
            UNCOUPLED: "each subflow grows like a TCP connection of its own, so equal shares are "
            "per subflow",
        }
        texts.append(
            f"With {old}, {grow[kinds[0]]}: {by_kind[kinds[0]]} on {listed(each.links)}. "
            f"With {new}, {grow[kinds[1]]}: {by_kind[kinds[1]]}."
        )
    return texts[:1]


def slower(scene: Scene, target: str, before: Span, after: Span) -> list[str]:
    """Return what another rate of a link does to the round trips of the subflow across it whose
    round trip changed most; empty if none changed with the rate."""
    kind, _, rest = target.partition(".")
    link = next((each for each in scene.network.links if rest == f"{each.id}.rate_mbps"), None)
    if kind != "link" or link is None or link.rate_bps is None:
        return []
    rates = [scene.rate_mbps(link, span.end_s) for span in (before, after)]
    found = []
    for name, path in scene.routes(after.end_s).items():
        trips = [span.mean(scene.frames, _rtt(name)) for span in (before, after)]
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
        f"at {link.id} leave at {number_text(rates[1])} instead of {number_text(rates[0])} Mb/s. A "
        "window that grows once in a round trip grows at another pace, too."
    ]


def _rtt(subflow: str) -> Callable[[Frame], float | None]:
    return lambda frame: getattr(frame.sf.get(subflow), "rtt_ms", None)


def _kind(name: str) -> str:
    """Return the first word of the description of a congestion control, such as "coupled"."""
    words = extensions.congestion_controls().get(name, "").replace(":", " ").replace(",", " ")
    return next(iter(words.split()), "")


def _divided(shares: Counter[str], rate_mbps: float) -> str:
    """Return the rate of each user in words if a link is divided by these numbers of shares."""
    total = sum(shares.values())
    parts = [
        f"{user} {number_text(rate_mbps * shares[user] / total)}"
        for user in sorted(shares, key=natural)
    ]
    return f"{listed(parts)} Mb/s of frames"
