"""Decide how much each connection of a user asks for; both engines call this. Pure.

1) Until a user's demand is changed, each connection asks for what its own line of `traffic` says.
2) A changed demand is divided equally among the user's open connections. It holds for all of them
   together, also for those that open later.
3) A connection is open from its start until it is stopped or its file is complete. Each time one
   opens or ends, the demand is divided anew.
4) Without a limit (None) TCP sends as much as it can, UDP the rate in `traffic`.
5) While the time line of an on-off flow is silent, the flow asks for nothing and keeps its share.
"""

from __future__ import annotations

from lab.scenario.flows import PAUSED_BPS, Flow

Rates = dict[Flow, int | None]


class Demands:
    """Track the open connections and the demands of all users; each change returns new rates.

    A rate is in bit/s; None stands for as much as possible.
    """

    def __init__(self) -> None:
        self._open: dict[str, list[Flow]] = {}
        self._demand_bps: dict[str, int | None] = {}
        self._silent: set[Flow] = set()

    def start(self, flow: Flow) -> Rates:
        """Open a connection; return the rates that change, its own always among them."""
        self._open.setdefault(flow.user, []).append(flow)
        return {flow: self.rate_bps(flow)} | self._divided(flow.user)

    def end(self, flow: Flow) -> Rates:
        """Close a connection that was stopped or is complete; return the rates that change."""
        if flow not in self._open.get(flow.user, []):
            return {}
        self._open[flow.user].remove(flow)
        return self._divided(flow.user)

    def set_silent(self, flow: Flow, silent: bool) -> Rates:
        """Begin or end a silent period of an on-off flow; return its new rate."""
        (self._silent.add if silent else self._silent.discard)(flow)
        return {flow: self.rate_bps(flow)}

    def set_demand(self, user: str, rate_bps: int | None) -> Rates:
        """Change what all connections of a user ask for together; return their rates."""
        self._demand_bps[user] = rate_bps
        return self._divided(user)

    def rate_bps(self, flow: Flow) -> int | None:
        """Return what a connection asks for now."""
        if flow in self._silent:
            return PAUSED_BPS
        if flow.user not in self._demand_bps:
            return flow.rate_bps
        demand_bps = self._demand_bps[flow.user]
        if demand_bps is None:
            return flow.rate_bps if flow.protocol == "udp" else None
        return round(demand_bps / max(1, len(self._open.get(flow.user, []))))

    def _divided(self, user: str) -> Rates:
        """Return the rates of a user's open connections if its demand was ever changed."""
        if user not in self._demand_bps:
            return {}
        return {flow: self.rate_bps(flow) for flow in self._open.get(user, [])}
