"""A network that was read from another program's file, and its parameters as `nodes_and_links`.

The readers (`mininet_topo`, `miniedit`, `graphml`) return a `Found` with the names of the file. The
lab's names are letters and digits, 9 at most, so `as_params` changes names that do not fit.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from controller.paths import hops_to
from lab.errors import RequestError, unknown
from lab.topologies.nodes_and_links import MOST_LINKS, MOST_NODES

MOST_BYTES = 8 * 2**20  # of a file
MOST_SHOWN = 12
LONGEST = 9
Names = tuple[str, ...]
Value = str | int | float


@dataclass(frozen=True)
class FoundLink:
    """A link between two nodes. `shape` has keys of `nodes_and_links.Wire`, such as rate_mbps."""

    a: str
    b: str
    shape: Mapping[str, Value]


@dataclass(frozen=True)
class Found:
    """A network as a file describes it. `notes` say what the reader decided or left out."""

    hosts: Names
    switches: Names
    links: tuple[FoundLink, ...]
    notes: Names = ()

    def noted(self, *notes: str) -> Found:
        return replace(self, notes=(*self.notes, *notes))


@dataclass(frozen=True)
class Roles:
    """What the hosts of a network do. With `multipath` None, users with several addresses are."""

    users: Names
    servers: Names
    multipath: Names | None = None
    subflows: int = 1


def check_size(found: Found, what: str) -> None:
    """Raise `RequestError` if the network is too large. `what` names the file."""
    nodes, links = len(found.hosts) + len(found.switches), len(found.links)
    if nodes > MOST_NODES or links > MOST_LINKS:
        raise RequestError(
            f"read {what}: it has {nodes} nodes and {links} links; "
            f"at most {MOST_NODES} and {MOST_LINKS} are possible. Write a smaller network"
        )


def shown(names: Iterable[str]) -> str:
    """Format names as "a, b, c and 4 more"."""
    listed = list(names)
    more = f" and {len(listed) - MOST_SHOWN} more" if len(listed) > MOST_SHOWN else ""
    return ", ".join(listed[:MOST_SHOWN]) + more


def check_roles(found: Found, roles: Roles, what: str) -> None:
    """Raise `RequestError` if users or servers are not named, or are no hosts of the network."""
    if not roles.users or not roles.servers:
        missing = "users" if not roles.users else "servers"
        first, *_ = found.hosts or ("h1",)
        last = found.hosts[-1] if found.hosts else "h2"
        raise RequestError(
            f"{missing}: which hosts of {what} are users and which are servers? Write for example "
            f"'users: [{first}], servers: [{last}]'. Its hosts are "
            f"{shown(_with_neighbours(found)) or 'none'}"
        )
    for key in ("users", "servers", "multipath"):
        for name in getattr(roles, key) or ():
            if name not in found.hosts:
                raise RequestError(f"{key}: host {unknown(name, found.hosts)}")
    if both := [name for name in roles.users if name in roles.servers]:
        raise RequestError(f"servers: '{both[0]}' is a user, too. Write it in one of both lists")
    for name in roles.multipath or ():
        if name not in roles.users:
            raise RequestError(f"multipath: '{name}' is no user: choose from {shown(roles.users)}")


def _with_neighbours(found: Found) -> list[str]:
    near: dict[str, list[str]] = {host: [] for host in found.hosts}
    for link in found.links:
        for here, there in ((link.a, link.b), (link.b, link.a)):
            if here in near:
                near[here].append(there)
    return [f"{host} (at {' and '.join(ends) or 'nothing'})" for host, ends in near.items()]


def as_params(found: Found, roles: Roles) -> dict[str, object]:
    """Return the network as plain data, the parameters of `nodes_and_links`.

    Hosts without a role are left out, with their links.
    """
    idle = [host for host in found.hosts if host not in (*roles.users, *roles.servers)]
    _check_paths(found, roles, idle)
    if idle:
        found = found.noted(f"left out, neither users nor servers: {shown(idle)}")
    named = ids([*roles.users, *roles.servers, *found.switches])
    if changed := [f"{name} is {id}" for name, id in named.items() if name != id]:
        found = found.noted(f"names that the lab shortened: {shown(changed)}")
    links = [
        {"a": named[each.a], "b": named[each.b], **each.shape}
        for each in found.links
        if each.a in named and each.b in named
    ]
    multipath = roles.multipath
    return {
        "users": [{"id": named[each], "subflows": roles.subflows} for each in roles.users],
        "servers": [named[each] for each in roles.servers],
        "switches": [named[each] for each in found.switches],
        "links": links,
        "multipath": None if multipath is None else [named[each] for each in multipath],
        "notes": list(found.notes),
    }


def _check_paths(found: Found, roles: Roles, idle: Sequence[str]) -> None:
    """Raise `RequestError` if a user cannot reach its server, or only over the hosts `idle`."""
    near = _neighbours(found, found.hosts)
    without = _neighbours(found, [*roles.users, *roles.servers])
    for n, user in enumerate(roles.users):
        server = roles.servers[n % len(roles.servers)]
        if user not in hops_to(near, server):
            part = hops_to(near, user)
            raise RequestError(
                f"users: no path leads from '{user}' to its server '{server}': the network has "
                f"several parts, and that of '{user}' is {shown(part)}"
            )
        if user not in hops_to(without, server):
            between = [host for host in idle if len(near[host]) > 1]
            raise RequestError(
                f"users: '{user}' reaches its server '{server}' only over {shown(between)}, and "
                f"here a host forwards nothing. Make {between[0]} a switch, or choose other hosts"
            )


def _neighbours(found: Found, hosts: Iterable[str]) -> dict[str, set[str]]:
    """Map each switch, and each of these hosts, to the nodes beside it."""
    near: dict[str, set[str]] = {each: set() for each in (*found.switches, *hosts)}
    for link in found.links:
        if link.a in near and link.b in near:
            near[link.a].add(link.b)
            near[link.b].add(link.a)
    return near


def ids(names: Sequence[str]) -> dict[str, str]:
    """Map each name to a different name that can be part of an interface's name.

    A name that fits stays as it is. From any other, only its ASCII letters and digits are kept.
    """
    kept = {name: name for name in names if re.fullmatch(r"[A-Za-z][A-Za-z0-9]{0,8}", name)}
    taken = set(kept.values())
    for name in names:
        if name not in kept:
            kept[name] = next(each for each in _candidates(name) if each not in taken)
            taken.add(kept[name])
    return {name: kept[name] for name in names}


def _candidates(name: str) -> Iterable[str]:
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    stem = "".join(filter(str.isalnum, plain)) or "n"
    stem = stem if stem[0].isalpha() else f"n{stem}"
    yield stem[:LONGEST]
    for n in count(2):
        yield f"{stem[: LONGEST - len(str(n))]}{n}"
