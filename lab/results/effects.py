"""The effect of a change that was made during a run: a comparison of means before and after it.

The mean over the `WINDOW_S` seconds before the change is compared with the mean over the `WINDOW_S`
seconds after it. A window is shorter if it would contain another change, or the start or end of the
run. A new strategy of the controller has an effect only when it gives its first order, so the
second window can begin at that time.

No effect is stated before the numbers have settled, see `settling_s`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lab.frame import Frame
from lab.metrics import SUM, Watched
from lab.results.stretches import Span
from lab.summaries import EPSILON_S, intervals_between, mean

WINDOW_S = 10.0
SHORTEST_S = 2.0  # the shortest window whose mean is used
ROUND_TRIPS, DECISIONS = 20, 2  # after which the rates have settled
USUAL_S = 60.0  # of the time before a change whose variation is compared with the effect
NOTHING = 0.005  # a rate in Mb/s below this is shown as 0


@dataclass(frozen=True)
class Effect:
    """The means of one number before and after a change.

    `watched` says which number. `before` and `after` are its means, or None if nothing was
    measured. `seconds_before` and `seconds` are the measured times before and after the change, in
    s. `is_final` is True if later samples cannot change the effect. `is_too_late` is True if the
    watched traffic had ended before the change. `spans` are the two windows, before and after the
    change. `settling_s` is the time in s from the change until the number has settled.
    """

    watched: Watched
    before: float | None
    after: float | None
    seconds_before: float
    seconds: float
    is_final: bool
    is_too_late: bool
    spans: tuple[Span, Span]
    settling_s: float

    @property
    def is_measured(self) -> bool:
        """Whether there are means before and after the change, each over at least `SHORTEST_S`, and
        the number has settled."""
        known = self.before is not None and self.after is not None
        return (
            known and min(self.seconds_before, self.seconds) >= SHORTEST_S and not self.unsettled_s
        )

    @property
    def unsettled_s(self) -> float:
        """The time in s that is missing until the number has settled; 0 if it has."""
        left = self.settling_s - (self.spans[1].end_s - self.spans[0].end_s)
        return left if left > EPSILON_S else 0.0

    @property
    def change(self) -> float:
        """The mean after the change minus the mean before; a missing mean counts as 0."""
        return (self.after or 0.0) - (self.before or 0.0)


def settling_s(rtt_ms: float, interval_s: float) -> float:
    """Return the time in s from a change until the rates have settled.

    A congestion window needs `ROUND_TRIPS` to reach its new size, and a strategy `DECISIONS`: one
    to notice the change, and one to see what its orders did. `rtt_ms` is the longest RTT of a
    subflow, and `interval_s` the time between two decisions, 0 without a strategy. The result is at
    least `SHORTEST_S` and at most `WINDOW_S`, the longest window.
    """
    needed_s = DECISIONS * interval_s + ROUND_TRIPS * rtt_ms / 1000
    return min(max(needed_s, SHORTEST_S), WINDOW_S)


def effect(
    frames: Sequence[Frame],
    at_s: float,
    others_s: Sequence[float],
    watched: Watched,
    until_s: float = math.inf,
    acts_s: float | None = None,
    settling_s: float = SHORTEST_S,
    is_over: bool = False,
) -> Effect:
    """Return the effect on one number of a change that was made at the time `at_s`.

    `others_s` has the times of the other changes of the run, and the times at which these began to
    act. `until_s` is the time at which the watched traffic ends; later samples are not used.
    `acts_s` is the time at which the change begins to act, if that is later than `at_s`.
    `settling_s` is the time from the change until the number has settled. `is_over` is True if the
    run has ended.
    """
    acts_s = at_s if acts_s is None else acts_s
    start = max([0.0, at_s - WINDOW_S, *(t for t in others_s if t < at_s - EPSILON_S)])
    nexts = [t for t in others_s if t > acts_s + EPSILON_S]
    end = min([acts_s + WINDOW_S, max(acts_s, until_s), *nexts])
    reached = frames[-1].t if frames else 0.0
    before, seconds_before = _mean(frames, start, at_s, watched)
    after, seconds = _mean(frames, acts_s, end, watched)
    is_final = is_over or reached >= end - EPSILON_S
    too_late = until_s <= at_s + EPSILON_S
    spans = (Span(start, at_s), Span(acts_s, min(end, max(reached, acts_s))))
    return Effect(
        watched, before, after, seconds_before, seconds, is_final, too_late, spans, settling_s
    )


def usual(
    frames: Sequence[Frame], at_s: float, others_s: Sequence[float], found: Effect
) -> tuple[Span, float, float] | None:
    """Return the range in which the watched number varied before the change at `at_s`.

    The result is that of `variation` for an interval that ends at `at_s`. The interval begins at
    the previous change, but at most `USUAL_S` earlier. The sliding window is as long as the
    measurement after the change (`found.seconds`), but at most half of the interval.
    """
    start = max([0.0, at_s - USUAL_S, *(t for t in others_s if t < at_s - EPSILON_S)])

    def number(frame: Frame) -> float | None:
        return value(frame, found.watched)

    return variation(
        frames, Span(start, at_s), found.seconds, lambda near, each: each.mean(near, number)
    )


def variation(
    frames: Sequence[Frame],
    time: Span,
    seconds: float,
    mean_of: Callable[[Sequence[Frame], Span], float | None],
) -> tuple[Span, float, float] | None:
    """Return how the mean over a sliding window varied within the interval `time` of the run.

    The result is (last window, lowest mean, highest mean), or None if the interval is too short.
    `mean_of` returns the mean of the frames in a window. The window is `seconds` long, or half of
    `time` if that is shorter, and moves in steps of 1 s.
    """
    length = min(seconds, time.seconds / 2)
    if length < SHORTEST_S:
        return None
    near = [frame for frame in frames if time.start_s - length < frame.t <= time.end_s + EPSILON_S]
    spans = [
        Span(time.end_s - n - length, time.end_s - n)
        for n in range(int(time.seconds - length + EPSILON_S) + 1)
    ]
    known = [each for span in spans if (each := mean_of(near, span)) is not None]
    return (spans[0], min(known), max(known)) if len(known) > 1 else None


def is_clear(found: Effect, usual_means: tuple[Span, float, float] | None) -> bool:
    """Return whether a change had a clear effect.

    The effect is clear if the mean after the change lies outside `usual_means`, the range of means
    before the change that `usual` returns. If there is no such range, the effect counts as clear.
    It is not clear if nothing was measured after the change.
    """
    if found.after is None:
        return False
    if usual_means is None:
        return True
    _, lowest, highest = usual_means
    return not lowest - NOTHING <= found.after <= highest + NOTHING


def value(frame: Frame, watched: Watched) -> float | None:
    """Return the watched number in a frame; None if it was not measured.

    If the ID in `watched` is `*`, the result is the sum over all access points, links or users.
    """
    owners = getattr(frame, watched.kind) if watched.id == SUM else [watched.id]
    figures = (frame.figure(watched.kind, owner, watched.field) for owner in owners)
    known = [each for each in figures if each is not None]
    return float(sum(known)) if known else None


def number_text(figure: float | None) -> str:
    """Format a mean with three significant digits. A mean below `NOTHING` becomes "0"."""
    if figure is None:
        return "nothing measured"
    if abs(figure) < NOTHING:
        return "0"
    return f"{figure:.3g}" if abs(figure) < 100 else f"{figure:.0f}"


def sentence(
    found: Effect, template: str = "", usual_means: tuple[Span, float, float] | None = None
) -> str:
    """Return the effect of a change in words.

    `template` is the text `after` of a change that the scenario suggests. Without it, a plain
    sentence is made. `usual_means` is the range of means before the change, as `usual` returns it.
    If the effect is not clear, the change may not be its cause. Then the result is only the first
    sentence of the text, followed by this range.
    """
    if not found.is_measured:
        return f"{found.watched.text}: {_no_comparison(found)}."
    numbers = {
        "before": number_text(found.before),
        "after": number_text(found.after),
        "seconds": f"{found.seconds:.3g}",
    }
    if numbers["before"] == numbers["after"] == "0":
        return f"{found.watched.text}: 0 both before and after the change."
    plain = "{what}: {after} instead of {before}{unit} in the {seconds} s after."
    unit = f" {found.watched.unit}" if found.watched.unit else ""
    text = template or plain
    if usual_means is None or is_clear(found, usual_means):
        return text.format(what=found.watched.text, unit=unit, **numbers)
    span, lowest, highest = usual_means
    text = re.split(r"(?<=[.!?]) ", text)[0].format(what=found.watched.text, unit=unit, **numbers)
    return (
        f"{text} No clear change: before it, means over {span.seconds:.3g} s were between "
        f"{number_text(lowest)} and {number_text(highest)}{unit}."
    )


def _no_comparison(found: Effect) -> str:
    if found.is_too_late:
        return "no comparison, the transfers had finished"
    if found.seconds_before < SHORTEST_S:
        return "no comparison, too little time before this change"
    if found.unsettled_s and not found.is_final:
        return f"too early to tell, it settles in about {math.ceil(found.unsettled_s)} s"
    if found.unsettled_s:
        measured_s = found.spans[1].end_s - found.spans[0].end_s
        return (
            f"too early to tell, it settles about {found.settling_s:.2g} s after a change, and "
            f"{measured_s:.3g} s were measured"
        )
    return "no comparison, it was not measured"


def _mean(
    frames: Sequence[Frame], start: float, end: float, watched: Watched
) -> tuple[float | None, float]:
    """Return the mean of a number in the frames between two times, and the total length of these
    frames' intervals in s."""
    times = [frame.t for frame in frames]
    found = intervals_between(times, start, end, whole=True)
    lengths = [length for _, length in found]
    return mean((value(frames[index], watched) for index, _ in found), lengths), sum(lengths)
