"""List the settings that a paper does not state and that may decide its claims, with the values
that they take."""

from __future__ import annotations

from collections.abc import Mapping

from lab.evaluation.reproduction import (
    dtmc,
    mp_sdn,
    mptcp_la,
    rat_study_claims,
    rat_study_runs,
)
from lab.evaluation.reproduction.base import Case
from lab.evaluation.reproduction.mptcp_la_runs import DYNAMIC, QUICK_PAIRS
from lab.evaluation.reproduction.sweeps import Point, Sweep, point, with_cases

FILLED = ("N2", "N4", "N5", "N6", "N7", "N8", "N9", "N10", "N12", "N14", "H5")
DTMC_CASES = {
    *(dtmc.first(n, dtmc.PLAIN) for n in (1, 2, 3, 4, 8, 15)),
    *(dtmc.first(n, dtmc.CHOSEN) for n in (4, 8, 15)),
}
LA_CASES = (
    "wifi-0.0001-",
    "wifi-0.001-",
    "alone-wifi-0.0001-",
    "alone-wifi-0.001-",
    "alone-lte-0-",
)


def _buffer(kb: int) -> Point:
    return point(f"{kb} kB", f"multipath.receive_buffer_kb={kb}")


def _few_losses(case: str) -> bool:
    return case.startswith((*LA_CASES, DYNAMIC))


def _one_or_five(case: str) -> bool:
    return rat_study_runs.cell(case).parallel in (1, 5)


def _usual_buffer(case: str) -> bool:
    return rat_study_runs.cell(case).buffer_kb == 1000


def _losing(percent: float) -> Point:
    return point(f"{percent:g} %", f"topology.wifi_loss={percent / 100:g}")


def _shared_buffer(case: Case) -> tuple[str, ...]:
    """Return settings that divide the receive buffer among the connections of a node."""
    cell = rat_study_runs.cell(case.name)
    return (f"multipath.receive_buffer_kb={cell.buffer_kb / cell.parallel:g}",)


SWEEPS: Mapping[str, tuple[Sweep, ...]] = {
    "dtmc": (
        Sweep(
            "buffer",
            "Receive buffer",
            "The paper does not state the receive buffer. Data waits there for late data of a long "
            "path. The smaller the buffer, the more often it is full, and the less they all carry.",
            with_cases(
                dtmc.CLAIMS, ("5, full mesh", "5, more", "6", "11"), DTMC_CASES.__contains__
            ),
            (_buffer(25), _buffer(50), Point("100 kB"), _buffer(200), _buffer(400)),
        ),
    ),
    "mp_sdn": (
        Sweep(
            "walkers",
            "Share of multipath users that walk, and how fast signals fade",
            "The paper does not state how many of the walking users are multipath users, nor the "
            "path loss. Only multipath users have a primary connection to choose. The farther a "
            "signal reaches, the less it matters which access point is chosen.",
            with_cases(mp_sdn.CLAIMS, ("8",), lambda _case: True),
            (
                Point("40 %, exponent 3"),
                point("100 %, exponent 3", "topology.multipath_percent=100"),
                point(
                    "100 %, exponent 4",
                    "topology.multipath_percent=100",
                    "topology.path_loss_exponent=4",
                ),
            ),
        ),
        Sweep(
            "m_floor",
            "Smallest occupancy that counts when the limit grows",
            "Eq (4) divides by the MAC occupancy, which is 0 in an idle cell. The paper does not "
            "say what happens then; here a smaller occupancy counts as this one. The smaller it "
            "is, the larger are the steps of the limit.",
            with_cases(mp_sdn.CLAIMS, ("6",), lambda _case: True),
            (
                point("0.01", "strategy.params.m_floor=0.01"),
                Point("0.05"),
                point("0.2", "strategy.params.m_floor=0.2"),
            ),
        ),
        Sweep(
            "increase",
            "How the limit grows",
            "The paper does not say whether a limit that nobody uses goes on growing.",
            with_cases(mp_sdn.CLAIMS, ("7",), lambda _case: True),
            (
                Point("by g, if used"),
                point("by g, always", "strategy.params.windup_guard=false"),
            ),
        ),
    ),
    "mptcp_la": (
        Sweep(
            "buffer",
            "Receive buffer",
            "The paper switches the automatic buffers off and does not state their size. The "
            "kernel's own size without them is about 64 kB; both paths together need 1000 kB.",
            with_cases(
                mptcp_la.claims(QUICK_PAIRS), ("3a", "4a", "5, 50", "6, after"), _few_losses
            ),
            (_buffer(64), _buffer(250), Point("1000 kB"), _buffer(4000)),
        ),
    ),
    "rat_study": (
        Sweep(
            "loss",
            "Loss in the WiFi cells that retransmissions do not repair",
            "The study states no loss. Its cells are indoors, with ten radios in a room. A TCP "
            "connection that loses packets needs time to fill its share, so several connections "
            "carry more than one.",
            with_cases(rat_study_claims.CLAIMS, FILLED, _one_or_five),
            (
                Point("0 %"),
                _losing(1),
                _losing(3),
            ),
        ),
        Sweep(
            "lte_buffer",
            "Buffer of the LTE cell",
            "The study states no buffer of the base station. 1000 kB take two seconds at 4 Mb/s.",
            with_cases(rat_study_claims.CLAIMS, ("V1", "V2", "H3"), _usual_buffer),
            (
                point("300 kB", "topology.lte_queue_kb=300"),
                Point("1000 kB"),
            ),
        ),
        Sweep(
            "lte_rtt",
            "Round trip of LTE",
            "The study explains claim V1 by the WiFi subflow, which begins first. The longer the "
            "round trip of LTE, the later its subflow begins, and the longer its slow start lasts.",
            with_cases(rat_study_claims.CLAIMS, ("V1", "V2"), lambda _case: True),
            (
                Point("60 ms"),
                point("400 ms", "topology.lte_rtt_ms=400"),
            ),
        ),
        Sweep(
            "buffer_of",
            "What the receive buffer belongs to",
            "The study states a receive buffer of 640 to 1200 kB and ten connections per node, but "
            "not whether each connection has it or all of a node together. Each connection "
            "transfers 1.5 MB.",
            with_cases(rat_study_claims.CLAIMS, ("B4", "B5"), lambda _case: True),
            (Point("each connection"), Point("all of a node", _shared_buffer)),
        ),
    ),
}
