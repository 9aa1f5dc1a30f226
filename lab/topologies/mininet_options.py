"""The options of a Mininet link (`bw`, `delay`, `loss`, `max_queue_size`, `jitter`), as this lab's
rate, delay, loss and queue."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from lab.errors import RequestError, show
from lab.topologies.found import Value

QUEUE_PACKETS = 1000  # of netem and of Mininet's links without max_queue_size
FAST_MBPS = 1000  # Mininet limits no link above this rate
UNITS_MS = {"": 0.001, "s": 1000, "sec": 1000, "secs": 1000, "ms": 1, "msec": 1, "msecs": 1}
UNITS_MS |= {"us": 0.001, "usec": 0.001, "usecs": 0.001}
TIME = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-z]*)\s*")
SHAPES = ("bw", "delay", "loss", "max_queue_size", "jitter")
OF_THE_TOPO = ("node1", "node2", "port1", "port2", "params1", "params2", "cls", "use_htb")


def shape(options: Mapping[str, Any], link: str, queue_packets: int) -> dict[str, Value]:
    """Return the options of a link as keys of `nodes_and_links.Wire`.

    `link` names the link in errors; `queue_packets` is used without max_queue_size. Raise
    `RequestError` for a value that Mininet's `TCLink` could not use.
    """
    try:
        chosen = _of_both_ends(options)
        found: dict[str, Value] = {}
        if (bw := chosen.get("bw")) is not None:
            found["rate_mbps"] = _number("bw", bw, "Mb/s", 0, 1_000_000)
        for key in ("delay", "jitter"):
            if chosen.get(key) not in (None, ""):
                found[f"{key}_ms"] = _time_ms(key, chosen[key])
        if chosen.get("loss"):
            found["loss_both"] = _number("loss", chosen["loss"], "percent", 0, 100) / 100
        packets = chosen.get("max_queue_size")
        if packets is None:
            packets = queue_packets
        found["queue_packets"] = int(_number("max_queue_size", packets, "packets", 1, 100_000))
    except ValueError as error:
        raise RequestError(f"link {link}: {error}") from error
    return found


def left_out(options: Mapping[str, Any]) -> set[str]:
    """Return the options of a link that this lab has nothing for, such as `enable_red`."""
    whole = {**options, **(options.get("params1") or {}), **(options.get("params2") or {})}
    return {key for key, value in whole.items() if value} - {*SHAPES, *OF_THE_TOPO}


def _of_both_ends(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that shape a link. `params1` and `params2` are those of its two ends."""
    common = {key: options[key] for key in SHAPES if key in options}
    first, second = ({**common, **(options.get(key) or {})} for key in ("params1", "params2"))
    if any(first.get(key) != second.get(key) for key in SHAPES):
        raise ValueError(
            "params1 and params2 differ, and here a link has one rate, delay, loss and queue for "
            "both directions. Write the same in both"
        )
    return first


def _number(key: str, value: Any, unit: str, least: float, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        number = re.match(r"\s*(\d+(\.\d+)?)", value) if isinstance(value, str) else None
        cure = f": write {key}={number[1]}, a number in {unit}" if number else f" in {unit}"
        raise ValueError(f"{key}={show(value)} is not a number{cure}")
    if not least <= value <= most or (key == "bw" and value == 0):
        raise ValueError(f"{key}={show(value)} is out of range: {least:g} to {most:g} {unit}")
    return float(value)


def _time_ms(key: str, value: Any) -> float:
    """Return a time in ms. As in tc, a number without a unit is in microseconds."""
    found = None if isinstance(value, bool) else TIME.fullmatch(str(value).lower())
    if not found or found[2] not in UNITS_MS:
        raise ValueError(f"{key}={show(value)} is no time: write for example {key}='10ms'")
    return float(found[1]) * UNITS_MS[found[2]]
