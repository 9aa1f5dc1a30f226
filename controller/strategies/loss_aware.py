"""MPTCP-LA: a subflow that loses packets stays back as backup until its interface says that the loss is gone.

Every `interval_s`, for every connection (MPTCP-LA, section 3.3):
1) a normal subflow: count what was sent and lost; a window ends with the first look after `window_packets`
2) loss = lost / sent >= gamma of its interface: it should go. What `window_packets` may lose can be gone before the window is
   full; then the answer is known, and not waited for
3) of those that should go, the one with the larger loss becomes backup, unless it is the last normal subflow
4) a backup subflow sends nothing, so its counters stand still: it is normal again once its interface reports a loss < gamma.
   Without a report it stays. What an interface does not see brings a subflow back at once: give `stay_s` with `network` and `tcp`
A subflow counts as normal only when its hosts say so and nothing else was asked of it; what they did not confirm is asked again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from controller.command import Decision, SetBackup, about
from controller.observation import Observation, Subflow, SubflowKey
from controller.plan import Plan
from controller.strategies.base import Strategy, StrategyParams, param, without_subflows
from controller.units import ns_from_s

ROUNDING = 1e-9  # a loss that is written as gamma reaches gamma


class LossAwareParams(StrategyParams):
    """Thresholds of MPTCP-LA, section 4.3.1; the window's length N is not given there."""

    interval_s: float = param(0.5, "s", "Time between two looks at the counters", ge=0.2, le=60)
    window_packets: int = param(
        1000, "packets", "Packets of a subflow between two judgements (N)", ge=10, le=1_000_000
    )
    gamma_wifi: float = param(
        0.0001, "fraction", "Loss from which a WiFi interface is left", gt=0, le=1
    )
    gamma_lte: float = param(
        0.01, "fraction", "Loss from which an LTE interface is left", gt=0, le=1
    )
    gamma_wired: float = param(
        0.0001,
        "fraction",
        "Loss from which an interface is left that is at no access point",
        gt=0,
        le=1,
    )
    loss_source: Literal["device", "network", "tcp"] = param(
        "device",
        "choice",
        "Lost is what the user's interface reports (the paper's oracle), what entered the path and did not leave it, or what TCP sent again",
    )
    stay_s: float = param(0.0, "s", "Shortest stay in a mode; the paper has none", ge=0, le=600)


@dataclass
class Watched:
    """A subflow's window and mode; `counted` is where its counters stood at the last look, None after a pause."""

    backup: bool  # as asked
    since_ns: int
    counted: tuple[int, int] | None = None
    sent: int = 0
    lost: float = 0.0

    def empty(self) -> None:
        """Begin a window."""
        self.sent, self.lost = 0, 0.0

    def turn(self, backup: bool, now_ns: int) -> None:
        """Ask for the other mode, and count anew."""
        self.backup, self.since_ns, self.counted = backup, now_ns, None
        self.empty()


@dataclass(frozen=True)
class Verdict:
    """A subflow whose window has reached gamma."""

    subflow: Subflow
    sent: int
    lost: float
    gamma: float

    @property
    def loss(self) -> float:
        return self.lost / self.sent

    def text(self) -> str:
        return f"loss {self.loss:.3%} of {self.sent} packets >= {self.gamma:.3%}"


class LossAware(Strategy):
    """Keeps windows only: a controller that starts again, and a change of parameters, begin new ones."""

    name = "loss_aware"
    Params = LossAwareParams
    params: LossAwareParams

    @classmethod
    def unfit(cls, plan: Plan) -> str | None:
        return without_subflows(plan)

    def __init__(self, params: StrategyParams) -> None:
        super().__init__(params)
        self._watched: dict[SubflowKey, Watched] = {}

    def decide(self, seen: Observation) -> list[Decision]:
        self._watched = {
            each.key: self._watched.get(each.key) or Watched(each.backup, seen.now_ns)
            for each in seen.subflows
        }
        connections = seen.connections().values()
        return [
            decision
            for subflows in connections
            if len(subflows) > 1
            for decision in self._decide_for(subflows, seen)
        ]

    def withdraw(self, seen: Observation) -> list[Decision]:
        back = [each for each in seen.subflows if each.backup or self._asked(each)]
        return [
            _turned(each, False, "the strategy was withdrawn: an ordinary subflow again")
            for each in back
        ]

    def _asked(self, subflow: Subflow) -> bool:
        watched = self._watched.get(subflow.key)
        return watched is not None and watched.backup

    def _decide_for(self, subflows: tuple[Subflow, ...], seen: Observation) -> list[Decision]:
        normal = [each for each in subflows if not each.backup and not self._asked(each)]
        unconfirmed = [each for each in subflows if each.backup != self._asked(each)]
        decisions = [
            _turned(each, self._asked(each), "asked before, and not confirmed yet")
            for each in unconfirmed
        ]
        decisions += self._returned(
            [each for each in subflows if each.backup and self._asked(each)], seen
        )
        verdicts = [verdict for each in normal if (verdict := self._judged(each, seen)) is not None]
        return decisions + self._left(verdicts, len(normal), seen.now_ns)

    def _judged(self, subflow: Subflow, seen: Observation) -> Verdict | None:
        """The verdict on a normal subflow whose window has ended or has lost too much already."""
        watched, gamma = self._watched[subflow.key], self._gamma(subflow, seen)
        self._count(watched, subflow)  # 1
        reached = watched.lost * (1 + ROUNDING) >= gamma * max(
            watched.sent, self.params.window_packets
        )  # 2
        verdict = (
            Verdict(subflow, watched.sent, watched.lost, gamma)
            if reached and watched.sent
            else None
        )
        if verdict or watched.sent >= self.params.window_packets:
            watched.empty()
        return verdict

    def _count(self, watched: Watched, subflow: Subflow) -> None:
        """Add what was sent and lost since the last look; nothing while nobody counts or reports."""
        by_source = {
            "device": 0,
            "network": subflow.lost_packets,
            "tcp": subflow.retransmitted_packets,
        }
        sent, lost = subflow.sent_packets, by_source[self.params.loss_source]
        if sent is None or lost is None:
            return
        before, watched.counted = watched.counted, (sent, lost)
        if before is None or sent < before[0] or lost < before[1]:  # the counters began again
            return
        newly_sent = sent - before[0]
        watched.sent += newly_sent
        device = self.params.loss_source == "device"
        watched.lost += newly_sent * (subflow.device_loss or 0.0) if device else lost - before[1]

    def _left(self, verdicts: list[Verdict], normal: int, now_ns: int) -> list[Decision]:
        """One subflow at most becomes backup."""
        ranked = sorted(verdicts, key=lambda each: (-each.loss, each.subflow.number))  # 3
        if not ranked:
            return []
        worst = ranked[0]
        if normal < 2:
            return [_kept(worst.subflow, f"{worst.text()}, but it is the last normal subflow")]
        if not self._may_turn(worst.subflow, now_ns):
            return [
                _kept(
                    worst.subflow,
                    f"{worst.text()}, but it is normal for less than {self.params.stay_s:g} s",
                )
            ]
        self._watched[worst.subflow.key].turn(True, now_ns)
        kept = [
            _kept(each.subflow, f"{each.text()}, but {about(worst.subflow.key)} loses more")
            for each in ranked[1:]
        ]
        return [_turned(worst.subflow, True, worst.text()), *kept]

    def _returned(self, waiting: Iterable[Subflow], seen: Observation) -> list[Decision]:
        decisions = []
        for each in waiting:
            gamma = self._gamma(each, seen)
            gone = each.device_loss is not None and each.device_loss * (1 + ROUNDING) < gamma  # 4
            if gone and self._may_turn(each, seen.now_ns):
                self._watched[each.key].turn(False, seen.now_ns)
                decisions.append(
                    _turned(
                        each,
                        False,
                        f"its interface reports a loss of {each.device_loss:.3%} < {gamma:.3%}",
                    )
                )
        return decisions

    def _may_turn(self, subflow: Subflow, now_ns: int) -> bool:
        return now_ns - self._watched[subflow.key].since_ns >= ns_from_s(self.params.stay_s)

    def _gamma(self, subflow: Subflow, seen: Observation) -> float:
        """The threshold of the subflow's interface: by the kind of its access point, and wired without one."""
        kinds = {ap.id: ap.kind for ap in seen.access_points}
        by_kind = {"wifi": self.params.gamma_wifi, "lte": self.params.gamma_lte}
        return by_kind.get(kinds.get(subflow.ap, ""), self.params.gamma_wired)


def _turned(subflow: Subflow, backup: bool, reason: str) -> Decision:
    return Decision(about(subflow.key), reason, SetBackup(subflow.key, backup))


def _kept(subflow: Subflow, reason: str) -> Decision:
    return Decision(about(subflow.key), reason)
