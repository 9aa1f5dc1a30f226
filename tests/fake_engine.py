"""An engine without a network, at constant rates. Tests read what was asked of it, and make it
fail."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from controller.units import mbps_from_bps
from lab.errors import LabError
from lab.frame import ApSample, Frame, UserSample
from lab.run.engine import Answer, Engine, Reported
from lab.run.recorder import Recorder
from lab.run.report import ConnectionReport, MptcpVerdict, Report, SubflowReport
from lab.scenario.engine_table import ENGINES, Entry
from lab.scenario.schema import Scenario
from lab.scenario.targets import Change, SetDemand, SetLinkUp, SetStrategyParameter

REPORT = Report(
    (
        ConnectionReport(
            "c1",
            "ue2",
            4.0,
            subflows=(
                SubflowReport("c1/1", ("wifi1",), 1, 3.0),
                SubflowReport("c1/2", ("lte1",), 2, 1.0),
            ),
        ),
    ),
    MptcpVerdict(True, 1, 0),
    "reno",
)


class FakeEngine(Engine):
    """Each user gets its demand, or 1 Mb/s without one."""

    on_advance: Callable[[float], None] = staticmethod(lambda until_s: None)
    step_s = 0.0
    fails_to_open = ""
    asks = False  # changes of parameters wait for an `Answer` in `reports`

    def open(self, scenario: Scenario, recorder: Recorder) -> None:
        self.topology, self.changes, self.closed = scenario.network, [], False
        self.stops_s: list[float] = []  # where it ran to without a sample
        self.folder, self.reports = recorder.folder, []
        self.rates = dict.fromkeys(self.topology.users, 1.0)
        recorder.command(["ip", "link", "add", "s1-eth1"])
        if self.fails_to_open:
            raise LabError(self.fails_to_open)

    def run_until(self, until_s: float) -> float:
        self.stops_s.append(until_s)
        return until_s

    def advance(self, until_s: float) -> list[Frame]:
        self.on_advance(until_s)
        time.sleep(self.step_s)
        users = {user: UserSample(rate) for user, rate in self.rates.items()}
        aps = {ap: ApSample(2.0, 0.5, 0.9) for ap in self.topology.ids("wifi", "lte")}
        return [Frame(until_s, aps, {}, users)]

    def apply(self, change: Change) -> int | None:
        self.changes.append(change)
        match change:
            case SetLinkUp("lte"):
                raise LabError("take link lte down: the fake refuses")
            case SetDemand(user, rate_bps):
                self.rates[user] = mbps_from_bps(rate_bps)
            case SetStrategyParameter() if self.asks:
                return len(self.changes)
        return None

    def news(self) -> list[Answer | Reported]:
        reports, self.reports = self.reports, []
        return reports

    def close(self) -> Report:
        self.closed = True
        return REPORT


class Slow(FakeEngine):
    """Slow enough to be interrupted by a signal."""

    step_s = 0.02


def register() -> None:
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
    from lab.cli.commands import cli

    sys.modules["fake_engine"] = sys.modules["__main__"]
    register()
    cli(prog_name="lab")
