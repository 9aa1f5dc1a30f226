"""Choose paths and pacing rates for all subflows so that connections get equal rates (S-MPTCP).

max_flow      the largest flow, and its paths       assignment   the paths and rates of all
connections exploration   paths for one connection              decisions    the commands between
two assignments estimation    the rates one connection could get    strategy     observation ->
decisions allocation    rates for connections that share
"""

from controller.strategies.expected_throughput.strategy import (
    ExpectedThroughput,
    ExpectedThroughputParams,
)

__all__ = ["ExpectedThroughput", "ExpectedThroughputParams"]
