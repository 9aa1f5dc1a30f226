"""The sweeps of each paper. A sweep gives several plausible values to a setting that the paper does
not state and on which its claims may depend."""

from __future__ import annotations

from collections.abc import Mapping

from papers import dtmc, mp_sdn, mptcp_la
from papers.base import Case
from papers.mptcp_la_runs import DYNAMIC, QUICK_PAIRS
from papers.rat_study_claims import CLAIMS
from papers.rat_study_runs import (
    cell,
    measure_each_connection,
    measure_with_start,
)
from papers.sweeps import Point, Sweep, point, with_cases

# RAT study (RAT: radio access technology)


DISAGREE = tuple(claim.name for claim in CLAIMS if claim.cause)
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
    """Return a setting that divides a node's receive buffer equally among its connections."""
    each = cell(case.name)
    return (f"multipath.receive_buffer_kb={each.buffer_kb / each.parallel:g}",)


def _three_times_the_rates(case: Case) -> tuple[str, ...]:
    """Return settings for three times the rates and the same volume. They are a rate scale of 3
    and a third of the volume, because the rate scale also multiplies the volume. Results are
    divided by the rate scale."""
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
    Sweep(
        "air",
        "How stations share a WiFi channel",
        "The page gives every frame its airtime, times the mean number of its transmissions. "
        "With `air: dcf`, access points and stations draw backoffs and collide, and frames are "
        "aggregated (802.11n).",
        with_cases(CLAIMS, DISAGREE, _every),
        (Point("mean airtime"), point("dcf", "topology.air=dcf")),
    ),
)


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


JITTER_MS = {"wifi": 5, "lte": 35}  # the largest of Table 1
JITTERED = ("3a", "4a", "4a, 10", "5", "5, 50", "6, LA", "6, LTE", "6, after")


def _jitter(label: str, each_way: float, overtaking: float = 0.0) -> Point:
    """Return paths with jitter. In each direction it is `each_way` times the paper's largest, and
    of the packets to the user the fraction `overtaking` skips the delay."""

    def settings(case: Case) -> tuple[str, ...]:
        sides = [side for side in JITTER_MS if f"alone-{side}-" in case.name] or list(JITTER_MS)
        found = []
        for n, side in enumerate(sides, 1):
            found.append(f"topology.paths.{n}.jitter_ms={each_way * JITTER_MS[side]:g}")
            if overtaking:
                found.append(f"topology.paths.{n}.down={{reorder: {overtaking:g}}}")
        return tuple(found)

    return Point(label, settings)


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
        Sweep(
            "jitter",
            "Jitter and reordering",
            "Table 1 gives delays of 10 and 75 ms, and a jitter drawn from 0 to 5 ms of WiFi and "
            "from 0 to 35 ms of LTE in each experiment. It does not say whether both are of the "
            "round trip or of one way, nor whether packets overtake each other, as those of "
            "netem, with which paths are usually made, do. The page has none. Here the jitter is "
            "uniform and at its largest, of the round trip or each way. Packets keep their order, "
            "but a fraction of those to the user skips the delay.",
            with_cases(mptcp_la.claims(QUICK_PAIRS), JITTERED, _few_losses),
            (
                Point("none"),
                _jitter("5 and 35 ms of the round trip", 0.5),
                _jitter("5 and 35 ms each way", 1.0),
                _jitter("of the round trip, 1 % overtake", 0.5, 0.01),
                _jitter("of the round trip, 10 % overtake", 0.5, 0.1),
            ),
        ),
    ),
    "rat_study": RAT_STUDY,
}
