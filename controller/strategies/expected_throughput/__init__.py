"""Choose paths and pacing rates for all subflows so that connections get equal rates (S-MPTCP).

max_flow     the largest flow between hosts, split into paths
exploration  paths for the subflows of one connection
allocation   rates of connections that have arcs in common, as in the paper
max_min      max-min fair rates instead; a module of its own because it loads scipy
assignment   the paths and rates of all connections, observed or drafted
strategy     the strategy, and the commands that turn one assignment into another, in a safe order

An arc is one direction of a link (`controller.graph`).
"""

from controller.strategies.expected_throughput.strategy import (
    ExpectedThroughput,
    ExpectedThroughputParams,
)

__all__ = ["ExpectedThroughput", "ExpectedThroughputParams"]
