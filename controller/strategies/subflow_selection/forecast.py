"""Forecast the throughput and the receive buffer of a set of paths.

Source: DTMC selection, sections III-C and III-D. For path or subflow s: b = bandwidth, l = loss
probability, mu = mean round trip, w_s = congestion window. S is the size of a segment, a that of an
acknowledgement, x = 3 the number of duplicate acknowledgements that signal a loss.

1) A path holds b (mu + queue) bytes; its window grows no further.
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
    """Hold the quality Q_i = (b, l, mu, sigma) of a path, as the paper calls it.

    These are the bandwidth in bit/s, the probability that a segment is lost, and the mean and the
    standard deviation of the round trip in seconds.
    """

    bandwidth_bps: float
    loss: float
    rtt_s: float
    rtt_sd_s: float = 0.0


@dataclass(frozen=True)
class Model:
    """Hold the choices of the forecast model.

    `queue_bdp` is the queue of a path, as a multiple of its bandwidth-delay product.
    """

    round: Literal["paper", "pipelined"] = "paper"
    largest_window: int = 64
    queue_bdp: float = 1.0


@dataclass(frozen=True)
class Estimate:
    """Hold the forecast for a set of paths.

    `buffer_bytes` is the receive buffer that the set needs. `windows` holds the mean congestion
    window of each path in segments.
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
    """Return the largest window of a path in segments: what the path and its queue can hold."""
    held = (1 + model.queue_bdp) * path.bandwidth_bps * path.rtt_s / SEGMENT_BITS  # 1
    return max(SMALLEST_CAP, int(min(model.largest_window, held)))


def round_s(path: PathQuality, window: float, model: Model) -> float:
    """Return the duration G of one round in seconds, for a mean window in segments (step 3)."""
    segment_s = SEGMENT_BITS / path.bandwidth_bps
    sending_s = (window + DUPLICATE_ACKS * path.loss) * segment_s
    if model.round == "pipelined":
        return max(path.rtt_s + segment_s, sending_s)  # 3
    return sending_s + window * ACK_BITS / path.bandwidth_bps + path.rtt_s


def _walk(path: PathQuality, model: Model) -> Walk:
    rtts_s = round_trips(path.rtt_s, path.rtt_sd_s)
    return Walk(window_cap(path, model), min(path.loss, LARGEST_LOSS), rtts_s, path.rtt_s)
