"""A stand-in for Mininet's Python modules, for machines without Mininet.

It has what a file for `mn --custom` needs to describe a network: the class `Topo` with its methods,
Mininet's ready topologies, `irange`, and log functions that write nothing. Everything else of
Mininet (`Mininet`, `TCLink`, `CLI`...) can be imported, but not used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any


class Topo:
    """Nodes and links, with the methods of `mininet.topo.Topo`."""

    def __init__(self, *args: Any, **params: Any) -> None:
        self.hopts = params.pop("hopts", {})
        self.sopts = params.pop("sopts", {})
        self.lopts = params.pop("lopts", {})
        self._nodes: dict[str, dict[str, Any]] = {}
        self._links: dict[frozenset[str], dict[Any, dict[str, Any]]] = {}  # by ends and key
        self._ports: dict[str, dict[Any, tuple[str, Any]]] = {}  # what is at each port of a node
        self.build(*args, **params)

    def build(self, *args: Any, **params: Any) -> None:
        pass

    def addNode(self, name: str, **opts: Any) -> str:
        self._nodes[name] = opts
        return name

    def addHost(self, name: str, **opts: Any) -> str:
        return self.addNode(name, **(opts or self.hopts))

    def addSwitch(self, name: str, **opts: Any) -> str:
        return self.addNode(name, isSwitch=True, **(opts or self.sopts))

    def addLink(
        self,
        node1: str,
        node2: str,
        port1: Any = None,
        port2: Any = None,
        key: Any = None,
        **opts: Any,
    ) -> Any:
        port1, port2 = self.addPort(node1, node2, port1, port2)
        for node in (node1, node2):
            self._nodes.setdefault(node, {})
        between = self._links.setdefault(frozenset((node1, node2)), {})
        key = max([0, *(k for k in between if isinstance(k, int))]) + 1 if key is None else key
        ends = {"node1": node1, "node2": node2, "port1": port1, "port2": port2}
        between[key] = {**(opts or self.lopts), **ends}
        return key

    def addPort(self, src: str, dst: str, sport: Any = None, dport: Any = None) -> tuple[Any, Any]:
        """Return `sport` and `dport`, or else the next number: from 0 at hosts, 1 at switches."""
        of_src, of_dst = (self._ports.setdefault(each, {}) for each in (src, dst))
        sport = len(of_src) + self.isSwitch(src) if sport is None else sport
        dport = len(of_dst) + self.isSwitch(dst) if dport is None else dport
        of_src[sport], of_dst[dport] = (dst, dport), (src, sport)
        return sport, dport

    def port(self, src: str, dst: str) -> Any:
        """Return the two ports of the link between these nodes, or a list if there are several."""
        ports = [(own, at[1]) for own, at in self._ports[src].items() if at[0] == dst]
        return ports[0] if len(ports) == 1 else ports

    def isSwitch(self, name: str) -> bool:
        return bool(self._nodes[name].get("isSwitch", False))

    def nodes(self, sort: bool = True) -> list[str]:
        return self.sorted(self._nodes) if sort else list(self._nodes)

    def switches(self, sort: bool = True) -> list[str]:
        return [each for each in self.nodes(sort) if self.isSwitch(each)]

    def hosts(self, sort: bool = True) -> list[str]:
        return [each for each in self.nodes(sort) if not self.isSwitch(each)]

    def nodeInfo(self, name: str) -> dict[str, Any]:
        return self._nodes[name]

    def setNodeInfo(self, name: str, info: dict[str, Any]) -> None:
        self._nodes[name] = info

    def linkInfo(self, src: str, dst: str, key: Any = None) -> dict[str, Any]:
        """Return the options of the link that `addLink` called `key`, else of the first one."""
        between = self._links[frozenset((src, dst))]
        return between[min(between) if key is None else key]

    def setlinkInfo(self, src: str, dst: str, info: dict[str, Any], key: Any = None) -> None:
        between = self._links[frozenset((src, dst))]
        between[min(between) if key is None else key] = info

    def iterLinks(
        self, withKeys: bool = False, withInfo: bool = False
    ) -> Iterator[tuple[Any, ...]]:
        for between in self._links.values():
            for key, info in between.items():
                more = (*((key,) if withKeys else ()), *((info,) if withInfo else ()))
                yield (info["node1"], info["node2"], *more)

    def links(
        self, sort: bool = False, withKeys: bool = False, withInfo: bool = False
    ) -> list[tuple[Any, ...]]:
        found = list(self.iterLinks(withKeys, withInfo))
        size = 3 if withKeys else 2
        return sorted(found, key=lambda link: [*map(natural, link[:size])]) if sort else found

    @staticmethod
    def sorted(items: Iterable[str]) -> list[str]:
        return sorted(items, key=natural)


class SingleSwitchTopo(Topo):
    def build(self, k: int = 2, **opts: Any) -> None:
        switch = self.addSwitch("s1")
        for n in irange(1, k):
            self.addLink(self.addHost(f"h{n}"), switch)


class SingleSwitchReversedTopo(Topo):
    def build(self, k: int = 2) -> None:
        switch = self.addSwitch("s1")
        for n in irange(1, k):
            self.addLink(self.addHost(f"h{n}"), switch, port1=0, port2=k - n + 1)


class MinimalTopo(SingleSwitchTopo):
    def build(self) -> None:  # type: ignore[override]
        SingleSwitchTopo.build(self, k=2)


class LinearTopo(Topo):
    def build(self, k: int = 2, n: int = 1, **opts: Any) -> None:
        last = None
        for i in irange(1, k):
            switch = self.addSwitch(f"s{i}")
            for j in irange(1, n):
                self.addLink(self.addHost(f"h{i}" if n == 1 else f"h{j}s{i}"), switch)
            if last:
                self.addLink(switch, last)
            last = switch


class TreeTopo(Topo):
    def build(self, depth: int = 1, fanout: int = 2) -> None:
        self.hostNum = self.switchNum = 1
        self.addTree(depth, fanout)

    def addTree(self, depth: int, fanout: int) -> str:
        if depth == 0:
            self.hostNum += 1
            return self.addHost(f"h{self.hostNum - 1}")
        self.switchNum += 1
        node = self.addSwitch(f"s{self.switchNum - 1}")
        for _ in range(fanout):
            self.addLink(node, self.addTree(depth - 1, fanout))
        return node


class TorusTopo(Topo):
    def build(self, x: int, y: int, n: int = 1) -> None:
        if x < 3 or y < 3:
            raise ValueError("a torus has at least 3 x 3 switches")
        places = [(i, j) for i in range(x) for j in range(y)]
        for i, j in places:
            place = f"{i + 1}x{j + 1}"
            switch = self.addSwitch(f"s{place}", dpid=f"{(i + 1) * 256 + j + 1:x}")
            for k in irange(1, n):
                self.addLink(self.addHost(f"h{place}" if n == 1 else f"h{place}x{k}"), switch)
        for i, j in places:
            here = f"s{i + 1}x{j + 1}"
            self.addLink(here, f"s{i + 1}x{(j + 1) % y + 1}")
            self.addLink(here, f"s{(i + 1) % x + 1}x{j + 1}")


def natural(text: object) -> list[tuple[int, str]]:
    """Return a key that sorts h2 before h10."""
    parts = re.split(r"(\d+)", str(text))
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def irange(start: int, end: int) -> range:
    """Return the integers from `start` to `end`, both included."""
    return range(start, end + 1)


def _quiet(*args: Any, **options: Any) -> None:
    """Stands for Mininet's log functions."""


def starts_nothing(node: object, *args: Any, **options: Any) -> None:
    """Stands for the constructors of `STARTERS` while a file is read."""
    raise RuntimeError(
        f"{type(node).__name__} would start a part of a network now. The lab only reads the "
        "topology: put what starts it below 'if __name__ == \"__main__\":'"
    )


class _Starter:
    __init__ = starts_nothing


STARTERS = {"mininet.net": "Mininet", "mininet.node": "Node"}  # of their modules
LOG = ("setLogLevel", "debug", "error", "info", "output", "warn", "warning")
PROVIDED: dict[str, dict[str, Any]] = {
    "mininet.topo": {
        each.__name__: each
        for each in (Topo, SingleSwitchTopo, SingleSwitchReversedTopo, MinimalTopo, LinearTopo)
    },
    "mininet.topolib": {"TreeTopo": TreeTopo, "TorusTopo": TorusTopo},
    "mininet.util": {"irange": irange, "natural": natural},
    "mininet.log": {
        **dict.fromkeys(LOG, _quiet),
        "lg": SimpleNamespace(**dict.fromkeys(LOG, _quiet)),
    },
    "mininet.net": {"Mininet": type("Mininet", (_Starter,), {})},
    "mininet.node": {
        name: type(name, (_Starter,), {})
        for name in ("Node", "Host", "CPULimitedHost", "Controller", "RemoteController")
    },
}


class Finder(MetaPathFinder, Loader):
    """Finds every module `mininet...`; put it into `sys.meta_path` only while a file is read."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        is_ours = name.partition(".")[0] == "mininet"
        return ModuleSpec(name, self, is_package=True) if is_ours else None

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__.update(PROVIDED.get(module.__name__, {}))
        name = module.__name__
        module.__dict__["__getattr__"] = lambda wanted: _absent(name, wanted)


def _absent(module: str, name: str) -> type:
    """Return a class in place of one of Mininet's. It cannot be instantiated."""
    if name.startswith("__"):
        raise AttributeError(name)

    def refuse(self: object, *args: object, **options: object) -> None:
        raise RuntimeError(
            f"{module}.{name} needs Mininet, which is not on this machine: "
            "type ./run_lab.sh setup-emulation"
        )

    return type(name, (), {"__init__": refuse, "__module__": module})
