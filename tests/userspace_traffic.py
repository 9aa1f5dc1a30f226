"""Traffic on the network of `userspace_network`, and its rate."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from traffic_scripts import COUNT, SEND
from userspace_bridges import eventually
from userspace_network import Network

from lab.engines.mininet.traffic import processes

TCP = 6
PACE_BPS = 4_000_000
STALLED_S, MOST_LOOKS = 0.5, 8
FAST = {"interval_s": 0.5}


def start(network: Network, strategy: str, **params: object) -> Network:
    network.start_pox(strategy, **{**FAST, **params})
    eventually(lambda: network.lines("ready"), "connect all switches")
    return network


def download(
    network: Network,
    protocol: int,
    source: str = "10.2.0.1",
    pace_bps: int = PACE_BPS,
    port: int = 5001,
) -> Path:
    """Endless download. A line with time and total bytes is appended to the returned file."""
    progress = network.folder / f"progress-{time.monotonic_ns()}"
    network.start_inside("server", SEND, str(protocol), str(port), str(pace_bps))
    eventually(lambda: f":{port}" in network.inside("server", "ss", "-Hltn"), "listen")
    network.start_inside("user", COUNT, str(protocol), str(port), source, str(progress))
    eventually(lambda: progress.exists(), "receive the first bytes")
    return progress


def upload(network: Network, source: str, port: int = 5003) -> Path:
    """Endless upload from the address `source`; as `download`."""
    progress = network.folder / f"progress-{time.monotonic_ns()}"
    sending, counting = (script.replace("10.0.0.1", source) for script in (SEND, COUNT))
    network.start_inside("user", sending, str(TCP), str(port), str(PACE_BPS))
    eventually(lambda: f":{port}" in network.inside("user", "ss", "-Hltn"), "listen")
    network.start_inside("server", counting, str(TCP), str(port), "10.0.0.1", str(progress))
    eventually(lambda: progress.exists(), "receive the first bytes")
    return progress


def traffic_program(network: Network, host: str) -> Callable[..., dict[str, Any]]:
    """Start the emulation's traffic program; the returned function sends it one request."""
    program = network.spawn_inside(
        host, sys.executable, "-SE", "-m", processes.PROGRAM, cwd=processes.PROJECT
    )

    def send(**request: Any) -> dict[str, Any]:
        program.stdin.write(json.dumps(request) + "\n")
        program.stdin.flush()
        answer: dict[str, Any] = json.loads(program.stdout.readline())
        return answer

    return send


def mbps(progress: Path, over_s: float) -> float:
    """Received rate over the next seconds, by the clock of the receiver."""

    def last() -> tuple[float, int]:
        at, total = progress.read_text().splitlines()[-1].split()
        return float(at), int(total)

    before = last()
    time.sleep(over_s)
    after = last()
    now = time.monotonic()
    end = after[0] if now - after[0] < STALLED_S else now
    return (after[1] - before[1]) * 8 / 1e6 / max(end - before[0], over_s / 2)


def held_to(measure: Callable[[], float], expected_mbps: float, within: float) -> None:
    """Measure until the rate is as expected: a busy machine is slow for a while."""
    seen: list[float] = []
    while not seen or abs(seen[-1] - expected_mbps) > within * expected_mbps:
        assert len(seen) < MOST_LOOKS, f"{seen} Mb/s, and not {expected_mbps:.3f}"
        seen.append(measure())
