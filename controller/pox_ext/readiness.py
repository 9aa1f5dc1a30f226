"""Record which switches are ready: both their tables are written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

TABLE_0, TABLE_1 = "table 0", "table 1"


class Readiness:
    """Collect the tables that are written, by switch."""

    def __init__(self, switches: Iterable[str]) -> None:
        self._parts: dict[str, set[str]] = {switch: set() for switch in switches}

    @property
    def complete(self) -> bool:
        """Return whether all switches are ready."""
        return all(len(parts) == 2 for parts in self._parts.values())

    def ready(self, switch: str, part: str) -> bool:
        """Note that a table is written; return True if it was the last one."""
        before = self.complete
        self._parts[switch].add(part)
        return self.complete and not before

    def lost(self, switch: str, part: str) -> None:
        """Note that a channel to a switch is closed."""
        self._parts[switch].discard(part)

    def complaints(self) -> Iterator[str]:
        """Yield a warning for each switch that is not ready."""
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
