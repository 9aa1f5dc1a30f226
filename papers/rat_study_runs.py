"""The experiments of the RAT study (RAT: radio access technology), and the numbers measured in each
run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lab.results.documents import FinishedRun
from lab.results.statistics import mean
from papers.base import Case
from papers.relations import Numbers

CUBIC, LIA, OLIA = "cubic", "lia", "olia"
SENDERS_CELL = "wifi1"  # a path through this cell counts as WiFi, any other as LTE
ROMAN = {1: "I", 2: "II", 3: "III"}


@dataclass(frozen=True)
class Cell:
    """One experiment of the study. Each experiment is one point in a figure of the study.

    `setup` is the number of the study's setup, 1 to 3. `wifi` is the WiFi standard, such as "11n5"
    for 802.11n at 5 GHz. `parallel` is the number of connections per node. `interfaces` is "both",
    "wifi" or "lte".
    """

    setup: int
    wifi: str
    parallel: int
    volume_mb: int = 15
    buffer_kb: int = 1000
    interfaces: str = "both"
    cc: str = LIA

    @property
    def about(self) -> str:
        """All parameters except the congestion control, as text for tables."""
        only = "" if self.interfaces == "both" else f", {self.interfaces} only"
        size = f"{self.parallel} x, {self.volume_mb} MB, {self.buffer_kb} KB"
        return f"Setup {ROMAN[self.setup]}, {self.wifi}, {size}{only}"

    @property
    def name(self) -> str:
        """A name made of all parameters. The function `cell` turns it back into the experiment."""
        setup = (self.setup, self.wifi, self.parallel, self.volume_mb, self.buffer_kb)
        return "-".join(map(str, (*setup, self.interfaces, self.cc)))

    @property
    def case(self) -> Case:
        settings = (
            f"topology.wifi={self.wifi}",
            f"topology.interfaces={self.interfaces}",
            f"traffic_parallel={self.parallel}",
            f"traffic_volume_mb={self.volume_mb}",
            f"multipath.receive_buffer_kb={self.buffer_kb}",
            "sample_interval_s=5",
        )
        return Case(self.name, f"rat_setup_{self.setup}", settings, self.cc)


def cell(name: str) -> Cell:
    """Return the experiment whose `Cell.name` is `name`."""
    setup, wifi, parallel, volume, buffer, interfaces, cc = name.split("-")
    return Cell(int(setup), wifi, int(parallel), int(volume), int(buffer), interfaces, cc)


def measure(case: Case, run: FinishedRun) -> Numbers:
    """Return the numbers T, W and L of a run in Mb/s. They are means over all receivers.

    T is the volume that a receiver got, divided by the time until all of it had arrived. W is the
    part of T that came over WiFi, and L is the part that came over LTE.
    """
    return _measured(run, _until_the_last)


def measure_each_connection(_case: Case, run: FinishedRun) -> Numbers:
    """Measure like `measure`, but with another T: the sum of the rates of a receiver's connections.
    The rate of a connection is its volume divided by the time that this connection took."""

    def rate_mbps(sent_mbit: list[float], took_s: list[float]) -> float:
        return sum(sent / took for sent, took in zip(sent_mbit, took_s, strict=True))

    return _measured(run, rate_mbps)


def measure_with_start(start_s: float) -> Callable[[Case, FinishedRun], Numbers]:
    """Return a function that measures like `measure`, but adds `start_s` to each receiver's time,
    as if the transfer began before the first packet."""

    def measured(_case: Case, run: FinishedRun) -> Numbers:
        def rate_mbps(sent_mbit: list[float], took_s: list[float]) -> float:
            return sum(sent_mbit) / (max(took_s) + start_s)

        return _measured(run, rate_mbps)

    return measured


Rate = Callable[[list[float], list[float]], float]


def _until_the_last(sent_mbit: list[float], took_s: list[float]) -> float:
    return sum(sent_mbit) / max(took_s)


def _measured(run: FinishedRun, rate_mbps: Rate) -> Numbers:
    """Return T, W and L in Mb/s. `rate_mbps` computes T of a receiver from two lists: the volumes
    (Mbit) and the times (s) of the receiver's connections."""
    result = run.result
    duration_s = result["duration_s"]
    nodes = []
    for user in result["users"]:
        connections = [each for each in result["connections"] if each["user"] == user]
        took_s = [each["completion_s"] or duration_s for each in connections]
        parts = {True: 0.0, False: 0.0}
        for subflow in (each for connection in connections for each in connection["subflows"]):
            parts[SENDERS_CELL in subflow["path"]] += subflow["throughput_mbps"] * duration_s
        total = rate_mbps([each["throughput_mbps"] * duration_s for each in connections], took_s)
        nodes.append((total, total * parts[True] / max(1e-9, sum(parts.values()))))
    total, wifi = mean([node for node, _ in nodes]), mean([node for _, node in nodes])
    return {"T": total, "W": wifi, "L": total - wifi}
