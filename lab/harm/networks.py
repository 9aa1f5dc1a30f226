"""Random networks, each a scenario document that follows from a seed and a number.

Three kinds take turns: `wired` (parallel paths, one shared link, a chain of links, or users with
cables to several switches), `home` (a WiFi access point and an LTE base station) and `campus` (a
fat tree behind both). Links are slow and runs short, so that a simulation takes about a second. A
user walks as its station gets other rates. WiFi channels have the default model (`air: dcf`).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

Document = dict[str, Any]  # the content of a scenario file
KINDS = ("wired", "home", "campus")
MOST_USERS = 12
DURATIONS_S = (20, 30)
LAWS = ("reno", "lia", "olia", "balia", "cubic")
BUFFERS_KB = (200, 1000, 4000)
USERS = (1, 1, 2, 2, 3, 3, 4, 5, 6, 8, 10, MOST_USERS)
SLOW_MBPS = (0.3, 1.5)  # rates of a slow station
FAST_MBPS = (2, 8)
MANY_PATHS = 4
PAGES = [[5, 0.3], [30, 0.8], [200, 1]]
VIDEO = {"bitrates_mbps": [0.2, 0.5, 1, 2, 4], "chunk_s": 1, "buffer_s": 8}


def network(seed: int, number: int) -> Document:
    """Return network `number` of a seed. It has no strategy."""
    rng = random.Random(f"{seed}/{number}")  # noqa: S311 - nothing is secret
    duration_s = rng.choice(DURATIONS_S)
    kind = KINDS[number % len(KINDS)]
    topology, users, changes = FAMILIES[kind](rng, duration_s)
    return {
        "name": f"harm_{seed}_{number}",
        "title": f"Random network {number} of seed {seed} ({kind})",
        "topology": topology,
        "traffic": [flow for user in users for flow in _flows(rng, user, duration_s)],
        "multipath": {"cc": rng.choice(LAWS), "receive_buffer_kb": rng.choice(BUFFERS_KB)},
        "events": sorted(changes, key=lambda each: each["at_s"]),
        "seed": seed,
        "duration_s": duration_s,
    }


def with_shifted_starts(document: Document, start: int, seed: int) -> Document:
    """Return a document in which every flow starts some milliseconds later.

    Start 0 is the document itself. Nobody could choose between the others: what differs between
    them is chance.
    """
    if not start:
        return document
    rng = random.Random(f"{seed}/start/{start}")  # noqa: S311 - nothing is secret
    flows = [
        each | {"start_s": round(each.get("start_s", 0) + rng.uniform(0.001, 0.1), 3)}
        for each in document["traffic"]
    ]
    return document | {"traffic": flows}


# Flows


def _flows(rng: random.Random, user: str, duration_s: int) -> list[Document]:
    start_s = rng.choice((0, 0, 0, rng.randint(1, duration_s // 3)))
    flow: Document = {"user": user, "start_s": start_s}
    kinds = ("on_off", "rate", "file", "short", "rpc", "web", "video", "call")
    match rng.choice((*["bulk"] * 7, *kinds)):
        case "on_off":
            return [flow | {"kind": "on_off", "rate_mbps": _mbps(rng, 0.3, 4), **_periods(rng)}]
        case "rate":
            return [flow | {"kind": "rate", "rate_mbps": _mbps(rng, 0.1, 3)}]
        case "file":
            return [flow | {"kind": "file", "volume_mb": rng.randint(1, 8)}]
        case "short":
            sizes = [[10, 0.5], [100, 0.9], [1000, 1]]
            rate_mbps = _mbps(rng, 0.1, 1)
            return [flow | {"kind": "workload", "sizes": sizes, "rate_mbps": rate_mbps}]
        case "rpc":
            return [flow | {"kind": "rpc", "answer_kb": _mbps(rng, 2, 200), "think_s": 0.2}]
        case "web":
            return [flow | {"kind": "web", "sizes": PAGES, "objects": 8, "think_s": 0.3}]
        case "video":
            return [flow | {"kind": "video", **VIDEO, "adapts_by": rng.choice(("buffer", "rate"))}]
        case "call":
            return [flow | {"kind": "call"}]
    stop = {"stop_s": duration_s - rng.randint(2, 6)} if rng.random() < 0.2 else {}
    return [flow | {"kind": "bulk", **stop}]


def _periods(rng: random.Random) -> Document:
    return {"on_s": rng.randint(1, 5), "off_s": rng.randint(1, 5)}


def _mbps(rng: random.Random, low: float, high: float) -> float:
    """Draw a rate; each factor is as likely as any other."""
    return float(f"{low * (high / low) ** rng.random():.2g}")


# Wired networks

Drawn = tuple[Document, list[str], list[Document]]  # a topology, its users, and events


def _wired(rng: random.Random, duration_s: int) -> Drawn:
    draw = rng.choice((_parallel, _shared, _chain, _cables, _cables))
    topology, users, links = draw(rng)
    return topology, users, _changes_of_links(rng, links, duration_s)


def _link(rng: random.Random, low_mbps: float = 0.5, high_mbps: float = 8) -> Document:
    loss = round(rng.uniform(0.001, 0.03), 3) if rng.random() < 0.25 else 0
    return {
        "rate_mbps": _mbps(rng, low_mbps, high_mbps),
        "delay_ms": _mbps(rng, 2, 150),
        "loss": loss,
        "queue_packets": rng.choice((20, 50, 100, 200)),
    }


def _parallel(rng: random.Random) -> tuple[Document, list[str], list[str]]:
    count = rng.randint(2, MANY_PATHS)
    paths = [_link(rng) for _ in range(count)]
    links = [f"path{n}" for n in range(1, count + 1)]
    return {"kind": "parallel_paths", "paths": paths}, ["ue1"], links


def _shared(rng: random.Random) -> tuple[Document, list[str], list[str]]:
    names = _names(max(2, rng.choice(USERS)))
    users = [{"id": name, "subflows": rng.randint(1, 3)} for name in names]
    link = _link(rng, 2, 10)
    return {"kind": "shared_bottleneck", **link, "users": users}, names, ["bottleneck"]


def _chain(rng: random.Random) -> tuple[Document, list[str], list[str]]:
    topology = {
        "kind": "pooling",
        "path_delay_ms": rng.randint(5, 100),
        "middle_mbps": [_mbps(rng, 0.5, 5) for _ in range(4)],
        "outer_mbps": rng.randint(3, 6),
    }
    return topology, _names(3), ["link2", "link5", "link10", "link15"]


def _cables(rng: random.Random) -> tuple[Document, list[str], list[str]]:
    """Users with cables to one to three of the switches; each switch has one link to the server's.

    A link of the middle is shared by some users.
    """
    middle = [f"m{n}" for n in range(1, rng.randint(2, MANY_PATHS) + 1)]
    names = _names(rng.choice(USERS))
    links = [{"id": each, "a": "s1", "b": each, **_link(rng, 1, 8)} for each in middle]
    links.append({"id": "server", "a": "srv1", "b": "s1"})
    for name in names:
        for place in rng.sample(middle, rng.randint(1, min(3, len(middle)))):
            links.append({"id": f"{place}-{name}", "a": place, "b": name})
    users = [{"id": name} for name in names]
    topology = {
        "kind": "nodes_and_links",
        "users": users,
        "servers": ["srv1"],
        "switches": ["s1", *middle],
        "links": links,
    }
    return topology, names, middle


def _changes_of_links(
    rng: random.Random, links: list[str], duration_s: int, delays: bool = True
) -> list[Document]:
    """Return changes of up to two links: an outage, or two other rates or delays in turn."""
    found: list[Document] = []
    for link in rng.sample(links, min(len(links), rng.choice((0, 0, 1, 2)))):
        what = rng.choice(("up", "rate_mbps", "delay_ms") if delays else ("up",))
        values: tuple[Any, Any] = (False, True)
        if what == "rate_mbps":
            values = _mbps(rng, 0.5, 8), _mbps(rng, 0.5, 8)
        elif what == "delay_ms":
            values = rng.randint(1, 300), rng.randint(1, 300)
        found += _two_changes(rng, f"link.{link}.{what}", values, duration_s)
    return found


def _two_changes(
    rng: random.Random, target: str, values: tuple[Any, Any], duration_s: int
) -> list[Document]:
    at_s = rng.randint(5, duration_s // 2)
    times_s = at_s, at_s + rng.randint(2, duration_s // 3)
    return [
        {"at_s": each_s, "target": target, "value": value}
        for each_s, value in zip(times_s, values, strict=True)
    ]


# Radio


def _home(rng: random.Random, duration_s: int) -> Drawn:
    topology, names, changes = _radio(rng, duration_s, rng.choice(USERS))
    return {"kind": "wifi_lte", **topology}, names, changes


def _campus(rng: random.Random, duration_s: int) -> Drawn:
    wired = _names(8)[6 : 6 + rng.randint(0, 2)]
    topology, names, changes = _radio(rng, duration_s, rng.randint(1, 6))
    tree = {"tree_mbps": rng.randint(2, 8), "tree_delay_ms": rng.randint(1, 5)}
    return {"kind": "campus", **topology, "wired": wired, **tree}, [*names, *wired], changes


def _radio(
    rng: random.Random, duration_s: int, count: int
) -> tuple[Document, list[str], list[Document]]:
    """A WiFi cell and an LTE cell. A station that walks has two other rates one after the other."""
    users, multipath, changes = [], [], list[Document]()
    for name in _names(count):
        near = rng.choice(("wifi", "lte"))
        user: Document = {"id": name, "near": near}
        kinds = ("wifi", "lte") if rng.random() < 0.5 else (near,)
        for kind in kinds:
            user[f"{kind}_mbps"] = _radio_mbps(rng)
        if len(kinds) == 2:
            multipath.append(name)
        users.append(user)
        if rng.random() < 0.15:
            changes += _walk(rng, name, rng.choice(kinds), duration_s)
    changes += _changes_of_links(rng, ["wifi", "lte"], duration_s, delays=False)
    topology = {"users": users, "multipath": multipath, "lte_delay_ms": rng.randint(10, 80)}
    return topology, [each["id"] for each in users], changes


def _radio_mbps(rng: random.Random) -> float:
    return _mbps(rng, *(SLOW_MBPS if rng.random() < 0.3 else FAST_MBPS))


def _walk(rng: random.Random, user: str, kind: str, duration_s: int) -> list[Document]:
    target = f"cell.{kind}1.{user}.rate_mbps"
    return _two_changes(rng, target, (_mbps(rng, *SLOW_MBPS), _radio_mbps(rng)), duration_s)


def _names(count: int) -> list[str]:
    return [f"ue{n}" for n in range(1, count + 1)]


FAMILIES: dict[str, Callable[[random.Random, int], Drawn]] = {
    "wired": _wired,
    "home": _home,
    "campus": _campus,
}
