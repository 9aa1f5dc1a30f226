"""Make a network smaller while something about it stays true, until no step keeps it.

A step leaves out an event, a flow, a user, a path, a node or an optional key, shortens the run, or
replaces a value by a simpler one. Steps are tried in a fixed order, large ones first; after each
that succeeds, they begin anew. Each step makes the network strictly simpler, so this ends.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from lab.harm.networks import Document

SIMPLE_FLOW = {"kind": "bulk", "start_s": 0}
SIMPLE_MULTIPATH = {"cc": "reno"}
SHORTEST_S = 15
STEP_S = 5
KEPT_KEYS = ("id", "rate_mbps", "delay_ms", "kind", "near", "a", "b")  # of a link or a user


T = TypeVar("T")


def smaller_ones(
    document: Document, judge: Callable[[Document], T | None]
) -> Iterator[tuple[Document, T]]:
    """Yield ever smaller documents with what `judge` says of them; the last one is the smallest
    that the steps reach.

    `judge` returns None if the document no longer shows what it should, or makes no sense.
    """
    tried: set[str] = set()
    while True:
        for smaller in _steps(document):
            seen = repr(smaller)
            if seen in tried:
                continue
            tried.add(seen)
            verdict = judge(smaller)
            if verdict is not None:
                yield smaller, verdict
                document = smaller
                break
        else:
            return


def _steps(document: Document) -> Iterator[Document]:
    yield from _without_many(document, "events")
    yield from _without_users(document)
    yield from _without_many(document, "traffic")
    yield from _shorter(document)
    yield from _without_keys(document)
    yield from _without_parts(document)
    yield from _simpler_flows(document)
    yield from _simpler_numbers(document)


def _without_many(document: Document, key: str) -> Iterator[Document]:
    """Leave out all entries of a list, each half of them, and each one."""
    entries = document[key]
    count = len(entries)
    for size in dict.fromkeys((count, math.ceil(count / 2), 1) if count else ()):
        for begin in range(0, count, size):
            yield document | {key: entries[:begin] + entries[begin + size :]}


def _without_users(document: Document) -> Iterator[Document]:
    for name in dict.fromkeys(each["user"] for each in document["traffic"]):
        yield _without_user(document, name)
    with_traffic = {each["user"] for each in document["traffic"]}
    for user in document["topology"].get("users", ()) if _lists_users(document) else ():
        if user["id"] not in with_traffic:
            yield _without_user(document, user["id"])


def _lists_users(document: Document) -> bool:
    return isinstance(document["topology"].get("users"), list)


def _without_user(document: Document, name: str) -> Document:
    found = copy.deepcopy(document)
    topology = found["topology"]
    found["traffic"] = [each for each in found["traffic"] if each["user"] != name]
    found["events"] = [each for each in found["events"] if name not in each["target"].split(".")]
    if _lists_users(found):
        topology["users"] = [each for each in topology["users"] if each["id"] != name]
    for key in ("multipath", "wired"):
        if key in topology:
            topology[key] = [each for each in topology[key] if each != name]
    if "links" in topology:
        topology["links"] = [
            each for each in topology["links"] if name not in (each["a"], each["b"])
        ]
    return found


def _shorter(document: Document) -> Iterator[Document]:
    duration_s = document["duration_s"]
    for less_s in dict.fromkeys((duration_s // 2 // STEP_S * STEP_S, duration_s - STEP_S)):
        if SHORTEST_S <= less_s < duration_s:
            early = [each for each in document["events"] if each["at_s"] < less_s]
            yield document | {"duration_s": less_s, "events": early}


def _without_keys(document: Document) -> Iterator[Document]:
    if document["multipath"] != SIMPLE_MULTIPATH:
        yield document | {"multipath": SIMPLE_MULTIPATH}
        for key, value in document["multipath"].items():
            if key not in SIMPLE_MULTIPATH:
                yield document | {"multipath": _without(document["multipath"], key)}
            elif value != SIMPLE_MULTIPATH[key]:
                simpler = document["multipath"] | {key: SIMPLE_MULTIPATH[key]}
                yield document | {"multipath": simpler}


def _without_parts(document: Document) -> Iterator[Document]:
    """Leave out parts of the topology: an entry of one of its lists, a key, or a key of an
    entry."""
    topology = document["topology"]
    for key, value in topology.items():
        if key not in KEPT_KEYS:
            yield document | {"topology": _without(topology, key)}
        for n, entry in enumerate(value if isinstance(value, list) else ()):
            if key not in ("users", "middle_mbps"):  # `_without_users`; always four
                yield _with(document, key, value[:n] + value[n + 1 :])
            for inner in entry if isinstance(entry, dict) else ():
                if inner not in KEPT_KEYS:
                    yield _with(
                        document, key, [*value[:n], _without(entry, inner), *value[n + 1 :]]
                    )


def _with(document: Document, key: str, value: Any) -> Document:
    return document | {"topology": document["topology"] | {key: value}}


def _without(mapping: Document, key: str) -> Document:
    return {each: value for each, value in mapping.items() if each != key}


def _simpler_flows(document: Document) -> Iterator[Document]:
    flows = document["traffic"]
    for n, flow in enumerate(flows):
        simple = {"user": flow["user"], **SIMPLE_FLOW}
        without_stop = _without(flow, "stop_s")
        for simpler in (simple, without_stop, flow | {"start_s": 0}):
            if simpler != flow:
                yield document | {"traffic": [*flows[:n], simpler, *flows[n + 1 :]]}


def _simpler_numbers(document: Document) -> Iterator[Document]:
    """Replace one number by a rounder one: with one digit, and 1, 2, 5 or 10."""
    for part in ("topology", "traffic", "events"):
        for path, value in _numbers(document[part]):
            for rounder in _rounder(value):
                yield document | {part: _replaced(document[part], path, rounder)}


def _numbers(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], float]]:
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _numbers(inner, (*path, key))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path, value


def _rounder(value: float) -> Iterator[float]:
    """Yield numbers nearby with fewer digits; nothing for 0 and for those that are round."""
    if not value:
        return
    unit = 10.0 ** math.floor(math.log10(abs(value)))
    for rounded in dict.fromkeys((round(value / unit) * unit, _nearest(value / unit) * unit)):
        found = float(f"{rounded:.6g}")
        if _complexity(found) < _complexity(value):
            yield int(found) if found == int(found) else found


def _nearest(digits: float) -> int:
    return min((1, 2, 5, 10), key=lambda each: abs(math.log(each / digits)))


def _complexity(value: float) -> tuple[int, bool]:
    digits = f"{value:.6e}".partition("e")[0].replace(".", "").rstrip("0")
    return len(digits), digits not in ("1", "2", "5")


def _replaced(value: Any, path: tuple[Any, ...], new: float) -> Any:
    if not path:
        return new
    found = copy.copy(value)
    found[path[0]] = _replaced(value[path[0]], path[1:], new)
    return found
