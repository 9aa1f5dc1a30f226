"""The changes that a scenario suggests to the user, and the effect of each change of a run."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from lab import metrics
from lab.frame import Frame
from lab.metrics import SUM, Watched
from lab.results import effects, thinning
from lab.results.effects import Effect, number_text
from lab.results.explain import present
from lab.results.explain.delays import first_order_s, settling_s
from lab.results.explain.scene import Scene, listed
from lab.results.explain.why import why
from lab.results.flips import flip_text, flip_words, is_accepted
from lab.results.stretches import Span
from lab.scenario import targets
from lab.scenario.flows import schedule
from lab.scenario.schema import Scenario, Suggestion

Doc = dict[str, Any]  # JSON


def expected(scenario: Scenario) -> Doc:
    """Count the file transfers in a scenario.

    Return {"users": {user: number of transfers}, "all": bool}. A user with any other traffic is
    left out of "users". "all" is True if the scenario has no other traffic.
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
    """Return the time in s at which each user's last file transfer was complete.

    Users whose transfers are not all complete are left out, and so are users with other traffic.
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
    """Return {"user", "t"} for each user whose file transfers are all complete, in the order of
    `t`.

    `t` is the time of the user's last completion, in s since the start of the run. `result` is the
    content of result.json.
    """
    flows = schedule(scenario.traffic, scenario.seed, scenario.duration_s)
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


# Suggestions and effects


Row = dict[str, Any]  # a JSON object for the browser
Event = dict[str, Any]  # a line of events.jsonl
OVERALL = Watched("user", SUM, "mbps")
MOST_CHANGED = (
    "Most changed, in Mb/s: {user}{where}, which got {{after}} instead of {{before}} Mb/s."
)
FROM_ORDER = " The mean after the change begins with the first order of the strategy, at {:.1f} s."


@dataclass(frozen=True)
class Change:
    """A change that was applied to a run while it went on.

    `n` is the number of its event, counted from 1. `t` is its time in s. `target` names the changed
    parameter, such as `link.up1.rate_mbps`. `flip` has the keys `target` and `value`, and `old` if
    the run recorded the old value. `by_scenario` is True if an event of the scenario file made the
    change, and False if it was made by hand.
    """

    n: int
    t: float
    target: str
    flip: Mapping[str, Any]
    by_scenario: bool

    @property
    def value(self) -> Any:
        return self.flip["value"]


@dataclass(frozen=True)
class When:
    """The time in s of a change. `acts_s` is the time at which it begins to act, or None if it acts
    at once. `settling_s` is the time from the change until rates have settled."""

    at_s: float
    acts_s: float | None
    settling_s: float


@dataclass(frozen=True)
class Measured:
    """The data from which the effects of changes are computed. All times are in s.

    `times` has the time of each change. `ends` maps users whose file transfers are complete to the
    end of the last one. `orders` has the time of the controller's first order after each change of
    its strategy. `is_over` is True if the run has ended.
    """

    frames: Sequence[Frame]
    times: Sequence[float]
    ends: Mapping[str, float]
    orders: Sequence[float] = ()
    is_over: bool = False

    def effect(self, when: When, subject: Watched, is_all: bool = False) -> Effect:
        """Return the effect on the number `subject` of the change at `when`.

        `is_all` is True if all traffic of the run is file transfers and all of them are complete.
        """
        until_s = self._until(when.at_s, subject, is_all)
        times = [*self.times, *self.orders]
        return effects.effect(
            self.frames,
            when.at_s,
            times,
            subject,
            until_s,
            when.acts_s,
            when.settling_s,
            self.is_over,
        )

    def usual(self, at_s: float, found: Effect) -> tuple[Span, float, float] | None:
        """Return how much the number in `found` varied before the change at `at_s`.

        The result is that of `lab.results.effects.usual`.
        """
        return effects.usual(self.frames, at_s, self.times, found)

    def _until(self, at_s: float, subject: Watched, is_all: bool) -> float:
        """Return the time at which traffic that `subject` measures ends; later samples are not
        used.

        For a number of one user, this is the end of the user's file transfers. For any other
        number, it is the end of the transfers of the first user who finishes after `at_s`. If
        `is_all` is True and all transfers had ended before, the result is `at_s`. If no transfers
        end, the result is infinity.
        """
        if subject.kind == "user" and subject.id != SUM:
            return self.ends.get(subject.id, math.inf)
        later = [t for t in self.ends.values() if t > at_s]
        return min(later, default=at_s if is_all and self.ends else math.inf)


def suggestions(folder: Path) -> list[Row]:
    """Return the changes that the scenario of a run suggests to the user, as rows for the browser.

    The field `already` is True if the change would leave the run as it is now. Return [] if the
    scenario cannot be read yet.
    """
    try:
        scenario = present.loaded(folder)
    except LookupError:
        return []
    already = present.already_so(folder, [(each.target, each.value) for each in scenario.to_try])
    old = present.present_values(folder)
    return [
        {
            "target": each.target,
            "value": each.value,
            "name": flip_text(
                {"target": each.target, "value": each.value}
                | ({} if is_so else {"old": old[each.target]})
            ),
            "watch": metrics.watched_number(each.watch, scenario.network).text,
            "watch_key": each.watch,
            "before": each.before,
            "already": is_so,
        }
        for each, is_so in zip(scenario.to_try, already, strict=True)
    ]


@thinning.in_turn
def changes(folder: Path) -> list[Row]:
    """Return one row for each change that was applied to a run, in the order of time.

    - `suggestion`: the index of the scenario's suggestion that was followed by hand, or None
    - `sentence`: the measurements before and after the change
    - `also`: the user whose rate changed most
    - `why`: sentences that explain the change; none is repeated in a later row
    - `is_final`: False while later samples can change `sentence`
    - `is_early`: True until the rates have settled; `sentence` says how long that takes
    """
    try:
        scenario = present.loaded(folder)
    except LookupError:
        return []
    events = thinning.events(folder)
    found = made(events)
    times, ended = [each.t for each in found], ends(scenario, events)
    lines = thinning.means(folder, times) if found else []
    frames = [Frame.from_json(line) for line in lines]
    orders = [first_order_s(events, each.target, each.t) for each in found]
    is_over = (folder / "result.json").exists()
    run = Measured(frames, times, ended, [t for t in orders if t is not None], is_over)
    scene = Scene(scenario, frames, events)
    return _said_once([_row(scene, each, run) for each in found])


def _said_once(rows: list[Row]) -> list[Row]:
    """Remove from each row's `why` the sentences that an earlier row has word for word."""
    said: set[str] = set()
    for row in rows:
        row["why"] = [text for text in row["why"] if text not in said]
        said.update(row["why"])
    return rows


def made(events: Sequence[Event]) -> list[Change]:
    return [
        Change(n, each["t"], each["target"], _flip(each), each.get("source") == "scenario")
        for n, each in enumerate(events, 1)
        if is_accepted(each) and isinstance(each.get("target"), str)
    ]


def _flip(event: Event) -> Mapping[str, Any]:
    known = {key: event[key] for key in ("target", "old", "value") if key in event}
    return {"value": None} | known


def default_watched(target: str) -> Watched:
    """Return the number that shows the effect of a change of `target`.

    It is used for changes that the scenario does not suggest.
    """
    match target.split("."):
        case ["user", user, _] | ["cell", _, user, _]:
            return Watched("user", user, "mbps")
        case ["cell", ap, _]:
            return Watched("ap", ap, "tier1_mbps")
    return OVERALL


def _row(scene: Scene, change: Change, run: Measured) -> Row:
    scenario = scene.scenario
    index = _suggested(scenario, change)
    suggestion = None if index is None else scenario.to_try[index]
    if suggestion:
        subject = metrics.watched_number(suggestion.watch, scenario.network)
    else:
        subject = default_watched(change.target)
    wanted = expected(scenario)
    is_all = wanted["all"] and wanted["users"].keys() == run.ends.keys()
    acts_s = first_order_s(scene.events, change.target, change.t)
    when = When(change.t, acts_s, settling_s(scene, change.target, change.t))
    found = run.effect(when, subject, is_all)
    usual = run.usual(change.t, found) if found.is_measured else None
    most = _most_changed(run, when, scenario.network.users, subject)
    clear = effects.is_clear(found, usual)
    is_explained = found.is_measured and not found.is_too_late
    return {
        "n": change.n,
        "t": change.t,
        "name": flip_text(change.flip),
        "words": flip_words(change.flip, scene.link_name),
        "by_scenario": change.by_scenario,
        "suggestion": None if change.by_scenario else index,
        "seconds": round(found.seconds, 3),
        "windows": [[span.start_s, span.end_s] for span in found.spans],
        "is_final": found.is_final,
        "is_measured": found.is_measured,
        "is_early": found.unsettled_s > 0,
        "is_too_late": found.is_too_late,
        "before": found.before,
        "after": found.after,
        "watch": subject.text,
        "is_clear": is_explained and clear,
        "sentence": effects.sentence(found, suggestion.after if suggestion else "", usual)
        + (FROM_ORDER.format(acts_s) if acts_s and is_explained else ""),
        "also": _most_text(scene, most) if most else "",
        "why": why(scene, change.target, change.value, subject, found.spans, clear)
        if is_explained
        else [],
    }


def _suggested(scenario: Scenario, change: Change) -> int | None:
    """Return the index of the scenario's suggestion that is equal to this change, or None."""
    return next(
        (n for n, each in enumerate(scenario.to_try) if _is_of(scenario, each, change)), None
    )


def _is_of(scenario: Scenario, suggestion: Suggestion, change: Change) -> bool:
    if suggestion.target != change.target:
        return False
    value = targets.check_flip(scenario, suggestion.target, suggestion.value)
    return bool(value == change.value)


def _most_changed(run: Measured, when: When, users: Sequence[str], shown: Watched) -> Effect | None:
    """Return the effect of a change on the user whose rate changed most.

    `shown` is the number that the row shows already. Return None if the rate of this user is
    `shown`, if there is only one user, if the effect is not clear, or if nothing was measured.
    """
    found = [run.effect(when, Watched("user", user, "mbps")) for user in users]
    measured = [each for each in found if each.is_measured]
    if not measured or len(users) < 2:
        return None
    most = max(measured, key=lambda each: abs(each.change))
    if most.watched == shown or not effects.is_clear(most, run.usual(when.at_s, most)):
        return None
    return most if most.change else None


def _most_text(scene: Scene, most: Effect) -> str:
    """Return a sentence about the user whose rate changed most, with the user's access points."""
    user = most.watched.id
    aps = [
        cell.ap
        for cell in scene.network.cells
        if not scene.has_moved(most.spans[1].end_s)
        and any(each.user == user for each in cell.stations)
    ]
    where = f" (on {listed(aps)})" if aps else ""
    return effects.sentence(most, MOST_CHANGED.format(user=user, where=where))


# Summary of a finished run


NAMED = 3  # changes; of more, those with the greatest effect on all users are described
NEARLY = 0.8  # users whose change is at least this fraction of the greatest one are named, too
NOTED = 0.03  # a change by a smaller fraction of the rate counts as none
MINUS = "\u2212"
ALL_USERS = "all users"
NO_CAUSE = "The measurements do not show the cause."
Part = dict[str, Any]  # a row of `lab.results.explain.stretches`


def headline(parts: Sequence[Part], changes: Sequence[Row]) -> str:
    """Return lines that say what changed at the start of each interval of a run, and why.

    Only the `NAMED` largest differences between successive intervals have a line; a last line
    counts the others. `parts` are the rows that `lab.results.explain.stretches.rows` returns, and
    `changes` those of the function `changes`. The result is empty for a run without changes.
    """
    by_number = {each["n"]: each for each in changes}
    found = [
        (abs(_total(now) - _total(was)), n, _part(was, now, by_number))
        for n, (was, now) in enumerate(pairwise(parts))
    ]
    chosen = sorted(sorted(found, reverse=True)[:NAMED], key=lambda each: each[1])
    more = len(found) - len(chosen)
    texts = [text for _, _, text in chosen]
    return "\n".join([*texts, *([f"{more} other changes had smaller effects."] if more else [])])


def _part(was: Part, now: Part, by_number: dict[int, Row]) -> str:
    """Compare the users' rates in two successive intervals of a run, and name the main cause.

    `was` and `now` are the rows of these intervals, and `by_number` maps the number of each change
    to its row.
    """
    begun = [by_number[n] for n in now["n"] if n in by_number]
    last = begun[-1] if begun else None
    is_clear = not begun or any(each["is_clear"] or not each["is_measured"] for each in begun)
    name = now["name"].removeprefix("after ")
    order = now.get("order")
    first = "" if order is None else f"; the first order came at {order:.1f} s"
    span = f"{now['from'] if order is None else order:.1f} to {now['to']:.1f} s"
    head = f"{span} ({name} from {now['from']:.1f} s on{first}):"
    if last and (last["is_early"] or last["is_too_late"]):
        return f"{head} {last['sentence']}"
    text = f"{head} {_who(was, now, is_clear)}"
    if not is_clear:
        subject = begun[-1]["watch"].replace(": ", ", ")
        text += (
            f" No clear change of {subject}: its mean over the "
            f"{begun[-1]['seconds']:.3g} s after is in the range of such means before."
        )
        return f"{text} {now['cause']}".strip()
    why = f"Why: {now['cause']}" if now["cause"] else NO_CAUSE
    return f"{text} {why}"


def _who(was: Part, now: Part, has_users: bool) -> str:
    """Return the rate of all users together, and those of the users whose rates changed most.

    If `has_users` is False, no user is named.
    """
    pairs = [
        (label, old, new)
        for (label, unit, old), (_, _, new) in zip(was["means"], now["means"], strict=True)
        if unit == "Mb/s" and not label.startswith("Tier") and None not in (old, new)
    ]
    if not pairs:
        return "nothing was measured."
    together = _pair(*pairs[0])
    users = pairs[1:]
    users.sort(key=lambda each: -abs(each[2] - each[1]))
    most = users[:1]
    if not has_users or not most or abs(most[0][2] - most[0][1]) <= NOTED * max(most[0][1:]):
        return f"{together}."
    least = NEARLY * abs(most[0][2] - most[0][1])
    most += [each for each in users[1:NAMED] if abs(each[2] - each[1]) >= least]
    changes = "change" if len(most) == 1 else "changes"
    return f"{together}. The greatest {changes} in Mb/s: {listed([_pair(*each) for each in most])}."


def _pair(label: str, old: float, new: float) -> str:
    if abs(new - old) <= NOTED * max(old, new):
        return f"{label} got {number_text(new)} Mb/s, about as before"
    part = f", {100 * (new / old - 1):+.0f} %" if old > NOTED else ""
    change = f"{'+' if new > old else '-'}{number_text(abs(new - old))}{part}".replace("-", MINUS)
    return f"{label} got {number_text(new)} instead of {number_text(old)} Mb/s ({change})"


def _total(part: Part) -> float:
    return next((mean or 0.0 for label, _, mean in part["means"] if label == ALL_USERS), 0.0)
