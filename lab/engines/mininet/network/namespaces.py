"""Keep the network namespaces of stations mounted on files, within reach of the clean-up.

When a run is killed, its stations end. Open connections can keep the namespace of a station, with
its radio, for a minute longer. A mounted namespace can still be entered: `undo.namespace` does it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from lab.engines.mininet.kernel import mounts
from lab.engines.mininet.machine.ledger import Ledger


class KeptNamespaces:
    """Mount the network namespaces of stations on the files `folder`/STATION.netns."""

    def __init__(self, folder: Path, stations: Iterable[str]) -> None:
        self._files = {station: folder / f"{station}.netns" for station in stations}

    def record(self, ledger: Ledger) -> None:
        """Record the mounts in the ledger, before they are made."""
        for file in self._files.values():
            ledger.record("namespace", path=str(file))

    def mount(self, pids: Mapping[str, int]) -> None:
        """Mount the namespaces. `pids` has a process in the namespace of each station."""
        for station, file in self._files.items():
            mounts.keep_namespace(pids[station], file)

    def unmount(self) -> None:
        """Remove the mounts that exist, and their files."""
        for file in self._files.values():
            mounts.let_namespace_go(file)
