"""Try a set of subflows for a bounded time, and keep it only if it carries more than before.

A connection begins with its base set, all open subflows, or with an opening set that its strategy
chooses; then the base set is tried as soon as the opening set has been measured. The strategy
suggests candidates: sets that might carry more. At each control step:

1) Count the packets that the open subflows have sent, without retransmits. Their growth is the
   goodput of the set in use. A sample is its mean over at least `SAMPLE_S`. No sample is taken
   while the hosts have not confirmed the set, nor for `SETTLE_S` after a change.
2) Measure the set in use, the incumbent, with at least `FEWEST` samples. Then a candidate may
   become the challenger: its subflows are in use until the trial ends.
3) Trials may cost at most the part `trial_budget` of all packets that the connection has carried.
   The cost of a trial is what the incumbent would have carried in the same time, less what was
   carried. The time after the trial counts too, while windows grow again. A trial begins only if
   the budget covers its first samples, on the assumption that the remaining subflows take over
   three quarters of what the missing ones carried. It ends when the budget is used up. With a
   head start, the budget is that of a connection that is so many seconds older.
4) The challenger becomes the incumbent if it carries more by the part `trial_gain`: as soon as
   this is by `DEVIATIONS` standard errors, or when the trial ends after `trial_s`, as the incumbent
   has no new samples during a trial that would make the answer clearer. The trial also ends as soon
   as the challenger is as clearly worse. A set that has failed is not tried for `WAIT_S`, after a
   second failure for twice as long, and so on, unless the latest samples of the incumbent, all of
   them newer, are by `trial_gain` below what the failed set carried.
5) A challenger that won is on probation: if it carries less than the base set did, or after
   `WAIT_S` if the budget covers what the base set lost before, all subflows are tried. The smaller
   set stays only if it carries more than the base set by the part `trial_gain`.
6) If the conditions change (subflows, or a loss, round trip or capacity of their paths by
   `LARGE_CHANGE`) all samples are discarded. A running trial ends, and the base set or the opening
   set is in use until it has been measured.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from math import sqrt
from statistics import fmean, variance

from controller.observation import Observation, Subflow
from controller.strategies.base import StrategyParams, param
from controller.units import NS_PER_S, ns_from_s

FEWEST = 4  # samples that a comparison needs
RECENT = 20  # samples of the incumbent that count
LATEST = 6  # samples of the challenger that count, because its windows may still grow


@dataclass
class Goodput:
    """The latest samples of the goodput of one set of subflows, in packets per second.

    A data packet counts once, even if it is sent several times. `bool()` is True if there are
    enough samples for a comparison.
    """

    samples: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))

    def __bool__(self) -> bool:
        return len(self.samples) >= FEWEST

    @property
    def mean(self) -> float:
        """The mean of the samples in packets per second; 0 if there are none."""
        return fmean(self.samples) if self.samples else 0.0

    def latest(self) -> Goodput:
        return Goodput(deque(list(self.samples)[-LATEST:], maxlen=RECENT))


def packets_of(subflows: Sequence[Subflow]) -> dict[int, int] | None:
    """Map the number of each subflow to the data packets that it has sent, without retransmits.

    A lost packet counts only after its retransmission. Return None if a counter is not known.
    """
    packets = {}
    for each in subflows:
        if each.sent_packets is None:
            return None
        twice = max(each.lost_packets or 0, each.retransmitted_packets or 0)
        packets[each.number] = each.sent_packets - twice
    return packets


def standard_errors(one: Goodput, other: Goodput) -> float:
    """Return by how many standard errors the mean of `one` is above the mean of `other`."""
    samples = [*one.samples], [*other.samples]
    squares = sum((len(each) - 1) * variance(each) for each in samples)
    pooled = squares / (len(samples[0]) + len(samples[1]) - 2)
    error = sqrt(pooled * sum(1 / len(each) for each in samples))
    return (one.mean - other.mean) / max(error, 1e-3 * other.mean, 1e-9)


SAMPLE_S = 1.0
SETTLE_S = 1.0
START_S = 5.0  # as long for new subflows, until their windows have grown
DEVIATIONS = 2.5  # standard errors; a trial is judged at every sample, so 2 would be too few
WAIT_S = 20.0
LARGE_CHANGE = 2.0  # a factor
Numbers = frozenset[int]  # numbers of subflows of one connection


class TrialParams(StrategyParams):
    trial_s: float = param(
        10.0,
        "s",
        "Longest trial of a set of subflows (closed loop only)",
        words="Longest trial",
        ge=3,
        le=600,
    )
    trial_budget: float = param(
        0.02,
        "fraction",
        "Part of what a connection has carried that its trials may cost (closed loop only)",
        words="Cost of trials",
        ge=0,
        le=0.5,
    )
    trial_gain: float = param(
        0.03,
        "fraction",
        "By how much a set must carry more than all subflows to be kept (closed loop only)",
        words="Gain that keeps a set",
        ge=0,
        le=1,
    )


@dataclass(frozen=True)
class Outcome:
    """The numbers of the subflows to use now, and the reason.

    `reason` is "" if the set has not changed.
    """

    active: Numbers
    reason: str = ""


def is_alone(subflows: Sequence[Subflow], observation: Observation) -> bool:
    """Return whether the user of these subflows has no other connection.

    `subflows` are all from one connection. Sets of subflows may be tried only if this is the user's
    only connection: the kernel sets backup flags per address, so a trial would also change other
    connections of the user.
    """
    first = subflows[0]
    return all(
        each.connection == first.connection
        for each in observation.subflows
        if each.user == first.user
    )


@dataclass(frozen=True)
class PathState:
    """What is known about the path of a subflow. `rtt_s` is its round trip without queues.

    None is a value that is not known.
    """

    loss: float | None
    rtt_s: float | None = None
    capacity_bps: float | None = None

    def is_like(self, before: PathState) -> bool:
        """Return whether no value has changed by the factor `LARGE_CHANGE`, begun or ended."""
        pairs = zip(astuple(self), astuple(before), strict=True)
        return all(_alike(one or 0.0, other or 0.0) for one, other in pairs)


def _alike(one: float, other: float) -> bool:
    return one == other or max(one, other) < LARGE_CHANGE * min(one, other)


@dataclass(frozen=True)
class Conditions:
    """What the goodput of a connection's sets depends on.

    `alone` is False if the user has other connections, whose traffic counts then, too.
    """

    paths: tuple[PathState, ...]
    alone: bool = True

    def are_like(self, before: Conditions) -> bool:
        return (
            self.alone == before.alone
            and len(self.paths) == len(before.paths)
            and all(map(PathState.is_like, self.paths, before.paths))
        )


class Trials:
    """Finds by trials the set of a connection's subflows that has the most goodput."""

    def __init__(
        self, params: TrialParams, head_start_s: float = 0.0, start_s: float = START_S
    ) -> None:
        """Prepare the trials of one connection.

        The trials may cost a part of what the connection has carried. For this budget, the
        connection counts as `head_start_s` older than it is. New subflows are measured only after
        `start_s`, when their windows have grown.
        """
        self.params, self._head_start_s, self._start_s = params, head_start_s, start_s
        self.base: Numbers = frozenset()
        self.incumbent: Numbers = frozenset()
        self.challenger: Numbers | None = None
        self._conditions = Conditions(())
        self._goodput: dict[Numbers, Goodput] = {}
        self._waits: dict[Numbers, tuple[int, float]] = {}  # until when in ns, and how long in s
        self._before: Mapping[int, int] | None = None
        self._before_ns = self._settled_ns = self._trial_ns = 0
        self._pending = [0.0, 0.0]  # packets and s of the sample that has begun
        self._shares: dict[int, float] = {}  # packets of each subflow since the incumbent settled
        self._carried = self._cost = 0.0  # packets

    @property
    def active(self) -> Numbers:
        return self.incumbent if self.challenger is None else self.challenger

    def measured(self) -> float | None:
        """Return the goodput of the set in use in packets per second; None if it is not known.

        During a trial, it is the goodput of the set that was in use before.
        """
        goodput = self._goodput.get(self.incumbent)
        return goodput.mean if goodput else None

    def step(
        self,
        now_ns: int,
        subflows: Sequence[Subflow],
        conditions: Conditions,
        candidates: Sequence[Numbers],
        opening: Callable[[], Numbers] = frozenset,
    ) -> Outcome:
        """Return the subflows to use after this control step.

        `subflows` has all subflows of the connection. If `conditions` are not like those at the
        start of the measurements, all of them start anew. `candidates` has sets of subflow numbers
        that may carry more, the best first. `opening()` returns the set with which the connection
        begins, or an empty set to begin with all subflows.
        """
        base = frozenset(each.number for each in subflows)
        if base != self.base or not conditions.are_like(self._conditions):
            self._start(base, conditions, now_ns)
            self.incumbent = opening() or base
            which = "all subflows" if self.incumbent == base else _text(self.incumbent)
            reason = f"{which} are measured: paths or conditions are new"
            self._count(now_ns, subflows)
            return Outcome(self.active, reason)
        self._count(now_ns, subflows)
        return (
            self._judge(now_ns) if self.challenger is not None else self._choose(now_ns, candidates)
        )

    def _start(self, base: Numbers, conditions: Conditions, now_ns: int) -> None:
        self._settle(now_ns, SETTLE_S if base <= self.base else self._start_s)
        self.base, self._conditions = base, conditions
        self.incumbent, self.challenger = base, None
        self._goodput, self._waits = {}, {}

    def _settle(self, now_ns: int, settle_s: float = SETTLE_S) -> None:
        """Take no samples for `settle_s`, because the set of subflows in use changes."""
        settled_ns = now_ns + ns_from_s(settle_s)
        self._settled_ns, self._pending = max(self._settled_ns, settled_ns), [0.0, 0.0]
        self._shares = {}

    def _count(self, now_ns: int, subflows: Sequence[Subflow]) -> None:
        """Count the packets since the previous control step for the set of subflows in use."""  # 1
        packets, elapsed_s = packets_of(subflows), (now_ns - self._before_ns) / NS_PER_S
        before, self._before, self._before_ns = self._before, packets, now_ns
        normal = frozenset(each.number for each in subflows if not each.backup)
        if packets is None or before is None or set(packets) != set(before):
            return
        grown = {number: max(0, packets[number] - before[number]) for number in packets}
        total = float(sum(grown.values()))
        self._carried += total
        incumbent = self._goodput.get(self.incumbent)
        if incumbent and (self.challenger is not None or now_ns < self._settled_ns):
            self._cost = max(0.0, self._cost + incumbent.mean * elapsed_s - total)
        if normal != self.active:
            self._settle(now_ns)
        elif now_ns - ns_from_s(elapsed_s) >= self._settled_ns:
            self._add(total, elapsed_s)
            for number, count in grown.items():
                self._shares[number] = self._shares.get(number, 0.0) + count

    def _add(self, total: float, elapsed_s: float) -> None:
        self._pending = [self._pending[0] + total, self._pending[1] + elapsed_s]
        if self._pending[1] >= SAMPLE_S:
            rate = self._pending[0] / self._pending[1]
            self._goodput.setdefault(self.active, Goodput()).samples.append(rate)
            self._pending = [0.0, 0.0]

    def _choose(self, now_ns: int, candidates: Sequence[Numbers]) -> Outcome:
        """Begin a trial if one is due and not too costly; otherwise change nothing."""  # 2, 3, 5
        incumbent = self._goodput.get(self.incumbent)
        if not incumbent:
            return Outcome(self.incumbent)
        base = self._goodput.get(self.base, Goodput())
        falls = incumbent.latest().mean < base.mean
        if self.incumbent != self.base and (falls or not base):
            why = (
                "carry less than all subflows did" if falls else "are measured, all of them are not"
            )
            return self._try(self.base, now_ns, f"the chosen subflows {why}")
        for each in candidates:
            if each in (self.incumbent, frozenset()):
                continue
            if self._may_try(each, now_ns) or self._is_outdone_by(each, now_ns):
                if self._affordable(each, incumbent.mean):
                    return self._try(each, now_ns, "they may carry more")
                break  # the best candidate waits until the budget suffices
        first_cost = (incumbent.mean - base.mean) * (SETTLE_S + FEWEST * SAMPLE_S)
        may_try = self.incumbent != self.base and self._may_try(self.base, now_ns)
        if may_try and self._rest() > first_cost:
            return self._try(self.base, now_ns, "the chosen subflows have been used for long")
        return Outcome(self.incumbent)

    def _may_try(self, numbers: Numbers, now_ns: int) -> bool:
        return now_ns >= self._waits.get(numbers, (0, 0.0))[0]

    def _is_outdone_by(self, failed: Numbers, now_ns: int) -> bool:
        """Return whether the incumbent has come to carry less than a set that failed did."""  # 4
        until_ns, wait_s = self._waits[failed]
        newer_s = (now_ns - until_ns) / NS_PER_S + wait_s - SETTLE_S
        carried = self._goodput.get(failed)
        if not carried or newer_s < LATEST * SAMPLE_S:
            return False
        latest = self._goodput[self.incumbent].latest().mean
        return carried.latest().mean > latest * (1 + self.params.trial_gain)

    def _affordable(self, numbers: Numbers, rate: float) -> bool:
        """Return whether the budget covers the first samples of a trial of the subflows `numbers`.

        `rate` is the goodput before the trial in packets per second.
        """
        total = sum(self._shares.values())
        left_out = sum(each for number, each in self._shares.items() if number not in numbers)
        share = left_out / total if total else 1.0
        return rate * share / 4 * (SETTLE_S + FEWEST * SAMPLE_S) <= self._rest()

    def _rest(self) -> float:
        ahead = self._head_start_s * self._goodput.get(self.incumbent, Goodput()).mean
        return self.params.trial_budget * (self._carried + ahead) - self._cost

    def _try(self, numbers: Numbers, now_ns: int, why: str) -> Outcome:
        self.challenger, self._trial_ns = numbers, now_ns
        self._goodput.pop(numbers, None)
        self._settle(now_ns)
        return Outcome(numbers, f"trial of {_text(numbers)}: {why}")

    def _judge(self, now_ns: int) -> Outcome:
        """End the trial if the set on trial is clearly better or worse.

        Also end it if its time is over or if it costs too much.
        """  # 3, 4
        assert self.challenger is not None
        challenger = self._goodput.get(self.challenger, Goodput()).latest()
        incumbent = self._goodput[self.incumbent]
        over = now_ns - self._trial_ns >= ns_from_s(self.params.trial_s)
        costly = self._rest() < 0
        if self.challenger == self.base:
            return self._judge_base(now_ns, challenger, incumbent, over)
        errors = standard_errors(challenger, incumbent) if challenger else 0.0
        enough = challenger.mean > incumbent.mean * (1 + self.params.trial_gain)
        if enough and (errors >= DEVIATIONS or (over and challenger)):
            return self._end(now_ns, self.challenger, _compared(challenger, incumbent))
        if over or costly or errors <= -DEVIATIONS:
            self._wait(self.challenger, now_ns)
            why = "the trial costs too much" if costly else _compared(challenger, incumbent)
            return self._end(now_ns, self.incumbent, why)
        return Outcome(self.challenger)

    def _judge_base(self, now_ns: int, base: Goodput, incumbent: Goodput, over: bool) -> Outcome:
        """End a trial in which all subflows are in use, if its result is clear or its time is over.

        `over` is True if the time is over. `base` has the goodput of all subflows, and `incumbent`
        that of the set in use before the trial. This set wins only if it is clearly better.
        """  # 5
        worse = incumbent.mean > base.mean * (1 + self.params.trial_gain)
        if base and worse and (over or standard_errors(incumbent, base) >= DEVIATIONS):
            self._wait(self.base, now_ns)
            return self._end(now_ns, self.incumbent, _compared(incumbent, base))
        if (base and not worse) or over:
            self._wait(self.incumbent, now_ns)
            return self._end(now_ns, self.base, "all subflows carry as much")
        return Outcome(self.base)

    def _wait(self, numbers: Numbers, now_ns: int) -> None:
        """Do not try a set for a while. All subflows are tried again soon: a path may have
        recovered."""
        waited_s = self._waits.get(numbers, (0, 0.0))[1]
        wait_s = 2 * waited_s if waited_s and numbers != self.base else WAIT_S
        self._waits[numbers] = now_ns + ns_from_s(wait_s), wait_s

    def _end(self, now_ns: int, winner: Numbers, why: str) -> Outcome:
        won = winner == self.challenger
        if won and winner != self.base:
            self._wait(self.base, now_ns)
        self.incumbent, self.challenger = winner, None
        if not won:
            self._settle(now_ns)
        return Outcome(winner, f"trial ended, {_text(winner)} in use: {why}")


def _text(numbers: Numbers) -> str:
    return f"subflows {', '.join(map(str, sorted(numbers)))}"


def _compared(one: Goodput, other: Goodput) -> str:
    if not one.samples or not other.mean:
        return "nothing was measured"
    return f"{one.mean / other.mean - 1:+.0%} against the other set"
