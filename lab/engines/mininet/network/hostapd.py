"""Start hostapd, the program of a WiFi access point, once for each access point."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from lab.engines.mininet.machine import shell


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


def _file(folder: Path, interface: str, suffix: str) -> Path:
    return folder / f"mn{os.getpid()}_{interface}.{suffix}"
