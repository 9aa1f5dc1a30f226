"""Choose paths and pacing rates for all subflows so that connections get equal rates (S-MPTCP).

max_flow     computes the largest flow between hosts and splits it into paths
exploration  finds paths for the subflows of one connection
estimation   estimates the rates that one connection could get, and who shares its links
allocation   shares capacity between connections that have arcs in common, as the paper does
max_min      computes max-min fair rates instead
assignment   holds the paths and rates of all connections
decisions    derives the commands that turn one assignment into another, in a safe order
strategy     turns an observation into decisions, with all of the above

An arc is one direction of a link (`controller.graph`).
"""

from controller.strategies.expected_throughput.strategy import (
    ExpectedThroughput,
    ExpectedThroughputParams,
)

__all__ = ["ExpectedThroughput", "ExpectedThroughputParams"]
