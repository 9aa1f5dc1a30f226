"""A stand-in for Mininet's Python modules, for machines without Mininet.

It has what a file for `mn --custom` needs to describe a network: the class `Topo` with its methods,
Mininet's ready topologies, and `irange`. Everything else of Mininet (`Mininet`, `TCLink`, `CLI`...)
can be imported, but not used.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class Topo:
    """Nodes and links, with the methods of `mininet.topo.Topo`."""

    def __init__(self, *args: Any, **params: Any) -> None:
        self.hopts = params.pop("hopts", {})
        self.sopts = params.pop("sopts", {})
        self.lopts = params.pop("lopts", {})
        self._nodes: dict[str, dict[str, Any]] = {}
        self._links: list[dict[str, Any]] = []
        self._ports: dict[str, set[Any]] = {}
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
    ) -> int:
        port1, port2 = self._port(node1, port1), self._port(node2, port2)
        ends = {"node1": node1, "node2": node2, "port1": port1, "port2": port2}
        self._links.append({**(opts or self.lopts), **ends})
        return len(self._links)

    def _port(self, node: str, port: Any) -> Any:
        """Return `port`, or else the next number: from 0 at hosts, from 1 at switches."""
        self._nodes.setdefault(node, {})
        used = self._ports.setdefault(node, set())
        port = len(used) + self.isSwitch(node) if port is None else port
        used.add(port)
        return port

    def isSwitch(self, name: str) -> bool:
        return bool(self._nodes[name].get("isSwitch", False))

    def nodes(self, sort: bool = True) -> list[str]:
        return list(self._nodes)

    def switches(self, sort: bool = True) -> list[str]:
        return [each for each in self._nodes if self.isSwitch(each)]

    def hosts(self, sort: bool = True) -> list[str]:
        return [each for each in self._nodes if not self.isSwitch(each)]

    def nodeInfo(self, name: str) -> dict[str, Any]:
        return self._nodes[name]

    def iterLinks(
        self, withKeys: bool = False, withInfo: bool = False
    ) -> Iterator[tuple[Any, ...]]:
        for key, info in enumerate(self._links, 1):
            more = (*((key,) if withKeys else ()), *((info,) if withInfo else ()))
            yield (info["node1"], info["node2"], *more)

    def links(
        self, sort: bool = False, withKeys: bool = False, withInfo: bool = False
    ) -> list[tuple[Any, ...]]:
        return list(self.iterLinks(withKeys, withInfo))


class SingleSwitchTopo(Topo):
    def build(self, k: int = 2, **opts: Any) -> None:
        switch = self.addSwitch("s1")
        for n in irange(1, k):
            self.addLink(self.addHost(f"h{n}"), switch)


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


def irange(start: int, end: int) -> range:
    """Return the integers from `start` to `end`, both included."""
    return range(start, end + 1)


PROVIDED: dict[str, dict[str, Any]] = {
    "mininet.topo": {"Topo": Topo, "SingleSwitchTopo": SingleSwitchTopo, "LinearTopo": LinearTopo},
    "mininet.topolib": {"TreeTopo": TreeTopo},
    "mininet.util": {"irange": irange},
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
