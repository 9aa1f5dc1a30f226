"""S-MPTCP: exploration of ways, estimation and allocation of shares, and the strategy made of them."""

from controller.strategies.expected_throughput.strategy import (
    ExpectedThroughput,
    ExpectedThroughputParams,
)

__all__ = ["ExpectedThroughput", "ExpectedThroughputParams"]
