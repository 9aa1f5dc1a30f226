"""Record which switches are ready, that is, have both table 0 and table 1 written.

Table 0 counts and meters traffic and is written with OpenFlow 1.3. Table 1 forwards packets and is
written with OpenFlow 1.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

TABLE_0, TABLE_1 = "table 0", "table 1"


class Readiness:
    """Hold which of the two tables of each switch have been written."""

    def __init__(self, switches: Iterable[str]) -> None:
        self._parts: dict[str, set[str]] = {switch: set() for switch in switches}

    @property
    def complete(self) -> bool:
        """Return whether both tables of every switch have been written."""
        return all(len(parts) == 2 for parts in self._parts.values())

    def ready(self, switch: str, part: str) -> bool:
        """Record that table `part` of `switch` has been written.

        Return True if only this table was missing, so that now both tables of every switch are
        written.
        """
        before = self.complete
        self._parts[switch].add(part)
        return self.complete and not before

    def lost(self, switch: str, part: str) -> None:
        """Record that the connection over which table `part` of `switch` is written has closed."""
        self._parts[switch].discard(part)

    def complaints(self) -> Iterator[str]:
        """Yield a warning, with advice, for each switch that is not ready."""
        for switch, parts in self._parts.items():
            if TABLE_1 not in parts:
                yield (
                    f"switch {switch} has not connected to POX. "
                    f"Try: ovs-vsctl get-controller {switch}"
                )
            elif TABLE_0 not in parts:
                yield (
                    f"switch {switch} has no OpenFlow 1.3 channel, so nothing is forwarded there. "
                    f"Try: ovs-vsctl set bridge {switch} protocols=OpenFlow10,OpenFlow13, "
                    "and give it a second controller (docs/formats.md)"
                )
