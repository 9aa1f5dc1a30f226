"""Compute the rate at which each connection of a user writes. Both engines use this. The functions
have no side effects outside of `Demands`.

1) Until a user's demand is changed during the run, each connection has the rate that its entry in
   `traffic` gives.
2) A changed demand is a rate for all open connections of the user together, also for those that
   open later. It is divided equally among them.
3) A connection is open from its start until it is stopped or its file is complete. Each time a
   connection opens or ends, the demand is divided anew.
4) Demand None means no limit: TCP sends as much as it can; UDP sends at its rate in `traffic`.
5) While an on-off flow is silent, its rate is 0, and its share of the demand goes to no other
   connection.
"""

from __future__ import annotations

from lab.scenario.flows import PAUSED_BPS, Flow

Rates = dict[Flow, int | None]


class Demands:
    """Track the open connections and the demands of all users. Each method that changes something
    returns the new rates by flow, in bit/s; None means no limit."""

    def __init__(self) -> None:
        self._open: dict[str, list[Flow]] = {}
        self._demand_bps: dict[str, int | None] = {}
        self._silent: set[Flow] = set()

    def start(self, flow: Flow) -> Rates:
        """Open a connection. Return the rates that change; the rate of the new connection is always
        among them."""
        self._open.setdefault(flow.user, []).append(flow)
        return {flow: self.rate_bps(flow)} | self._divided(flow.user)

    def end(self, flow: Flow) -> Rates:
        """Close a connection that was stopped or is complete. Return the rates that change."""
        if flow not in self._open.get(flow.user, []):
            return {}
        self._open[flow.user].remove(flow)
        return self._divided(flow.user)

    def set_silent(self, flow: Flow, silent: bool) -> Rates:
        """Begin (`silent`) or end a silent period of an on-off flow. Return the new rate of the
        flow."""
        (self._silent.add if silent else self._silent.discard)(flow)
        return {flow: self.rate_bps(flow)}

    def set_demand(self, user: str, rate_bps: int | None) -> Rates:
        """Set the rate of all connections of a user together, in bit/s; None means no limit. Return
        the rates of these connections."""
        self._demand_bps[user] = rate_bps
        return self._divided(user)

    def rate_bps(self, flow: Flow) -> int | None:
        """Return the present rate of a connection in bit/s; None means no limit."""
        if flow in self._silent:
            return PAUSED_BPS
        if flow.user not in self._demand_bps:
            return flow.rate_bps
        demand_bps = self._demand_bps[flow.user]
        if demand_bps is None:
            return flow.rate_bps if flow.protocol == "udp" else None
        return round(demand_bps / max(1, len(self._open.get(flow.user, []))))

    def _divided(self, user: str) -> Rates:
        """Return the rates of all open connections of a user if the user's demand was ever changed,
        else nothing."""
        if user not in self._demand_bps:
            return {}
        return {flow: self.rate_bps(flow) for flow in self._open.get(user, [])}
