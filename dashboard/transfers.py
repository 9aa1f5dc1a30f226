"""Say which file transfers a run has, and when those of each user were finished."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from lab.scenario.flows import plan
from lab.scenario.schema import Scenario

Doc = dict[str, Any]  # JSON


def expected(scenario: Scenario) -> Doc:
    """Return the number of file transfers of each user who does nothing else, as `users`.

    `all` says whether that is the whole traffic of the scenario.
    """
    count: Counter[str] = Counter()
    others = set()
    for each in scenario.traffic:
        if each.volume_mb is None:
            others.add(each.user)
        else:
            count[each.user] += each.parallel
    users = {user: n for user, n in count.items() if user not in others}
    return {"users": users, "all": bool(users) and not others}


def ends(scenario: Scenario, events: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Return the time in s at which the last transfer of each finished user was complete.

    `events` are the events of a run.
    """
    left = dict(expected(scenario)["users"])
    found = {}
    for each in events:
        user = str(each.get("user"))
        if each.get("kind") == "completion" and user in left:
            left[user] -= 1
            if not left[user]:
                found[user] = float(each["t"])
    return found


def finished(result: Mapping[str, Any], scenario: Scenario) -> list[Doc]:
    """Return each user whose transfers are all complete, with the time `t` of the last one in s
    since the start of the run; the first user that was finished comes first."""
    flows = plan(scenario.traffic, scenario.seed, scenario.duration_s)
    started = {act.flow.id: act.at_s for act in flows if act.verb == "start"}
    ends: dict[str, list[float]] = {}
    for each in result.get("connections") or []:
        if each.get("completion_s") is not None and each["id"] in started:
            ends.setdefault(each["user"], []).append(started[each["id"]] + each["completion_s"])
    users = expected(scenario)["users"]
    done = [
        {"user": user, "t": max(found)}
        for user, found in ends.items()
        if len(found) == users.get(user)
    ]
    return sorted(done, key=lambda each: each["t"])
