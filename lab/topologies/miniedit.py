"""Read a network that was drawn with MiniEdit: its `.mn` file, which is JSON."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from controller.bounded_json import JsonRefused, parse_object
from lab.errors import RequestError
from lab.topologies import mininet_options
from lab.topologies.found import MOST_BYTES, Found, FoundLink, check_size, shown

OF_DRAWING = {"hostname", "nodeNum", "sched", "switchType", "controllers"}  # in every file


class _Options(BaseModel):
    model_config = ConfigDict(extra="allow")
    hostname: str = ""
    switchType: str = ""


class _Node(BaseModel):
    number: str | int = ""
    opts: _Options = _Options()

    def name(self, letter: str) -> str:
        return self.opts.hostname or f"{letter}{self.number}"


class _Link(BaseModel):
    src: str
    dest: str
    opts: dict[str, Any] = {}


class _File(BaseModel):
    """The parts of a `.mn` file that describe the network (`saveTopology` in MiniEdit)."""

    hosts: list[_Node]
    switches: list[_Node]
    links: list[_Link]
    controllers: Any = None


def read(name: str, content: bytes, queue_packets: int) -> Found:
    """Return the network in a `.mn` file. Links without a queue size get `queue_packets`.

    Raise `RequestError` if it is no such file, or if it has a router.
    """
    try:
        file = _File.model_validate(parse_object(content, MOST_BYTES))
    except JsonRefused as error:
        raise RequestError(f"read {name}: {error}. MiniEdit saves such a file") from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise RequestError(
            f"read {name}: it is no file of MiniEdit: {place}: {first['msg'].lower()}"
        ) from error
    routers = [each.name("r") for each in file.switches if each.opts.switchType == "legacyRouter"]
    if routers:
        raise RequestError(
            f"read {name}: {shown(routers)}: a router cannot be part of the lab's network. "
            "Draw a switch instead"
        )
    links, ignored = [], set()
    for each in file.links:
        shape = mininet_options.shape(each.opts, f"{each.src}-{each.dest}", queue_packets)
        links.append(FoundLink(each.src, each.dest, shape))
        ignored |= mininet_options.left_out(each.opts)
    found = Found(
        tuple(each.name("h") for each in file.hosts),
        tuple(each.name("s") for each in file.switches),
        tuple(links),
        tuple(_notes(file, ignored)),
    )
    _check_ends(found, name)
    check_size(found, name)
    return found


def _notes(file: _File, ignored: set[str]) -> list[str]:
    notes = [f"options of links left out: {shown(sorted(ignored))}"] if ignored else []
    options = [(each.opts.model_extra or {}).items() for each in (*file.hosts, *file.switches)]
    of_nodes = {key for each in options for key, value in each if _is_set(value)} - OF_DRAWING
    if of_nodes:
        notes.append(f"options of nodes left out: {shown(sorted(of_nodes))}")
    if file.controllers:
        notes.append("MiniEdit's controllers are left out: the lab's controller takes their place")
    return notes


def _is_set(value: Any) -> bool:
    """Return whether an option was chosen. MiniEdit saves "0" for a box that is not ticked."""
    return value not in ("", "0", 0, None, [], {}, "default")


def _check_ends(found: Found, name: str) -> None:
    known = {*found.hosts, *found.switches}
    for link in found.links:
        for end in (link.a, link.b):
            if end not in known:
                raise RequestError(
                    f"read {name}: link {link.a}-{link.b} ends at '{end}', "
                    "which is neither a host nor a switch of the file"
                )
