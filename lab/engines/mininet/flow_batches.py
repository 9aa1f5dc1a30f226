"""Divide flows into batches whose commands go to their hosts at the same time."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest

from lab.scenario.flows import Act, Flow

COMMAND_S = 0.05  # for a command to all hosts, in a VM without KVM


def one_each(starting: Iterable[Flow]) -> list[list[Flow]]:
    """Split flows into batches with at most one flow per user; a user's flows keep their order."""
    by_user: dict[str, list[Flow]] = {}
    for flow in starting:
        by_user.setdefault(flow.user, []).append(flow)
    return [[flow for flow in column if flow] for column in zip_longest(*by_user.values())]


def starting_flows(acts: Iterable[Act]) -> list[Flow]:
    """Return the flows that start with these acts."""
    return [act.flow for act in acts if act.verb == "start"]


def lead_s(starting: list[Flow]) -> float:
    """Return how long before their common start the commands that start these flows are sent [s].

    The commands go to all users at once, for UDP also to the server of each flow.
    """
    to_servers = sum(flow.protocol == "udp" for flow in starting)
    return COMMAND_S * (len(one_each(starting)) + to_servers)


def at_most(most: int, batches: list[list[Flow]]) -> list[list[Flow]]:
    """Divide each batch into batches of at most `most` flows."""
    return [
        batch[start : start + most] for batch in batches for start in range(0, len(batch), most)
    ]
