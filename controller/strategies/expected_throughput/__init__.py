"""Choose paths and pacing rates for all subflows so that connections get equal rates (S-MPTCP).

arrivals     holds back connections whose subflows are not all open yet
max_flow     computes the largest flow between hosts and splits it into paths
exploration  finds paths for the subflows of one connection
sharing      finds the connections that share links
estimation   estimates the rates that one connection could get on its paths
allocation   shares capacity between connections that have arcs in common, as the paper does
max_min      computes max-min fair rates instead
assignment   holds the paths and rates of all connections
observed     reads an assignment from the observation
decisions    derives the commands that turn one assignment into another
command_order  finds the subflows that must slow down while paths change
strategy     turns an observation into decisions, with all of the above

An arc is one direction of a link (`controller.graph`).
"""

from controller.strategies.expected_throughput.strategy import (
    ExpectedThroughput,
    ExpectedThroughputParams,
)

__all__ = ["ExpectedThroughput", "ExpectedThroughputParams"]
