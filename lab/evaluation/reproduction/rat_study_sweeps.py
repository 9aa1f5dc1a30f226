"""List the settings that the RAT study (RAT: radio access technology) does not state and that may
decide its claims."""

from __future__ import annotations

from lab.evaluation.reproduction.base import Case
from lab.evaluation.reproduction.rat_study_claims import CLAIMS
from lab.evaluation.reproduction.rat_study_runs import (
    cell,
    measure_each_connection,
    measure_with_start,
)
from lab.evaluation.reproduction.sweeps import Point, Sweep, point, with_cases

FILLED = ("N2", "N5", "N6", "N7", "N9", "N10", "N12", "N14", "H5")
SEVERAL = ("N2", "N3", "N6", "N9", "N10", "N14", "S5", "H5")
SHALLOW = "topology.lte_queue_kb=300"
START = measure_with_start(0.5)


def _one_or_five(case: str) -> bool:
    return cell(case).parallel in (1, 5)


def _usual_buffer(case: str) -> bool:
    return cell(case).buffer_kb == 1000


def _every(_case: str) -> bool:
    return True


def _losing(percent: float) -> Point:
    return point(f"{percent:g} %", f"topology.wifi_loss={percent / 100:g}")


def _shared_buffer(case: Case) -> tuple[str, ...]:
    """Return settings that divide the receive buffer among the connections of a node."""
    each = cell(case.name)
    return (f"multipath.receive_buffer_kb={each.buffer_kb / each.parallel:g}",)


def _three_times_the_rates(case: Case) -> tuple[str, ...]:
    """Return settings with which all cells carry three times as much and the volume is the same. A
    rate scale multiplies volumes too, and results are divided by it."""
    return ("rate_scale=3", f"traffic_volume_mb={cell(case.name).volume_mb / 3:g}")


RAT_STUDY = (
    Sweep(
        "loss",
        "Loss in the WiFi cells that retransmissions do not repair",
        "The study states no loss. Its cells are indoors, with ten radios in a room. A TCP "
        "connection that loses packets needs time to fill its share, so several connections "
        "carry more than one.",
        with_cases(CLAIMS, FILLED, _one_or_five),
        (Point("0 %"), _losing(1), _losing(3)),
    ),
    Sweep(
        "rates",
        "Rates of all cells",
        "The study states no rates, only that WiFi carries about three times as much as LTE in "
        "Setup I. On the page a node has 12 Mb/s of WiFi (802.11n at 5 GHz) and 4 of LTE, which "
        "connections fill with every congestion control. The study's cells can carry three times "
        "as much; the figures are then divided by three.",
        with_cases(CLAIMS, ("N4", "N9", "S2", "S3"), _every),
        (Point("12 and 4 Mb/s"), Point("36 and 12 Mb/s", _three_times_the_rates)),
    ),
    Sweep(
        "several",
        "What the throughput of several connections is",
        "The study divides a volume by the time to transfer it, with iperf, which reports each "
        "connection. It does not say whether the time ends with the last connection of a node, or "
        "whether the rates of the connections, each over its own time, are added.",
        with_cases(CLAIMS, SEVERAL, _every),
        (Point("until the last has ended"), Point("sum of rates", None, measure_each_connection)),
    ),
    Sweep(
        "lte_buffer",
        "Buffer of the LTE cell, and what the time of a transfer includes",
        "The study states no buffer of the base station; 1000 kB take two seconds at 4 Mb/s. It "
        "explains claims by the time to establish connections, but does not say what its time "
        "includes. Programs begin on ten nodes by remote shells, and LTE leaves its idle state; "
        "here the time begins with the first packet, or half a second before.",
        with_cases(CLAIMS, ("V1", "V2", "V3", "V4", "V5", "H3"), _usual_buffer),
        (
            Point("1000 kB"),
            Point("1000 kB, 0.5 s before", None, START),
            point("300 kB", SHALLOW),
            point("300 kB, 0.5 s before", SHALLOW, measure=START, runs="300 kB"),
        ),
    ),
    Sweep(
        "buffer_of",
        "What the receive buffer belongs to",
        "The study states a receive buffer of 640 to 1200 kB and ten connections per node, but "
        "not whether each connection has it or all of a node together. Each connection "
        "transfers 1.5 MB.",
        with_cases(CLAIMS, ("B1", "B4", "B5"), _every),
        (Point("each connection"), Point("all of a node", _shared_buffer)),
    ),
)
