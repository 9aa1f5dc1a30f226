"""Interfaces that can be switched off during a run, and what subflows they open."""

from __future__ import annotations

from dataclasses import dataclass

from lab.errors import RequestError, show, unknown
from lab.scenario import schema
from lab.scenario.schema import Scenario
from lab.topologies.topology import Interface, wire


@dataclass(frozen=True)
class SetInterfaceUp:
    """Remove the addresses of an interface of a host (`up` is False), or add them again. `name` is
    without the host, such as `wlan0`."""

    host: str
    name: str
    up: bool


@dataclass(frozen=True)
class SetEndpoint:
    """Let the addresses of an interface of a user open subflows, open backups, or open none, as the
    flags of `ip mptcp endpoint` do. Subflows that are open become backups (MP_PRIO), or end."""

    host: str
    name: str
    role: schema.RoleOfUser


def switchable(scenario: Scenario) -> dict[tuple[str, str], Interface]:
    """Return the interfaces that can change, by host and name, such as (`ue1`, `wlan0`).

    These are the interfaces of multipath users with several ones, and those of servers but the
    first, over which connections are opened. Users that walk have none: their radios change the
    access point.
    """
    topology = scenario.network
    if scenario.mobility or not topology.multipath:
        return {}
    wiring = wire(topology)
    found = [
        each for user in topology.multipath if len(wiring.of(user)) > 1 for each in wiring.of(user)
    ]
    found += [each for server in topology.ids("server") for each in wiring.of(server)[1:]]
    return {(each.node, short_name(each)): each for each in found}


def short_name(interface: Interface) -> str:
    return interface.name.removeprefix(f"{interface.node}-")


def endpoint_of(multipath: schema.Multipath, interface: Interface) -> schema.Endpoint | None:
    """Return what a scenario says of an interface."""
    place = (interface.node, short_name(interface))
    return next(
        (each for each in multipath.endpoints if (each.host, each.interface) == place), None
    )


def role_of(multipath: schema.Multipath, interface: Interface, usual: schema.Role) -> schema.Role:
    """Return what an interface is for at the start, `usual` if the scenario does not say it."""
    found = endpoint_of(multipath, interface)
    return found.role if found else usual


def check_endpoints(scenario: Scenario, source: str) -> None:
    """Raise `RequestError`, which begins with `source`, if an entry of `multipath.endpoints` does
    not fit the network."""
    known, seen = switchable(scenario), set[tuple[str, str]]()
    for n, each in enumerate(scenario.multipath.endpoints, 1):
        where = f"{source}: multipath.endpoints[{n}]"
        own = [name for host, name in known if host == each.host]
        if not own:
            hosts = ", ".join(dict.fromkeys(host for host, _ in known)) or "none"
            raise RequestError(
                f"{where}.host: {show(each.host)} is not one of the multipath users with several "
                f"interfaces that do not walk, nor a server with several. These are: {hosts}"
            )
        if each.interface not in own:
            raise RequestError(f"{where}.interface {unknown(each.interface, own)}")
        if (each.host, each.interface) in seen:
            raise RequestError(f"{where}: there is an entry for this interface already")
        if problem := _wrong_flags(each, each.host in scenario.network.users, own):
            raise RequestError(f"{where}.flags: {problem}")
        seen.add((each.host, each.interface))


def _wrong_flags(endpoint: schema.Endpoint, is_user: bool, own: list[str]) -> str:
    """Return why the flags are not for such an interface, or ""."""
    flags = endpoint.flags
    if is_user and "signal" in flags:
        return (
            "signal is for servers: a user's addresses open subflows themselves, and nobody "
            "connects to them. Choose subflow or backup"
        )
    if not is_user and ("signal" not in flags or {*flags} - {"signal", "backup"}):
        return f"{endpoint.host} is a server, which opens no subflows: choose signal, with backup"
    if is_user and not flags and endpoint.interface == own[0]:
        return _first(endpoint.host, endpoint.interface)
    return ""


def _first(user: str, name: str) -> str:
    return f"{user} opens its connections over {name}: choose subflow or backup"


class Interfaces:
    """Which interfaces are down, and which subflows the others open."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._all = switchable(scenario)
        self.down: set[Interface] = set()
        self._users = scenario.network.users
        self.roles: dict[Interface, schema.Role] = {
            each: role_of(scenario.multipath, each, "subflow" if host in self._users else "none")
            for (host, _), each in self._all.items()
        }

    def opens(self, interface: Interface) -> bool:
        """Return whether each connection has a subflow over an interface."""
        return interface not in self.down and self.roles.get(interface) != "none"

    def check(self, change: SetInterfaceUp | SetEndpoint, at_s: float) -> Interface | None:
        """Return the interface that changes at `at_s`, or None if it is already as wanted.

        Raise `RequestError` if the user would have no subflow left, or opens connections over this
        interface later.
        """
        user, name = change.host, change.name
        interface = self._all[user, name]
        if user not in self._users:
            is_up = interface not in self.down
            return interface if isinstance(change, SetInterfaceUp) and change.up != is_up else None
        own = [each for (whose, _), each in self._all.items() if whose == user]
        others = [each for each in own if each != interface]
        if isinstance(change, SetEndpoint):
            if change.role == self.roles[interface]:
                return None
            target, closes = f"endpoint.{user}.{name}", change.role == "none"
            if closes and interface == own[0]:
                raise RequestError(f"{target}: {_first(user, name)}")
        else:
            if change.up == (interface not in self.down):
                return None
            target, closes = f"iface.{user}.{name}.up", not change.up
        if closes and not any(map(self.opens, others)):
            raise RequestError(f"{target}: {user} has no other interface that opens subflows")
        if closes and interface == own[0] and (later_s := self._next_start_s(target, user, at_s)):
            raise RequestError(
                f"{target}: {user} opens its connections over {name}, the next one at "
                f"{later_s:g} s: let its traffic start earlier, or cut a link"
            )
        return interface

    def change(self, change: SetInterfaceUp | SetEndpoint, at_s: float) -> Interface | None:
        """Record a change, and return as `check` does."""
        interface = self.check(change, at_s)
        if interface is None:
            return None
        if isinstance(change, SetEndpoint):
            self.roles[interface] = change.role
        elif change.up:
            self.down.discard(interface)
        else:
            self.down.add(interface)
        return interface

    def _next_start_s(self, target: str, user: str, at_s: float) -> float | None:
        """Return when the next flow of a user starts, if the interface is not up again by then."""
        starts_s = [each.start_s for each in self._scenario.traffic if each.user == user]
        later_s = min((each for each in starts_s if each > at_s), default=None)
        back_s = [
            each.at_s
            for each in self._scenario.events
            if each.target == target and each.value is True and each.at_s > at_s
        ]
        return None if later_s is None or (back_s and min(back_s) <= later_s) else later_s
