"""Associate the WiFi stations of a newly built network with their access points."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable

from lab.engines.mininet.kernel.station_radio import Target
from lab.engines.mininet.machine import shell
from lab.errors import CommandFailed, LabError
from lab.topologies.topology import Interface, radio_port

TIMEOUT_S, RETRY_S = 20, 2
TRIES = 4  # at least: on a busy machine, one try can take as long as the timeout
Run = Callable[[str, list[str], str], str]  # a host, a command, its purpose; returns its output


def associate(stations: Iterable[Interface], target: Callable[[str], Target], run: Run) -> None:
    """Associate each station with its access point by `iw connect`; return when all are associated.

    `stations` are radio interfaces; the field `switch` of each is its access point. `target(ap)`
    returns the SSID, frequency and MAC address of an access point. `run(host, argv, doing)` runs a
    command inside a host; `doing` says its purpose, for error messages.

    Every `RETRY_S` seconds, retry the stations that hostapd does not list yet. Raise `LabError` if,
    after at least `TRIES` tries, no further station has appeared in the lists for `TIMEOUT_S`
    seconds.
    """
    waiting = {each.mac: each for each in stations}
    deadline, retry, tries = time.monotonic() + TIMEOUT_S, 0.0, 0
    while waiting:
        if time.monotonic() > retry:
            for each in waiting.values():
                _join(each, target(each.switch), run)
            retry, tries = time.monotonic() + RETRY_S, tries + 1
        before = len(waiting)
        for ap in {each.switch for each in waiting.values()}:
            argv = ["iw", "dev", radio_port(ap), "station", "dump"]
            listed = shell.run(argv, f"list the stations of {ap}").split()
            waiting = {mac: each for mac, each in waiting.items() if mac not in listed}
        if len(waiting) < before:
            deadline = time.monotonic() + TIMEOUT_S
        if waiting and time.monotonic() > deadline and tries >= TRIES:
            names = ", ".join(f"{each.node} with {each.switch}" for each in waiting.values())
            raise LabError(
                f"associate {names}: no answer from hostapd in {TIMEOUT_S} s. "
                "Try: ./run_lab.sh clean, then run it once more"
            )


def _join(station: Interface, ap: Target, run: Run) -> None:
    argv = ["iw", "dev", station.name, "connect", ap.ssid, str(ap.mhz), ap.mac]
    with contextlib.suppress(CommandFailed):  # it may be associating; hostapd's list decides
        run(station.node, argv, f"associate {station.node} with {ap.ap}")
