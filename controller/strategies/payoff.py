"""Measure whether limits pay off: two times without them and with them, one after the other.

A strategy that limits some users for others may be wrong about a network: what it takes can stay
idle. The limits are therefore tried, and what all users get is measured with and without them:
1) Without limits, take the mean rate of each user over the last `MEASURED_S`.
2) When there is a reason for limits, begin a trial with them. In its first `SETTLE_S` windows have
   to grow, so who sends less than before does not count, unless air is idle. Who sends more does:
   it waits in queues, and arrives while the senders, after a loss, send less.
3) The trial ends after `MEASURED_S` more. It fails at once if no reason is left, if all users
   together get clearly less than before (`CLEARLY`), or when it has cost more than `BUDGET` of what
   all users have sent since the last one that failed.
4) The limits pay off if all users together get about as much as before (`ENOUGH`), and each user
   who gets clearly less (`SHARE`) loses no more than the protected users gain.
5) If they pay off, they stay for `HOLD_S`. Then they are lifted until the rates without them are
   measured anew, and tried once more.
6) If not, they are lifted, and not tried again for `WAIT_S`. This time doubles with each trial that
   fails, up to `MOST_WAIT_S`.
Only users who have a connection in both times count.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from controller.observation import Observation, Subflow, SubflowKey
from controller.units import NS_PER_S, rate_text

MEASURED_S = 3.0
SETTLE_S = 1.5
BUDGET = 0.02
HOLD_S = 40.0
WAIT_S, MOST_WAIT_S = 20.0, 160.0
SHARE = 0.9  # of its rate without limits; a user with less has clearly less
ENOUGH = 0.98  # of the total without limits
CLEARLY = 0.9

Rates = Mapping[str, float]  # bit/s on the wire of each user with a connection
Pays = Callable[[Rates, Rates], bool]  # compares rates without and with limits


@dataclass(frozen=True)
class Sample:
    """What each user sent since `begin_ns`, in bit/s x s. `settled` is false soon after limits were
    set or lifted."""

    begin_ns: int
    end_ns: int
    sent: Rates
    settled: bool

    @property
    def past_s(self) -> float:
        return (self.end_ns - self.begin_ns) / NS_PER_S


class Payoff:
    """Tells at each control step whether limits should be in force, and why."""

    def __init__(self) -> None:
        self.reason = "no limit: what users get without one is measured first"
        self._limited = False
        self._before_ns: int | None = None
        self._counts: dict[SubflowKey, Subflow] = {}  # of this control step, and of the one before
        self._previous: dict[SubflowKey, Subflow] = {}
        self._samples: list[Sample] = []
        self._without: Rates | None = None  # measured before the trial; None if there is no trial
        self._sent = 0.0  # by all users since the last trial that failed [bit/s x s]
        self._cost = 0.0  # of this trial, below 0 if users sent more [bit/s x s]
        self._queued: dict[str, float] = {}  # sent beyond the rates before, by user [bit/s x s]
        self._since_ns = 0  # of limits or of their absence
        self._until_ns = 0  # no trial before, or the end of the time for which they stay
        self._wait_s = WAIT_S

    def pause(self, observation: Observation, why: str) -> None:
        """Lift limits, for a reason that says nothing about whether they pay off."""
        self._count(observation)
        if self._limited:
            self._set(False, observation.now_ns, f"no limit: {why}")

    def step(
        self,
        observation: Observation,
        wanted: bool,
        pays: Pays,
        is_idle: bool = False,
    ) -> bool:
        """Return whether limits should be in force. They are `wanted` if there is a reason, and
        `is_idle` says that they leave air idle."""
        now_ns = observation.now_ns
        self._count(observation)
        if not wanted and not self._limited:
            return False
        if not wanted:
            why = "no limit: nobody is protected at a congested access point"
            if self._without is not None:
                self._fails(now_ns, why)
            else:
                self._set(False, now_ns, why)
        elif self._without is not None:
            self._judge(observation, pays, is_idle)
        elif self._limited and now_ns >= self._until_ns:
            self._set(False, now_ns, "no limit for now: what users get without one is measured")
        elif not self._limited and now_ns >= self._until_ns and self._is_measured(now_ns):
            without = self._rates()
            self._set(True, now_ns, "trial of limits")
            self._without = without
        return self._limited

    def _count(self, observation: Observation) -> None:
        now_ns, before_ns = observation.now_ns, self._before_ns
        self._before_ns = now_ns
        counts, self._counts = self._counts, {each.key: each for each in observation.subflows}
        self._previous = counts
        if before_ns is None or before_ns < self._since_ns:
            return
        past_s = (now_ns - before_ns) / NS_PER_S
        sent: dict[str, float] = {}
        for each in observation.subflows:
            arrives = self._arriving(each)
            sent[each.user] = sent.get(each.user, 0.0) + (each.rate_bps or 0) * arrives * past_s
        self._sent += sum(sent.values())
        settled = before_ns >= self._since_ns + round(SETTLE_S * NS_PER_S)
        self._samples.append(Sample(before_ns, now_ns, sent, settled))
        oldest_ns = now_ns - round(MEASURED_S * NS_PER_S)
        self._samples = [each for each in self._samples if each.end_ns > oldest_ns]

    def _arriving(self, now: Subflow) -> float:
        """Return the part of the packets since the last step that did not get lost."""
        before = self._previous.get(now.key)
        counts = [
            count
            for each in (now, before)
            for count in (each and each.sent_packets, each and each.lost_packets)
        ]
        if any(count is None for count in counts):
            return 1.0
        sent, lost, sent_before, lost_before = (count or 0 for count in counts)
        return max(0.0, 1 - (lost - lost_before) / max(1, sent - sent_before))

    def _is_measured(self, now_ns: int) -> bool:
        needed_ns = round((SETTLE_S + MEASURED_S) * NS_PER_S)
        return bool(self._settled()) and now_ns - self._since_ns >= needed_ns

    def _settled(self) -> list[Sample]:
        return [each for each in self._samples if each.settled]

    def _rates(self) -> Rates:
        """Return the mean rates of the users who had a connection all the time. In a trial, what
        was queued before they were measured has arrived since."""
        samples = self._settled()
        past_s = sum(each.past_s for each in samples)
        always = set.intersection(*(set(each.sent) for each in samples))
        return {
            user: (max(0.0, self._queued.get(user, 0.0)) + sum(each.sent[user] for each in samples))
            / past_s
            for user in sorted(always)
        }

    def _judge(self, observation: Observation, pays: Pays, is_idle: bool) -> None:
        if not self._samples or self._without is None:
            return
        now_ns, ratio = observation.now_ns, observation.rate_scale
        last = self._samples[-1]
        less = lost(self._without, last)
        if not last.settled:
            for user, each in less.items():
                self._queued[user] = self._queued.get(user, 0.0) - each
        if last.settled or is_idle or sum(less.values()) < 0:
            self._cost += sum(less.values())
        if self._cost > BUDGET * self._sent:
            self._fails(
                now_ns,
                f"the trial has cost {self._cost / self._sent:.1%} of what all users have sent, "
                f"more than {BUDGET:.0%}",
            )
            return
        if not last.settled:
            return
        now = self._rates()
        before = {user: rate for user, rate in self._without.items() if user in now}
        now = {user: now[user] for user in before}
        totals = [rate_text(round(sum(each.values())), ratio) for each in (now, before)]
        text = "all users together get {} with them, and {} without".format(*totals)
        if sum(now.values()) < CLEARLY * sum(before.values()):
            self._fails(now_ns, text)
        elif self._is_measured(now_ns):
            if pays(before, now):
                self._without, self._wait_s = None, WAIT_S
                self._until_ns = now_ns + round(HOLD_S * NS_PER_S)
                self.reason = f"limits pay off: {text}"
            else:
                self._fails(now_ns, text)

    def _fails(self, now_ns: int, text: str) -> None:
        self._set(False, now_ns, f"no limit: limits do not pay off: {text}")
        self._sent = 0.0
        self._until_ns = now_ns + round(self._wait_s * NS_PER_S)
        self._wait_s = min(2 * self._wait_s, MOST_WAIT_S)

    def _set(self, limited: bool, now_ns: int, reason: str) -> None:
        self._limited, self._since_ns, self._until_ns = limited, now_ns, now_ns
        self._samples, self._without, self.reason = [], None, reason
        self._cost, self._queued = 0.0, {}


def lost(without: Rates, sample: Sample) -> Rates:
    """Return by how much less each user has sent than without limits, in bit/s x s."""
    both = without.keys() & sample.sent.keys()
    return {user: without[user] * sample.past_s - sample.sent[user] for user in sorted(both)}


def pays_off(without: Rates, limited: Rates, is_protected: Callable[[str], bool]) -> bool:
    """Compare rates with and without limits; both have the same users (rule 4)."""
    if not without or sum(limited.values()) < ENOUGH * sum(without.values()):
        return False
    gains = {user: limited[user] - without[user] for user in without}
    gained = sum(gains[user] for user in gains if is_protected(user))
    return gained > 0 and all(
        -gain <= gained for user, gain in gains.items() if limited[user] < SHARE * without[user]
    )


def is_fairer(before: Rates, after: Rates, worth: float = 0.0, share: float = SHARE) -> bool:
    """Return whether `after` is worth a change, and harms nobody; both have the same names.

    The sum of the logarithms must grow (S-MPTCP, eq (4)), by as much as if one rate grew by the
    fraction `worth`. The total must be about the same (`ENOUGH`), and who has less than `share` of
    its rate must have lost no more than poorer ones gain.
    """
    if sum(after.values()) < ENOUGH * sum(before.values()):
        return False
    for name, rate in before.items():
        poorer = [each for each, other in before.items() if other < rate]
        gained = sum(max(0.0, after[each] - before[each]) for each in poorer)
        if after[name] < share * rate and rate - after[name] > gained:
            return False
    return _utility(after) > _utility(before) + math.log1p(worth)


def _utility(rates: Rates) -> float:
    return math.fsum(math.log(max(1.0, each)) for each in rates.values())


def could_pay_off(ap: str, seen: Collection[Observation]) -> bool:
    """Return whether all users together could get `ENOUGH` if Tier 2 left its air at `ap` to Tier
    1. `seen` has the observations of the last control steps.

    Tier 1 is expected to carry as much more in this air as it carries in its own. What a user of
    Tier 2 would lose is not known before it has had a connection at all these steps.
    """
    users = [{each.user for each in one.subflows_at(ap, tier=2)} for one in seen]
    if any(each != users[0] for each in users):
        return False
    own_bps, own_air = _carried(ap, 1, seen)
    left_bps, left_air = _carried(ap, 2, seen)
    if not own_air or not left_air:
        return False
    lost_bps = left_bps - left_air * own_bps / own_air
    total_bps = sum(each.rate_bps or 0 for one in seen for each in one.subflows)
    return lost_bps <= (1 - ENOUGH) * total_bps


def _carried(ap: str, tier: int, seen: Collection[Observation]) -> tuple[float, float]:
    """Return the sum of the rates of a tier at `ap` [bit/s], and that of the air it uses: the rate
    of each station / the rate that it has alone."""
    sum_bps = air = 0.0
    for one in seen:
        alone_bps = {each.user: each.rate_bps for each in one.at(ap)}
        for each in one.subflows_at(ap, tier):
            if alone_bps.get(each.user):
                sum_bps += each.rate_bps or 0
                air += (each.rate_bps or 0) / alone_bps[each.user]
    return sum_bps, air
