"""Find the connections that share arcs. An arc is one direction of a link.

A connection uses an arc if one of its paths crosses the arc. The neighbours of a connection are the
other connections that use at least one of the same arcs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence

from controller.graph import ArcUse

Paths = Mapping[str, Sequence[ArcUse]]  # by connection, in the order in which they appeared


class Sharing:
    """Hold which connections use each arc, and compute neighbours when they are needed.

    `users` maps the number of each arc to the names of the connections that use it.
    """

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._near: dict[str, set[str]] = {}
        self.users: dict[int, set[str]] = {}
        for name, own in paths.items():
            for path in own:
                for arc in path:
                    self.users.setdefault(arc, set()).add(name)

    def near(self, name: str) -> set[str]:
        """Return the neighbours of the connection `name`."""
        if name not in self._near:
            arcs = {arc for path in self._paths[name] for arc in path}
            self._near[name] = set[str]().union(*(self.users[arc] for arc in arcs)) - {name}
        return self._near[name]

    def together(self, start: Iterable[str]) -> set[str]:
        """Return `start` and all connections that share arcs with it, directly or through others.

        The paper (S-MPTCP) calls the result "Set".
        """
        found = set(start)
        waiting = deque(found)
        while waiting:
            more = self.near(waiting.popleft()) - found
            found |= more
            waiting.extend(more)
        return found

    def sets(self) -> Iterator[set[str]]:
        """Yield sets of connections such that only connections of the same set share arcs."""
        left = dict.fromkeys(self._paths)
        while left:
            found = self.together([next(iter(left))])
            left = {name: None for name in left if name not in found}
            yield found
