"""Compute the rate at which each connection of a user writes data. Both engines use `Demands`.

1) As long as a user's demand is not changed during the run, each connection has the rate of its
   entry in the scenario's `traffic`.
2) A changed demand is the total rate of all open connections of the user, also of those that open
   later. It is divided equally among them.
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
    """Keep track of the open connections of all users and of their demands.

    A demand is the total rate that a user's connections write. Each method that changes something
    returns the new rates by flow, in bit/s; None means no limit.
    """

    def __init__(self) -> None:
        self._open: dict[str, list[Flow]] = {}
        self._demand_bps: dict[str, int | None] = {}
        self._silent: set[Flow] = set()

    def start(self, flow: Flow) -> Rates:
        """Mark a connection as open. Return the rate of this connection and the rates of the user's
        other connections that change with it."""
        self._open.setdefault(flow.user, []).append(flow)
        return {flow: self.rate_bps(flow)} | self._divided(flow.user)

    def end(self, flow: Flow) -> Rates:
        """Mark a connection as closed, because it was stopped or its file is complete. Return
        the new rates of the user's other connections, or an empty mapping if their rates stay
        the same."""
        if flow not in self._open.get(flow.user, []):
            return {}
        self._open[flow.user].remove(flow)
        return self._divided(flow.user)

    def set_silent(self, flow: Flow, silent: bool) -> Rates:
        """Begin a silent period of an on-off flow (`silent` is True) or end it (False). Return the
        new rate of the flow."""
        (self._silent.add if silent else self._silent.discard)(flow)
        return {flow: self.rate_bps(flow)}

    def set_demand(self, user: str, rate_bps: int | None) -> Rates:
        """Set the total rate of all connections of a user, in bit/s; None means no limit. Return
        the new rate of each open connection."""
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
        """Return the rates of all open connections of a user. Return an empty mapping if the user's
        demand was never changed during the run."""
        if user not in self._demand_bps:
            return {}
        return {flow: self.rate_bps(flow) for flow in self._open.get(user, [])}
