"""An engine that can be questioned: constant rates, no network, and it does what a test tells it to do wrong."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from lab.engines import ENGINES, Change, Engine, Entry
from lab.errors import LabError

REPORT = {
    "connections": [
        {
            "id": "c1",
            "user": "ue2",
            "throughput_mbps": 4.0,
            "subflows": [
                {"id": "c1/1", "path": ["wifi1"], "tier": 1, "throughput_mbps": 3.0},
                {"id": "c1/2", "path": ["lte1"], "tier": 2, "throughput_mbps": 1.0},
            ],
        }
    ],
    "mptcp": {"verified": True, "joins": 1, "fallbacks": 0},
    "cc": "reno",
    "overload": {"overloaded": False, "reasons": []},
}


class FakeEngine(Engine):
    """Users get what their demand says, 1 Mb/s without one."""

    on_advance: Callable[[float], None] = staticmethod(lambda until_s: None)
    step_s = 0.0
    fails_to_open = ""

    def open(self, topology: Any, scenario: Any, recorder: Any) -> None:
        self.topology, self.changes, self.closed = topology, [], False
        self.rates = dict.fromkeys(topology.users, 1.0)
        recorder.command(["ip", "link", "add", "s1-eth1"])
        if self.fails_to_open:
            raise LabError(self.fails_to_open)

    def advance(self, until_s: float) -> list[dict[str, Any]]:
        self.on_advance(until_s)
        time.sleep(self.step_s)
        users = {user: {"mbps": rate} for user, rate in self.rates.items()}
        aps = {
            ap: {"tier1_mbps": 2.0, "tier2_mbps": 0.5, "mac_occupancy": 0.9}
            for ap in self.topology.ids("wifi", "lte")
        }
        return [{"t": until_s, "ap": aps, "user": users, "sf": {}}]

    def apply(self, change: Change) -> None:
        self.changes.append(change)
        if change.target == "link.lte.up":
            raise LabError("take link lte down: the fake refuses")
        if change.target.startswith("user."):
            self.rates[change.target.split(".")[1]] = change.scaled

    def close(self) -> dict[str, Any] | None:
        self.closed = True
        return REPORT


class Slow(FakeEngine):
    """Takes its time, so that a signal finds it at work."""

    step_s = 0.02


def register() -> None:
    """Make `--engine fake` and `--engine slow` known."""
    every = ("reno", "cubic", "lia", "olia", "balia", "wvegas")
    for name, cls in (("fake", "FakeEngine"), ("slow", "Slow")):
        ENGINES[name] = Entry(
            f"fake_engine:{cls}",
            every,
            ("lowest_rtt",),
            {"scheduler": "the fake has one"},
            real_time=False,
        )


if __name__ == "__main__":
    from lab.__main__ import cli

    sys.modules["fake_engine"] = sys.modules["__main__"]
    register()
    cli(prog_name="lab")
