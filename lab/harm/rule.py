"""When a strategy does harm: the rates of its users beside those of plain Multipath TCP.

A user is harmed while it gets less than `USER_SHARE` of its plain rate, for longer than
`LONGEST_S`. Both rates are means over `SMOOTH_S`, because single samples of TCP vary by more. It
does not count if

- the users whom the strategy protects gain together at least as much as this user loses, or
- the user has data only at times, and has received as much as in the plain run so far.

A user who waits for answers, pages, files of a workload or chunks of a video is also harmed if the
95th percentile of these times exceeds the plain one divided by `USER_SHARE`, and by `LEAST_S`; one
who calls, if the mean opinion score is lower by `LEAST_MOS`. It does not count if the protected
users together get at least a tenth more than in the plain run (1 / `USER_SHARE`).

The total is harmed if it is below `TOTAL_SHARE` of the plain one. Two plain runs, of which one
begins some milliseconds later, show how much of both is chance: only what is worse counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from controller.strategy_names import base_name

USER_SHARE = 0.9
TOTAL_SHARE = 0.97
LONGEST_S = 10.0
SMOOTH_S = 4.0
LEAST_S = 0.05  # a shorter wait is felt by nobody
LEAST_MOS = 0.1
FEWEST_TIMES = 20  # in both runs; fewer have no 95th percentile
LEAST_MBPS = 0.1  # a user or network with less in the plain run is idle

Series = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Rates:
    """The goodput of each user of a run [Mb/s], in samples of `interval_s`.

    `multipath` names the users with several subflows, `at_times` those with other traffic than one
    that always has data. `times_s` has the completion times of a user's transfers, and `mos` the
    mean opinion score of a user's calls.
    """

    users: Mapping[str, Series]
    interval_s: float
    multipath: frozenset[str] = frozenset()
    at_times: frozenset[str] = frozenset()
    times_s: Mapping[str, Sequence[float]] = field(default_factory=dict)
    mos: Mapping[str, float] = field(default_factory=dict)

    @property
    def total_mbps(self) -> float:
        return float(sum(each.mean() for each in self.users.values()))


@dataclass(frozen=True)
class Low:
    """A time in which `user` got less than plain Multipath TCP gives it, and nobody was protected.

    `share` is what it got of its plain rate; `begin_s` is the time of the first such sample.
    """

    user: str
    begin_s: float
    length_s: float
    share: float


@dataclass(frozen=True)
class Felt:
    """What `user` waits for, or hears, is worse. `share` is the plain time over this one, or this
    score over the plain one."""

    user: str
    what: str
    share: float


@dataclass(frozen=True)
class Figures:
    """How far one run stays behind another: the longest low of a user and the worst that a user
    feels, if any, and the total."""

    low: Low | None
    total_share: float
    felt: Felt | None = None


@dataclass(frozen=True)
class Harm:
    """What is left of `Figures` beyond chance, or why the run failed. One of them is there."""

    low: Low | None
    total_share: float | None
    failure: str = ""
    felt: Felt | None = None

    @property
    def text(self) -> str:
        found = [f"the run failed: {self.failure}"] if self.failure else []
        if self.low:
            low = self.low
            found.append(
                f"{low.user} has {low.share:.2f} of plain for {low.length_s:g} s from "
                f"{low.begin_s:g} s on"
            )
        if self.felt:
            felt = self.felt
            found.append(f"{felt.what} of {felt.user} is worse by a factor of {1 / felt.share:.2f}")
        if self.total_share is not None:
            found.append(f"the total is {self.total_share:.2f} of plain")
        return ", ".join(found)

    @property
    def size(self) -> float:
        """By how much a network is worse than another: the part of the data that is lost."""
        of_total = 0.0 if self.total_share is None else 1 - self.total_share
        of_users = [1 - each.share for each in (self.low, self.felt) if each]
        return max(bool(self.failure), of_total, *of_users)


def harm_from(line: Mapping[str, Any]) -> Harm:
    """Return the harm of a line of a record."""
    low, felt = line["low"], line.get("felt")
    return Harm(low and Low(**low), line["total_share"], line["failure"], felt and Felt(**felt))


def harm(ours: Figures, control: Sequence[Figures]) -> Harm | None:
    """Return the harm in `ours` that none of the control runs has."""
    low, total_share = ours.low, ours.total_share
    chance_s = max((each.low.length_s for each in control if each.low), default=0.0)
    if low and low.length_s <= chance_s:
        low = None
    felt = ours.felt
    if felt and felt.share >= min((each.felt.share for each in control if each.felt), default=1.0):
        felt = None
    least = min([TOTAL_SHARE, *(each.total_share for each in control)])
    total = total_share if total_share < least else None
    return Harm(low, total, felt=felt) if low or felt or total is not None else None


def figures(plain: Rates, other: Rates, strategy: str) -> Figures:
    """Compare a run with the plain run. `strategy` decides who is protected."""
    lows = [low for user in plain.users for low in _lows(user, plain, other, strategy)]
    longest = max(lows, key=lambda low: (low.length_s, -low.share), default=None)
    share = other.total_mbps / plain.total_mbps if plain.total_mbps >= LEAST_MBPS else 1.0
    worst = min(_felt(plain, other, strategy), key=lambda felt: felt.share, default=None)
    return Figures(longest, share, worst)


def _felt(plain: Rates, other: Rates, strategy: str) -> Iterator[Felt]:
    for user in plain.users:
        if _others_gain(user, plain, other, strategy):
            continue
        before, after = (run.times_s.get(user, ()) for run in (plain, other))
        if min(len(before), len(after)) >= FEWEST_TIMES:
            before_s, after_s = (float(np.percentile(each, 95)) for each in (before, after))
            if before_s < USER_SHARE * after_s and after_s - before_s > LEAST_S:
                yield Felt(user, "the 95th percentile of completion times", before_s / after_s)
        if user in plain.mos and plain.mos[user] - other.mos.get(user, 1.0) > LEAST_MOS:
            share = other.mos.get(user, 1.0) / plain.mos[user]
            yield Felt(user, "the mean opinion score", share)


def _others_gain(user: str, plain: Rates, other: Rates, strategy: str) -> bool:
    protected = [
        each for each in plain.users if each != user and is_protected(strategy, each, user, plain)
    ]
    before, after = (
        sum(float(run.users[each].mean()) for each in protected) for run in (plain, other)
    )
    return bool(protected) and after - before >= LEAST_MBPS and before <= USER_SHARE * after


def _lows(user: str, plain: Rates, other: Rates, strategy: str) -> list[Low]:
    before, after = plain.users[user], other.users[user]
    smooth_before, smooth_after = _smooth(before, plain), _smooth(after, plain)
    is_low = (smooth_before >= LEAST_MBPS) & (smooth_after < USER_SHARE * smooth_before)
    if user in plain.at_times:
        is_low &= np.cumsum(after) < np.cumsum(before)
    found = []
    for begin, end in _stretches(is_low):
        length_s = (end - begin) * plain.interval_s
        if length_s > LONGEST_S and not _is_paid_back(
            user, slice(begin, end), plain, other, strategy
        ):
            share = smooth_after[begin:end].sum() / smooth_before[begin:end].sum()
            found.append(Low(user, begin * plain.interval_s, length_s, float(share)))
    return found


def _is_paid_back(user: str, when: slice, plain: Rates, other: Rates, strategy: str) -> bool:
    lost = plain.users[user][when].sum() - other.users[user][when].sum()
    gained = sum(
        float(other.users[each][when].sum() - plain.users[each][when].sum())
        for each in plain.users
        if each != user and is_protected(strategy, each, user, plain)
    )
    return bool(gained >= lost)


def _smooth(rates: Series, run: Rates) -> Series:
    """Means over `SMOOTH_S` around each sample, and over what there is at both ends."""
    width = max(1, round(SMOOTH_S / run.interval_s))
    window = np.ones(width)
    counts = np.convolve(np.ones(len(rates)), window, "same")
    return np.convolve(rates, window, "same") / counts


def _stretches(is_low: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return (begin, end) of each stretch of True; `end` is the first sample after it."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], is_low.astype(np.int8), [0]))))
    return [(int(a), int(b)) for a, b in edges.reshape(-1, 2)]


# Who is protected: docs/strategies.md has the table


def _single_path(other: str, _: str, plain: Rates) -> bool:
    return other not in plain.multipath


def _poorer(other: str, user: str, plain: Rates) -> bool:
    return bool(plain.users[other].mean() < plain.users[user].mean())


PROTECTED: dict[str, Callable[[str, str, Rates], bool]] = {
    "meter_throttling": _single_path,
    "expected_throughput": _poorer,
}
"""Strategies that take from one user for another. All others choose among a user's own paths, or
nobody asked them to take from somebody: they protect nobody."""


def is_protected(strategy: str, other: str, user: str, plain: Rates) -> bool:
    """Return whether `strategy` may take from `user` for `other`."""
    rule = PROTECTED.get(base_name(strategy))
    return rule is not None and rule(other, user, plain)
