"""An engine for the tests of the dashboard: numbers like the testbed's, without a network.

`python tests/dashboard/testbed.py run testbed_wifi_lte --engine testbed` is the command line with
this engine.
"""

from __future__ import annotations

import math
import random
import sys
import time
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from lab.errors import LabError, RequestError
from lab.frame import Frame
from lab.run.engine import Engine
from lab.run.outcome import Outcome
from lab.run.recorder import Recorder
from lab.run.report import ConnectionReport, MptcpVerdict, Report, SubflowReport
from lab.run.runner import run
from lab.scenario import loading as scenarios
from lab.scenario.engine_table import ENGINES, Entry
from lab.scenario.loading import Overrides
from lab.scenario.targets import (
    Change,
    SetLinkUp,
    SetStationRate,
    SetStrategy,
    SetStrategyParameter,
)

SLOW_SEED = 99  # with this seed, simulated time is at most half as fast as real time
FAILING_SEED = (
    98  # a run with this seed fails while the file FAILS is beside the folder of the runs
)
FAILS = "fails"
EVERY = ("reno", "cubic", "lia", "olia", "balia", "wvegas")
PATHS = {"ue2": ("wifi1", "lte1"), "ue3": ("lte1", "wifi1"), "ue1": ("wifi1",), "ue4": ("lte1",)}


class Testbed(Engine):
    """A meter limits Tier 2, and is halved while its access point is full."""

    def open(self, scenario: Any, recorder: Any) -> None:
        if scenario.seed == FAILING_SEED and (recorder.folder.parents[1] / FAILS).exists():
            raise LabError("the testbed has no power. Switch it on")
        self.topology, self.recorder, self.now = scenario.network, recorder, 0.0
        self.strategy = {"name": scenario.strategy.name, "params": dict(scenario.strategy.params)}
        self.meter = {"wifi1": None, "lte1": None}
        self.far, self.rng = 1.0, random.Random(scenario.seed)
        self.is_slow = scenario.seed == SLOW_SEED
        recorder.command(["ip", "link", "add", "s1-eth1"])

    def run_until(self, until_s: float) -> float:
        return until_s

    def advance(self, until_s: float) -> list[Frame]:
        if self.is_slow:
            time.sleep(2 * (until_s - self.now))
        if int(until_s / 2) > int(self.now / 2):
            self._decide(until_s)
        self.now = until_s
        return [self._frame(until_s)]

    def apply(self, change: Change) -> None:
        match change:
            case SetStrategy(name, params):
                self.strategy = {"name": name, "params": dict(params)}
                self.meter = {"wifi1": None, "lte1": None}
            case SetStrategyParameter(key, value):
                self.strategy["params"][key] = value
            case SetLinkUp(link):
                raise RequestError(f"link {link}: this engine cannot take it down")
            case SetStationRate("wifi1", "ue3", rate_bps):
                self.far = rate_bps / 19_100_000

    def close(self) -> Report:
        connections = tuple(
            ConnectionReport(
                user,
                user,
                4.0,
                subflows=tuple(
                    SubflowReport(f"{user}/{n}", ("s1", ap), n, 3.0)
                    for n, ap in enumerate(PATHS[user], 1)
                    if n == 1 or user in self.topology.multipath
                ),
            )
            for user in self.topology.users
        )
        verdict = MptcpVerdict(True, len(self.topology.multipath), 0)
        return Report(connections, verdict, "reno")

    def _decide(self, t: float) -> None:
        if self.strategy["name"] != "meter_throttling":
            return
        for ap in self.meter:
            limit, full = self.meter[ap], self._occupancy(ap)
            if limit is None:
                new, action, why = 0.1, "meter", "first limit at the floor R_m"
            elif full >= self.strategy["params"]["cth"]:
                new, action = max(0.1, limit / 2), "meter"
                why = (
                    f"MAC occupancy {full:.2f} >= {self.strategy['params']['cth']}: "
                    f"limit {limit:.2f} Mb/s halved to {new:.2f} Mb/s"
                )
            else:
                new, action = min(5.0, limit * 1.4), "meter"
                why = f"MAC occupancy {full:.2f}: limit raised from {limit:.2f} to {new:.2f} Mb/s"
            action = "keep" if new == limit else action
            self.meter[ap] = new
            self.recorder.event(
                t,
                "decision",
                strategy="meter_throttling",
                ap=ap,
                action=action,
                meter_mbps=new,
                reason=why,
            )

    def _occupancy(self, ap: str) -> float:
        return min(
            1.0,
            (0.99 if ap == "wifi1" else 0.9)
            - (0.1 if self.meter[ap] else 0)
            + self.rng.uniform(-0.08, 0.03),
        )

    def _frame(self, t: float) -> Frame:
        multipath = bool(self.topology.multipath)
        ap = {}
        for name, capacity in (("wifi1", 10.5), ("lte1", 11.5)):
            meter = self.meter[name]
            tier2 = (
                0.0
                if not multipath
                else min(meter if meter is not None else 9.0, 3.4 if name == "wifi1" else 2.6)
            )
            slowed = (1.0 if name == "lte1" else 1 - 0.085 * tier2 / self.far) if tier2 else 1.0
            tier1 = max(0.5, capacity * slowed * 0.94 - tier2)
            tier1 *= min(1, t / 2) * self.rng.uniform(0.95, 1.03)
            ap[name] = {
                "tier1_mbps": tier1,
                "tier2_mbps": tier2 * self.rng.uniform(0.85, 1.05),
                "mac_occupancy": self._occupancy(name),
                "meter_mbps": meter,
                "stations": 3,
            }
        w, lte = ap["wifi1"], ap["lte1"]
        user = {
            "ue1": w["tier1_mbps"] * 0.5,
            "ue2": w["tier1_mbps"] * 0.5 + lte["tier2_mbps"],
            "ue3": lte["tier1_mbps"] * 0.5 + w["tier2_mbps"],
            "ue4": lte["tier1_mbps"] * 0.5,
        }
        sf = {}
        for name in self.topology.users:
            for n, at in enumerate(PATHS[name][: 2 if name in self.topology.multipath else 1], 1):
                rtt = (
                    (38 if at == "wifi1" else 95)
                    + 12 * math.sin(t / 3 + n)
                    + self.rng.uniform(-4, 4)
                )
                sf[f"{name}/{n}"] = {
                    "mbps": 1.0,
                    "cwnd": 20 + (t * 4 + n * 9) % 25,
                    "rtt_ms": rtt,
                    "tier": n,
                    "backup": False,
                    "user": name,
                    "ap": at,
                }
        link = {"mbps_ab": w["tier1_mbps"], "mbps_ba": 0, "backlog": 3, "loss": 0.0}
        users = {
            name: {"mbps": rate, "held_back_kb": 40.0 if name in self.topology.multipath else 0.0}
            for name, rate in user.items()
        }
        return Frame.from_json({"t": t, "ap": ap, "link": {"wifi": link}, "user": users, "sf": sf})


def register() -> None:
    ENGINES["testbed"] = Entry(
        f"{__name__}:Testbed",
        EVERY,
        ENGINES["sim"].schedulers,
        {},
        real_time=False,
    )


def finished(
    folder: Path, *settings: str, strategy: str = "none", engine: str = "testbed"
) -> Outcome:
    """A finished run of testbed_wifi_lte, made by the real runner; it says that its engine is
    `engine`."""
    of = scenarios.load("testbed_wifi_lte", Overrides(strategy=strategy, settings=settings))
    folder.mkdir(parents=True)
    return run(of, Testbed(), Recorder(folder, of, engine))


def simulated(folder: Path, name: str, *settings: str) -> Outcome:
    """A finished run of the scenario `name`, made by the simulator."""
    from lab.engines.sim.engine import SimEngine

    of = scenarios.load(name, Overrides(settings=settings))
    folder.mkdir(parents=True)
    return run(of, SimEngine(), Recorder(folder, of, "sim"))


if __name__ == "__main__":
    from lab.cli.commands import cli

    register()
    cli(prog_name="lab")
