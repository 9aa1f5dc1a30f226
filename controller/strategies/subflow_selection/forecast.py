"""Forecast the throughput and the receive buffer of a set of paths.

Source: DTMC selection, sections III-C and III-D. Each subflow s uses one path of the set. b is the
bandwidth of a path, l its loss probability, mu its mean round trip; w_s is the congestion window of
subflow s. S is the size of a segment, a the size of an acknowledgement, x = 3 the number of
duplicate acknowledgements that signal a loss.

1) The largest window of a path is what the path and its queue can hold.
2) The module `chain` gives the mean window E[w] of every subflow.
3) A round of subflow s takes
       paper:      G_s = (E[w_s] + x l_s) S/b_s + E[w_s] a/b_s + mu_s          (14)
       pipelined:  G_s = max(mu_s + S/b_s, (E[w_s] + x l_s) S/b_s)      (ACKs return while it sends)
4) All subflows wait for the slowest: Avg_Th = sum E[w] S / max_s G_s         (13), (15)
5) Data of the fastest path waits for the slowest: RL = (max mu - min mu) Avg_Th / 8    (17)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from controller.strategies.subflow_selection.chain import Walk, mean_windows, round_trips

SEGMENT_BITS = 1500 * 8  # S
ACK_BITS = 40 * 8  # a
DUPLICATE_ACKS = 3  # x
SMALLEST_CAP = 4  # segments
LARGEST_LOSS = 0.99  # the chain needs some segments that arrive


@dataclass(frozen=True)
class PathQuality:
    """Hold the quality of a path, in DTMC selection called Q_i = (b, l, mu, sigma).

    These are the bandwidth b in bit/s, the probability l that a segment is lost, and the mean mu
    and standard deviation sigma of the round trip in seconds.
    """

    bandwidth_bps: float
    loss: float
    rtt_s: float
    rtt_sd_s: float = 0.0


@dataclass(frozen=True)
class Model:
    """Hold the settings of the forecast.

    `round` chooses the formula for the duration of a round: eq (14) of the paper, or one for ACKs
    that return while the sender still sends. `largest_window` is an upper limit of every window in
    segments. `queue_bdp` is the size of a path's queue, as a multiple of the path's bandwidth-delay
    product.
    """

    round: Literal["paper", "pipelined"] = "paper"
    largest_window: int = 64
    queue_bdp: float = 1.0


@dataclass(frozen=True)
class Estimate:
    """Hold the forecast for a set of paths that one connection uses together.

    `buffer_bytes` is the receive buffer that the connection needs. `windows` holds the mean
    congestion window of each path in segments.
    """

    throughput_bps: float
    buffer_bytes: float
    windows: tuple[float, ...]


@lru_cache(maxsize=8192)
def estimate(paths: tuple[PathQuality, ...], model: Model) -> Estimate:
    """Return the forecast for a connection that uses all these paths together."""
    windows = mean_windows([_walk(path, model) for path in paths])  # 2
    slowest_s = max(
        round_s(path, window, model) for path, window in zip(paths, windows, strict=True)
    )
    throughput_bps = sum(windows) * SEGMENT_BITS / slowest_s  # 4
    rtts_s = [path.rtt_s for path in paths]
    return Estimate(throughput_bps, (max(rtts_s) - min(rtts_s)) * throughput_bps / 8, windows)  # 5


def window_cap(path: PathQuality, model: Model) -> int:
    """Return the largest window of a path in segments.

    It is what the path and its queue can hold, at most `model.largest_window` and at least 4.
    """
    held = (1 + model.queue_bdp) * path.bandwidth_bps * path.rtt_s / SEGMENT_BITS  # 1
    return max(SMALLEST_CAP, int(min(model.largest_window, held)))


def round_s(path: PathQuality, window: float, model: Model) -> float:
    """Return the time in seconds that a subflow needs to send one window and get the ACKs.

    `window` is the mean congestion window in segments. `model.round` chooses the formula (DTMC
    selection, eq (14), or a variant of it).
    """
    segment_s = SEGMENT_BITS / path.bandwidth_bps
    sending_s = (window + DUPLICATE_ACKS * path.loss) * segment_s
    if model.round == "pipelined":
        return max(path.rtt_s + segment_s, sending_s)  # 3
    return sending_s + window * ACK_BITS / path.bandwidth_bps + path.rtt_s


def _walk(path: PathQuality, model: Model) -> Walk:
    rtts_s = round_trips(path.rtt_s, path.rtt_sd_s)
    return Walk(window_cap(path, model), min(path.loss, LARGEST_LOSS), rtts_s, path.rtt_s)
