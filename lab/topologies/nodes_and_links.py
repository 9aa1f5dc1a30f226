"""Build any network of hosts and switches from lists of its nodes and links."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, count, product
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

from controller.paths import hops_to
from controller.units import ns_from_ms
from lab.errors import RequestError
from lab.topologies.parallel_paths import USUAL_PACKETS, Delay, WithTrace, traces
from lab.topologies.topology import Link, Node, Topology, at_start, down_directions
from lab.topologies.trace import check_jitter

MOST_NODES, MOST_LINKS = 1000, 5000
Id = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9]{0,8}$")]
Text = Annotated[str, Field(max_length=1000)]


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class User(Part):
    """A host that talks to one server. `subflows` is the number of addresses per interface.

    By default, user number n talks to server number n; after the last server comes the first one.
    """

    id: Id
    subflows: Annotated[int, Field(ge=1, le=8)] = 1
    server: str = ""


class Server(Part):
    """A server whose links are interfaces, each with an address of its own. A server that is only
    named has one address, whatever its links."""

    id: Id
    multihomed: bool = True


class Wire(WithTrace):
    """A link between the nodes `a` and `b`. Delay and jitter are one way.

    Without `rate_mbps` and a trace with a rate, the link has no limit. By default, `id` is `A-B`,
    or `A-B-2` if this name is taken.
    """

    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{0,30}$")] = ""
    a: Id
    b: Id
    rate_mbps: Annotated[float, Field(gt=0, le=1_000_000)] | None = None
    delay_ms: Delay = 0
    jitter_ms: Delay = 0
    queue_packets: Annotated[int, Field(ge=1, le=100_000)] = USUAL_PACKETS

    @model_validator(mode="after")
    def fits_its_trace(self) -> Wire:
        check_jitter(self.read_trace(), self.jitter_ms)
        has_rate = self.is_limited(self.rate_mbps)
        self.check_directions(has_rate, self.delay_ms, self.jitter_ms)
        self.check_queue(has_rate, self.queue_packets)
        return self

    @property
    def is_shaped(self) -> bool:
        return bool(
            self.rate_mbps
            or self.delay_ms
            or self.jitter_ms
            or self.loss
            or self.loss_both
            or self.reorder
            or self.duplicate
            or self.trace
            or self.has_directions
        )


class ReadFile(Part):
    """A file from which the network was read, or that the code in such a file has read."""

    name: Annotated[str, Field(max_length=300)]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Params(Part):
    """The parameters of a topology with `kind: nodes_and_links`.

    Every name in `links` must be in `users`, `servers` or `switches`. By default, `multipath` has
    the users with several addresses. `read_from` and `notes` say from which files the lab has read
    the network, and what it had to decide; people who write such a list leave them out.
    """

    users: tuple[User, ...] = Field(min_length=1, max_length=MOST_NODES)
    servers: tuple[Id | Server, ...] = Field(min_length=1, max_length=MOST_NODES)
    switches: tuple[Id, ...] = Field((), max_length=MOST_NODES)
    links: tuple[Wire, ...] = Field(min_length=1, max_length=MOST_LINKS)
    multipath: tuple[Id, ...] | None = None
    read_from: tuple[ReadFile, ...] = ()
    notes: tuple[Text, ...] = ()

    @property
    def server_ids(self) -> tuple[str, ...]:
        return tuple(each.id if isinstance(each, Server) else each for each in self.servers)

    @property
    def multihomed(self) -> frozenset[str]:
        """The servers of which each link is an interface."""
        found = (each for each in self.servers if isinstance(each, Server) and each.multihomed)
        return frozenset(each.id for each in found)

    @model_validator(mode="after")
    def fits_together(self) -> Params:
        for problem in _problems(self):
            raise ValueError(problem)
        return self


def notes(params: BaseModel) -> tuple[str, ...]:
    """Return what the lab had to decide when it read a network from a file; () for parameters of
    another kind of topology."""
    return params.notes if isinstance(params, Params) else ()


def _problems(params: Params) -> Iterator[str]:
    users, servers = [each.id for each in params.users], [*params.server_ids]
    names = Counter([*users, *servers, *params.switches])
    if twice := next((name for name, times in names.items() if times > 1), None):
        yield f"two nodes are called '{twice}': give each a name of its own"
    for user in params.users:
        if user.server and user.server not in servers:
            yield f"user '{user.id}' talks to '{user.server}': choose from {', '.join(servers)}"
    for link in params.links:
        for end in (link.a, link.b):
            if end not in names:
                yield (
                    f"link {link.a}-{link.b} ends at '{end}', which is no node: "
                    "add it to users, servers or switches"
                )
        if link.a == link.b:
            yield f"link {link.a}-{link.b} joins a node with itself: leave it out"
        if link.a in users and link.b in users:
            yield f"link {link.a}-{link.b} joins two users, who do not talk to each other"
    ids = Counter(each.id for each in params.links if each.id)
    if twice := next((id for id, times in ids.items() if times > 1), None):
        yield f"two links are called '{twice}': give each a name of its own"
    linked = {end for link in params.links for end in (link.a, link.b)}
    for host in (*users, *servers):
        if host not in linked:
            yield f"'{host}' has no link: add one, or leave the host out"


def build(params: Params, rate_scale: float = 1.0) -> Topology:
    """Return the network in the lists. It may need more switches than listed:

    h1 --unlimited-- h1x1 ==shaped== s1       a shaped link of a host, for example with a rate
    s1 ==first== s1x1 -- s2, s1 ==second== s1x2 -- s2     several links between two switches
    s1 ==first== h2x -- h2, s2 ==second== h2x     a server with several links

    A queue fills only between two switches, and only there a link is measured. A server that is not
    multihomed has one address, and therefore one link. The additional switches are named after the
    node beside them.
    """
    return _Builder(params, rate_scale).topology()


class _Builder:
    """Makes the nodes and links of one network. `nodes` and `links` are what was made so far."""

    def __init__(self, params: Params, rate_scale: float) -> None:
        self.params, self.rate_scale = params, rate_scale
        self.users = {each.id for each in params.users}
        self.of_each_link = self.users | params.multihomed  # hosts with an interface per link
        self.names = {*self.users, *params.server_ids, *params.switches}
        self.added: list[str] = []
        self.links: list[Link] = []
        self.home: dict[str, str] = {}  # the first link of each user
        ends = Counter(frozenset((each.a, each.b)) for each in params.links)
        self.several = {pair for pair, times in ends.items() if times > 1}
        of_server = Counter(end for each in params.links for end in (each.a, each.b))
        shaped = {end for each in params.links if each.is_shaped for end in (each.a, each.b)}
        self.front = {
            server: self._front(server)
            for server in params.server_ids
            if server not in params.multihomed
            and (of_server[server] > 1 or server in shaped or self._is_at_host(server))
        }

    def _is_at_host(self, server: str) -> bool:
        hosts = {*self.users, *self.params.server_ids}
        return any(
            {each.a, each.b} <= hosts for each in self.params.links if server in (each.a, each.b)
        )

    def _front(self, server: str) -> str:
        """Add a switch that joins all links of a server, and return its name."""
        switch = self._switch(server, "")
        self.links.append(Link(f"{server}-{switch}", switch, server))
        return switch

    def _switch(self, near: str, number: int | str) -> str:
        """Add a switch that is named after the node `near`, and return its name."""
        stem = f"{near[:5]}x"
        names = (f"{stem}{n}" for n in count(1))
        name = f"{stem}{number}"
        while name in self.names or name in self.added:
            name = next(names)
        self.added.append(name)
        return name

    def topology(self) -> Topology:
        for link, id in zip(self.params.links, _link_ids(self.params.links), strict=True):
            self._add(link, id)
        servers = self.params.server_ids
        users = tuple(
            Node(
                each.id,
                "user",
                self.home[each.id],
                each.subflows,
                each.server or servers[n % len(servers)],
            )
            for n, each in enumerate(self.params.users)
        )
        switches = (Node(each, "switch") for each in (*self.params.switches, *self.added))
        nodes = (*users, *switches, *(Node(each, "server") for each in servers))
        topology = Topology("nodes_and_links", nodes, tuple(self.links))
        _check_paths(topology)
        multipath = self.params.multipath
        if multipath is None:
            ends = Counter(end for link in self.links for end in (link.a, link.b))
            multipath = tuple(each.id for each in users if ends[each.id] * each.subflows > 1)
        wires = self.params.links
        traced = traces(zip(_link_ids(wires), wires, strict=True))
        whole = Topology(
            "nodes_and_links", nodes, topology.links, multipath=multipath, traces=traced
        )
        return self._directed(whole)

    def _directed(self, topology: Topology) -> Topology:
        """Return the network with what the directions of its links have of their own. Raise
        `RequestError` if a link with `up` or `down` has no such directions."""
        wires = self.params.links
        directed = {
            id: each
            for id, each in zip(_link_ids(wires), wires, strict=True)
            if each.has_directions
        }
        if not directed:
            return topology
        down = down_directions(topology)
        for id in directed:
            if id not in down:
                raise RequestError(
                    f"topology nodes_and_links: link {id} leads data to users both ways, or not at "
                    "all: which way is 'down'? Leave out its up and down"
                )
        links = (
            directed[each.id].directed(each, down[each.id], self.rate_scale)
            if each.id in directed
            else each
            for each in topology.links
        )
        return replace(topology, links=tuple(links))

    def _add(self, link: Wire, id: str) -> None:
        a, b = (self.front.get(end, end) for end in (link.a, link.b))
        hosts = [end for end in (a, b) if end in self.of_each_link]
        access = dict.fromkeys(hosts, id)
        if link.is_shaped or len(hosts) > 1:
            for host in hosts:
                links = sum(host in (each.a, each.b) for each in self.links)
                middle = self._switch(host, links + 1)
                access[host] = f"{host}-{middle}"
                self.links.append(Link(access[host], middle, host))
                a, b = (middle if end == host else end for end in (a, b))
        if not hosts and frozenset((link.a, link.b)) in self.several:
            middle = self._switch(a, 1)
            self.links.append(Link(f"{middle}-{b}", middle, b))
            b = middle
        for host in hosts:
            self.home.setdefault(host, access[host])
        self.links.append(_shaped(link, id, a, b, self.rate_scale))


def _shaped(link: Wire, id: str, a: str, b: str, rate_scale: float) -> Link:
    shaped = Link(
        id,
        a,
        b,
        link.rate_bps(link.rate_mbps, rate_scale),
        ns_from_ms(link.delay_ms),
        ns_from_ms(link.jitter_ms),
        queue_packets=link.queue_packets,
    )
    shaped, trace = link.impaired(shaped), link.read_trace()
    return link.queued(at_start(shaped, trace.steps[0], rate_scale) if trace else shaped)


def _link_ids(links: tuple[Wire, ...]) -> Iterator[str]:
    taken = {each.id for each in links if each.id}
    for each in links:
        further = (f"{each.a}-{each.b}-{n}" for n in count(2))
        names = chain([f"{each.a}-{each.b}"], further)
        name = each.id or next(name for name in names if name not in taken)
        taken.add(name)
        yield name


def _check_paths(topology: Topology) -> None:
    """Raise `RequestError` if an interface of a user has no path to the user's server, or one
    without a limit, over which a simulation would send endlessly many packets."""
    every = _neighbours(topology, topology.links)
    unlimited = _neighbours(topology, [each for each in topology.links if not each.rate_bps])
    hops: dict[str, tuple[dict[str, int], dict[str, int]]] = {}
    for user in topology.users:
        server = topology.server_of(user)
        for front, switch in product(sorted(every[server]), every[user]):
            if front not in hops:
                hops[front] = hops_to(every, front), hops_to(unlimited, front)
            reached, without_limit = hops[front]
            if switch not in reached:
                raise RequestError(
                    f"topology nodes_and_links: no path leads from '{user}' over '{switch}' to its "
                    f"server '{server}': add a link, or choose another server"
                )
            if switch in without_limit:
                raise RequestError(
                    f"topology nodes_and_links: no link between '{user}' and '{server}' over "
                    f"'{switch}' has a rate, so nothing limits their traffic. Give one a rate; for "
                    "a network of Mininet, 'topology.rate_mbps' is the rate of links without bw"
                )


def _neighbours(topology: Topology, links: Iterable[Link]) -> dict[str, set[str]]:
    """Map each node to the switches beside it."""
    switches = set(topology.switches)
    near: dict[str, set[str]] = {each.id: set() for each in topology.nodes}
    for link in links:
        near[link.a] |= {link.b} & switches
        near[link.b] |= {link.a} & switches
    return near
