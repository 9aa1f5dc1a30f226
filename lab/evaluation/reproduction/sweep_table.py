"""List the settings that a paper does not state and that may decide its claims, with the values
that they take."""

from __future__ import annotations

from collections.abc import Mapping

from lab.evaluation.reproduction import dtmc, mp_sdn, mptcp_la
from lab.evaluation.reproduction.mptcp_la_runs import DYNAMIC, QUICK_PAIRS
from lab.evaluation.reproduction.rat_study_sweeps import RAT_STUDY
from lab.evaluation.reproduction.sweeps import Point, Sweep, point, with_cases

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
    "rat_study": RAT_STUDY,
}
