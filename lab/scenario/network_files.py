"""A scenario's network that another program has described: Mininet, MiniEdit, or GraphML.

`topology: {mininet: FILE, ...}` is replaced by `topology: {kind: nodes_and_links, ...}`, the lists
of what the file describes. A run records these lists, so it can be repeated without the file.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field

from lab import extensions, inputs
from lab.errors import RequestError
from lab.inputs import Digests
from lab.scenario.files import Files
from lab.scenario.parts import Part, Rate
from lab.scenario.schema import validate
from lab.topologies import found, graphml, miniedit, mininet_options, mininet_topo
from lab.topologies.found import Found, Roles

Packets = Annotated[int, Field(ge=1, le=100_000)]
Subflows = Annotated[int, Field(ge=1, le=8)]
Names = tuple[str, ...]


class _Hosts(Part):
    """Which hosts of the file are users and servers, and rates and queues where it gives none.

    Users with several links are multipath, unless `multipath` names others. `subflows` is the
    number of addresses of each interface of a user. Without `rate_mbps`, links without a rate have
    no limit.
    """

    users: Names = ()
    servers: Names = ()
    multipath: Names | None = None
    subflows: Subflows = 1
    rate_mbps: Rate | None = None
    queue_packets: Packets = mininet_options.QUEUE_PACKETS

    @property
    def roles(self) -> Roles:
        return Roles(self.users, self.servers, self.multipath, self.subflows)

    def with_rates(self, read: Found) -> Found:
        """Return the network with `rate_mbps` at each link without a rate. Say how many links have
        none, and how many have no delay."""
        bare = sum("rate_mbps" not in each.shape for each in read.links)
        rate = {} if self.rate_mbps is None else {"rate_mbps": self.rate_mbps}
        links = (replace(each, shape={**rate, **each.shape}) for each in read.links)
        chosen = f"rate {self.rate_mbps:g} Mb/s (rate_mbps)" if rate else "no limit of the rate"
        still = sum("delay_ms" not in each.shape for each in read.links)
        rows = ((bare, chosen), (still, "no delay"))
        notes = (f"{count} of {len(read.links)} links: {text}" for count, text in rows if count)
        return replace(read, links=tuple(links)).noted(*notes)


class Mininet(_Hosts):
    """The keys of `topology` with `mininet`. `topo` is a name in `topos` of the file, `params` are
    the arguments."""

    mininet: str
    topo: str | None = None
    params: dict[str, Any] = {}


class MiniEdit(_Hosts):
    """The keys of `topology` with `miniedit`."""

    miniedit: str


class GraphML(Part):
    """The keys of `topology` with `graphml`. Users and servers are at nodes of the file.

    `rate_mbps` and `queue_packets` are for links about which the file says nothing. `km_per_ms` is
    the speed at which a distance becomes a delay.
    """

    graphml: str
    users: tuple[str | Names, ...] = ()
    servers: Names = ()
    subflows: Subflows = 1
    rate_mbps: Rate = 1000
    km_per_ms: Annotated[float, Field(gt=0, le=300, json_schema_extra={"unit": "km/ms"})] = 200
    queue_packets: Packets = 100


KEYS: dict[str, type[Mininet] | type[MiniEdit] | type[GraphML]] = {
    "mininet": Mininet,
    "miniedit": MiniEdit,
    "graphml": GraphML,
}

READERS = {"mininet": mininet_topo, "miniedit": miniedit, "graphml": graphml}


def with_network(
    raw: dict[str, Any], source: str, files: Files | None
) -> tuple[dict[str, Any], Digests]:
    """Return the content of a scenario file with the network that its `topology` names, as lists.
    Also return the digests of the files that were read, by path.

    Return `raw` itself if its topology names no such file. Raise `RequestError`, which begins with
    `source`, if the file cannot be read.
    """
    topology = raw.get("topology")
    keys = [each for each in KEYS if isinstance(topology, dict) and each in topology]
    if not keys or not isinstance(topology, dict):
        return raw, {}
    place = f"{source}: topology"
    if len(keys) > 1 or {"kind", "file"} & {*topology}:
        raise RequestError(f"{place}: write only one of kind, file, {', '.join(KEYS)}")
    if files is None:
        raise RequestError(f"{place}.{keys[0]}: a path is accepted only in a scenario file")
    choice = validate(KEYS[keys[0]], topology, source, "topology")
    try:
        params, digests = _network(choice, files)
    except RequestError as error:
        of_key = re.match(r"[a-z_]+: ", str(error))
        raise RequestError(f"{place}{'.' if of_key else ': '}{error}") from error
    names = inputs.by_name(digests)
    params["read_from"] = [{"name": name, "sha256": names[name]} for name in names]
    return raw | {"topology": {"kind": "nodes_and_links", **params}}, digests


def _network(
    choice: Mininet | MiniEdit | GraphML, files: Files
) -> tuple[dict[str, object], Digests]:
    if isinstance(choice, Mininet):
        return _of_mininet(choice, files)
    path, content = files.read(choice.miniedit if isinstance(choice, MiniEdit) else choice.graphml)
    digests = {str(path): hashlib.sha256(content).hexdigest()}
    if isinstance(choice, MiniEdit):
        read = miniedit.read(path.name, content, choice.queue_packets)
        return _params(choice.with_rates(read), choice.roles, path.name), digests
    defaults = graphml.Defaults(choice.rate_mbps, choice.km_per_ms, choice.queue_packets)
    read = graphml.read(path.name, content, defaults)
    users = [(each,) if isinstance(each, str) else each for each in choice.users]
    read, *hosts = graphml.with_hosts(read, users, choice.servers, path.name)
    roles = Roles(hosts[0], hosts[1], subflows=choice.subflows)
    return _params(read, roles, path.name), digests


def _of_mininet(choice: Mininet, files: Files) -> tuple[dict[str, object], Digests]:
    path = files.folder / choice.mininet
    code = extensions.readable("topology", path, files.refused(path))
    inputs.watch(str(code.path))
    with inputs.collected() as opened:
        read = mininet_topo.read(
            code.path, code.source, choice.topo, choice.params, choice.queue_packets
        )
    upstream = f"{mininet_topo.upstream()}/"
    further = {path: sha for path, sha in opened.items() if not path.startswith(upstream)}
    digests = {str(code.path): code.sha256, **further}
    return _params(choice.with_rates(read), choice.roles, code.path.name), digests


def _params(read: Found, roles: Roles, what: str) -> dict[str, object]:
    found.check_roles(read, roles, what)
    return found.as_params(read, roles)
