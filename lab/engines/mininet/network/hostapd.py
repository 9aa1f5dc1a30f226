"""Start hostapd, the program of a WiFi access point, once for each access point."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from lab.engines.mininet.machine import shell
from lab.engines.mininet.machine.ledger import Ledger

SOCKETS = Path("/var/run/hostapd")  # for hostapd_cli


def radio(ap: str) -> str:
    """Return the name of the radio interface of an access point."""
    return f"{ap}-wlan1"


def start(folder: Path, interface: str, configuration: str) -> None:
    """Start hostapd on a radio interface. Its files are in `folder`."""
    file = _file(folder, interface, "apconf")
    file.write_text(configuration)
    shell.journal_command(["mkdir", "-p", str(folder)])
    shell.journal_command(["tee", str(file)], configuration)
    argv = ["hostapd", "-B", "-P", str(_file(folder, interface, "pid")), str(file)]
    shell.run(argv, f"start hostapd on {interface}")


def pid_files(folder: Path, aps: Iterable[str]) -> dict[str, Path]:
    """Return, by access point, the file into which its hostapd has written its process number."""
    return {ap: _file(folder, radio(ap), "pid") for ap in aps}


def record(ledger: Ledger, aps: Iterable[str]) -> None:
    """Record in the ledger, for each access point, its hostapd and the files of this program."""
    ledger.record("folder", path=str(SOCKETS), only_if_empty=True)
    for ap in aps:
        ledger.record("file", path=str(SOCKETS / radio(ap)))
    word = f"mn{os.getpid()}_"  # in the names of hostapd's configuration files
    ledger.record("daemon", program="hostapd", word=word)


def _file(folder: Path, interface: str, suffix: str) -> Path:
    return folder / f"mn{os.getpid()}_{interface}.{suffix}"
