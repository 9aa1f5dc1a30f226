"""Explain which connections share a full link, which links are idle at that time, and which
subflows moved to other links."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any

import networkx as nx

from lab.results.effects import number_text
from lab.results.explain.paths import NodePath, graph_of
from lab.results.explain.scene import Routes, Scene, listed, percent
from lab.results.labels import natural
from lab.results.stretches import Span
from lab.topologies.topology import Link

FULL = 0.9  # a link that carries this fraction of its rate limits the subflows on it

STOPPED = 0.05  # a subflow that carries less than this fraction of its rate before has stopped
IDLE = 0.05  # a link that carries less than this fraction of its rate is idle
MOST_PATHS = 12  # equally short paths that are searched for an idle one
MOST_SHARED = 2  # full links, or groups of them, that a text names
Subflows = tuple[str, ...]


@dataclass(frozen=True)
class Shared:
    """Full links that the same subflows share. The subflows belong to several connections.

    `carried_mbps` and `rate_mbps` are the carried rate and the capacity of the fullest link.
    """

    links: tuple[str, ...]
    subflows: Subflows
    carried_mbps: float
    rate_mbps: float


def shared(scene: Scene, span: Span, least: float = FULL) -> list[Shared]:
    """Return the full links that several connections share during `span`, the fullest first.

    A link is full if it carries at least the fraction `least` of its rate. Links with the same
    subflows are in one entry.
    """
    users: dict[Subflows, list[Link]] = {}
    for link, names in _crossing(scene, scene.routes(span.end_s)).items():
        if len({name.rpartition("/")[0] for name in names}) > 1:
            users.setdefault(names, []).append(link)
    found = []
    for names, links in users.items():
        load = {each.id: _load(scene, each, span) for each in links}
        full = [each for each in links if load[each.id] >= least]
        if full:
            most = max(full, key=lambda each: load[each.id])
            ids = tuple(each.id for each in sorted(full, key=scene.network.links.index))
            rate = scene.rate_mbps(most, span.end_s)
            found.append(Shared(ids, names, min(rate, scene.link_mbps(most.id, span)), rate))
    return sorted(found, key=lambda each: -each.carried_mbps / each.rate_mbps)


def sharing(scene: Scene, span: Span) -> list[str]:
    """Return a sentence for each group of full links that connections share.

    If one of the sharing subflows could take another path of the same length that is idle, the
    sentence also names the links of that path.
    """
    found = shared(scene, span)
    texts = []
    for each in found[:MOST_SHARED]:
        names = listed([_with_rate(scene, name, span) for name in each.subflows])
        verb = "is" if len(each.links) == 1 else "are"
        text = f"{scene.named(each.links)} {verb} full ({load_text(each)}) and shared by {names}"
        idle = _idle_beside(scene, each, span)
        if idle:
            verb = "carries" if len(idle) == 1 else "carry"
            text += (
                f". Meanwhile {scene.named(idle)}, on another path that is as short, {verb} nothing"
            )
        texts.append(f"{text}.")
    if len(found) > MOST_SHARED:
        more = len(found) - MOST_SHARED
        others = "1 other group of links is" if more == 1 else f"{more} other groups of links are"
        texts.append(f"{others} full and shared, too.")
    return texts


def moved(
    scene: Scene, before: Span, after: Span, first: Collection[str] = (), user: str = ""
) -> list[str]:
    """Return sentences about subflows that used other links in `after` than in `before`.

    The sentences about subflows in `first` come first, and of these, those of `user`. If `first` is
    given, one last sentence names the other subflows that moved; only those whose old link is down
    have their own sentences.
    """
    old, new = scene.routes(before.end_s), scene.routes(after.end_s)
    texts: list[str] = []
    others: dict[str, str] = {}  # by subflow: its move

    def order(name: str) -> tuple[bool, bool, list[tuple[int, int, str]]]:
        return name not in first, bool(user) and scene.user_of(name) != user, natural(name)

    for name in sorted(old.keys() & new.keys(), key=order):
        left, found = _ids(scene, old[name]), _ids(scene, new[name])
        if (old_only := left - found) and (new_only := found - left):
            text = (
                f"from {scene.named(_ordered(scene, old_only))} "
                f"to {scene.named(_ordered(scene, new_only))}"
            )
            if first and name not in first and not _is_down(scene, old_only, after):
                others[name] = text
            else:
                texts.append(f"{name} moved {text}{_mover(scene, name, old_only, after)}.")
    rest = len(texts) - MOST_SHARED
    more = "1 other subflow" if rest == 1 else f"{rest} other subflows"
    texts = [*texts[:MOST_SHARED], *([f"{more} moved, too."] if rest > 0 else [])]
    return texts + _without_a_share(others)


def _without_a_share(moves: Mapping[str, str]) -> list[str]:
    """Return a sentence about the subflows that moved from links that they did not share. `moves`
    maps each to its move in words, which is told of a single one only."""
    who = [f"{name} ({text})" for name, text in moves.items()] if len(moves) == 1 else [*moves]
    return [f"{listed(who)} moved, too, but shared no full link before."] if moves else []


def _is_down(scene: Scene, links: Collection[str], after: Span) -> bool:
    return any(not scene.value(f"link.{link}.up", True, after.end_s) for link in links)


def _mover(scene: Scene, name: str, left: Collection[str], after: Span) -> str:
    """Return the end of a sentence: when a subflow took another path, and why.

    The reason is an order of the strategy, or a link that was down. Return "" if no event says
    when.
    """
    events = [each for each in scene.events if after.start_s <= each["t"] < after.end_s]
    moved_s = [
        each["t"]
        for each in events
        if each.get("kind") == "subflow"
        and scene.name_in_samples(f"{each['connection']}/{each['subflow']}") == name
    ]
    if not moved_s:
        return ""
    is_ordered = any(
        each.get("action") == "route"
        and scene.name_in_samples(str(each.get("subflow"))) == name
        and each["t"] <= moved_s[0]
        for each in events
    )
    if is_ordered:
        return f" at {moved_s[0]:.1f} s, as the strategy ordered"
    down = [link for link in left if not scene.value(f"link.{link}.up", True, after.end_s)]
    why = f", without an order of the strategy, because {scene.named(down)} was down"
    return f" at {moved_s[0]:.1f} s{why if down else ''}"


def stopped(scene: Scene, target: str, value: Any, before: Span, after: Span) -> list[str]:
    """Return a sentence about the subflows that carry nothing since a link on their path was cut.

    `target` and `value` are the change. Return [] if it did not cut a link, or if no subflow
    stopped. A subflow is judged by the second half of `after`, because packets that are already
    beyond the cut link still arrive.
    """
    kind, _, rest = target.partition(".")
    link, _, field = rest.rpartition(".")
    if (kind, field) != ("link", "up") or value:
        return []
    late = Span((after.start_s + after.end_s) / 2, after.end_s)
    rates = {
        name: (scene.subflow_mbps(name, before), scene.subflow_mbps(name, late))
        for name, path in scene.routes(before.end_s).items()
        if any(link == each for each in _all_ids(scene, path))
    }
    ended = [each for each, (was, now) in rates.items() if was > 0 and now < STOPPED * was]
    if not ended:
        return []
    names = sorted(ended, key=natural)
    return [
        f"{listed(names)} crossed {scene.link_name(link)} and "
        f"{'carries' if len(names) == 1 else 'carry'} nothing since it was cut."
    ]


def _all_ids(scene: Scene, path: NodePath) -> list[str]:
    found = (scene.links.get(frozenset(ends)) for ends in pairwise(path))
    return [each.id for each in found if each]


def reasons(scene: Scene, before: Span, after: Span) -> list[str]:
    """Return sentences about subflows that moved, and about links that several connections share
    only before or only after a change."""
    first = {name for each in shared(scene, before) for name in each.subflows}
    return moved(scene, before, after, first) + divided(scene, before, after)


def main(scene: Scene, before: Span, after: Span, user: str = "") -> list[str]:
    """Return the main reason for a difference between two intervals as one text in a list.

    It says which subflow moved, and which full link is shared now or no longer; those of `user`
    come first. Return [] if there is no such reason.
    """
    first = {name for each in shared(scene, before) for name in each.subflows}
    found = [*moved(scene, before, after, first, user)[:1], *divided(scene, before, after)[:1]]
    return [" ".join(found)] if found else []


def divided(scene: Scene, before: Span, after: Span) -> list[str]:
    """Return sentences about full links that several connections share only before or only after a
    change."""
    was, now = shared(scene, before), shared(scene, after)
    texts = []
    gone = [each for each in was if not any(overlaps(each, other) for other in now)]
    new = [each for each in now if not any(overlaps(each, other) for other in was)]
    for each in gone[:MOST_SHARED]:
        texts.append(
            f"Before, {scene.named(each.links)} ({number_text(each.rate_mbps)} Mb/s) "
            f"{'was' if len(each.links) == 1 else 'were'} full and shared by "
            f"{listed(each.subflows)}; now {_now(scene, each, after)}."
        )
    for each in new[:MOST_SHARED]:
        texts.append(
            f"Now {scene.named(each.links)} ({number_text(each.rate_mbps)} Mb/s) "
            f"{'is' if len(each.links) == 1 else 'are'} full and shared by {listed(each.subflows)}."
        )
    return texts


def load_text(each: Shared) -> str:
    """Return the load of the fullest link as text, such as `9.5 of 10 Mb/s of frames`.

    The frames are Ethernet frames, so headers count.
    """
    return f"{number_text(each.carried_mbps)} of {number_text(each.rate_mbps)} Mb/s of frames"


def _now(scene: Scene, gone: Shared, after: Span) -> str:
    """Return what has become of links that were full and shared, as the end of a sentence."""
    crossing = _crossing(scene, scene.routes(after.end_s))
    rest = next((names for link, names in crossing.items() if link.id == gone.links[0]), ())
    if not rest:
        return "no subflow is there"
    link = next(each for each in scene.network.links if each.id == gone.links[0])
    if not scene.rate_mbps(link, after.end_s):
        return f"{scene.link_name(link.id)} is stopped (rate 0)"
    used = _load(scene, link, after)
    one = len(gone.links) == 1
    if len(rest) == 1:
        return f"{rest[0]} has {'it' if one else 'them'} alone"
    return f"{scene.link_name(gone.links[0])} is {percent(used)} used"


def overlaps(each: Shared, other: Shared) -> bool:
    """Return whether two groups of full links have the same subflows and at least one common
    link."""
    return bool(set(each.links) & set(other.links)) and each.subflows == other.subflows


def _crossing(scene: Scene, routes: Routes) -> dict[Link, Subflows]:
    found: dict[Link, list[str]] = {}
    for name in sorted(routes, key=natural):
        for link in scene.crossed(routes[name]):
            found.setdefault(link, []).append(name)
    return {link: tuple(names) for link, names in found.items()}


def _load(scene: Scene, link: Link, span: Span) -> float:
    """Return the part of its rate that a link carries; 0 for a link that is stopped (rate 0)."""
    rate_mbps = scene.rate_mbps(link, span.end_s)
    return scene.link_mbps(link.id, span) / rate_mbps if rate_mbps else 0.0


def _with_rate(scene: Scene, name: str, span: Span) -> str:
    return f"{name} (payload {number_text(scene.subflow_mbps(name, span))} Mb/s)"


def _idle_beside(scene: Scene, each: Shared, span: Span) -> list[str]:
    """Return the idle links of another path that one of the sharing subflows could take.

    This path has as many links as the present path of the subflow.
    """
    routes = scene.routes(span.end_s)
    for name in each.subflows:
        path = routes[name]
        for other in _as_short(scene, path, span.end_s):
            new = [link for link in scene.crossed(other) if link not in {*scene.crossed(path)}]
            if new and all(_load(scene, link, span) < IDLE for link in new):
                return _ordered(scene, {link.id for link in new})
    return []


def _as_short(scene: Scene, path: NodePath, t: float) -> Iterator[NodePath]:
    """Yield the paths that could replace `path`: same ends, same last switch, same number of links,
    and only links that are up at time `t`.

    Yield nothing if there is a shorter path.
    """
    graph = graph_of(scene.network)
    graph.remove_nodes_from(set(scene.network.users) - {path[-1]})
    for link in scene.network.links:
        ends = (link.a, link.b)
        if graph.has_edge(*ends) and not scene.value(f"link.{link.id}.up", True, t):
            graph.remove_edge(*ends)
    if len(path) < 3 or path[-1] not in graph:
        return
    graph.remove_node(path[-1])
    try:
        for found in islice(nx.all_shortest_paths(graph, path[0], path[-2]), MOST_PATHS):
            if len(found) == len(path) - 1:
                yield (*found, path[-1])
    except (nx.NetworkXNoPath, nx.NodeNotFound):
        return


def _ids(scene: Scene, path: NodePath) -> set[str]:
    return {link.id for link in scene.crossed(path)}


def _ordered(scene: Scene, ids: set[str]) -> list[str]:
    return [link.id for link in scene.network.links if link.id in ids]
