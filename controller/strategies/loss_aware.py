"""Set a subflow that loses packets to backup until its loss is gone (MPTCP-LA).

A subflow is normal or backup; a backup subflow sends no data. Every `interval_s`, for every
connection (MPTCP-LA, section 3.3):
1) Count the packets sent and lost on each normal subflow over a measurement window. The window ends
   at the first step at which `window_packets` have been sent.
2) If loss = lost / sent >= gamma, the threshold for its kind of interface, the subflow should
   become backup. This is decided before the end of the window if the lost packets already reach
   gamma times `window_packets`.
3) Of the subflows that should become backup, only the one with the largest loss does, and never the
   last normal one.
4) A backup subflow sends nothing, so its loss cannot be counted. It becomes normal when its
   interface reports a loss below gamma; without a report it stays backup. An interface that does
   not notice a loss reports 0, so its subflow becomes normal at the next step. To prevent this, set
   `stay_s` together with the loss sources `network` and `tcp`.
A subflow counts as normal if its hosts report it as normal and the strategy's last command did not
make it backup. A command that the hosts did not confirm is repeated.

With `thresholds: measured`, which is ours, step 3 is another one. All subflows are normal at first.
If the loss of a subflow reaches gamma, the strategy tries the others without it for a bounded time,
and leaves it only if they carry more than all did (module `trial`). If several reach it, the one
with the largest loss is tried first. If a reported loss, or the round trip or capacity of a path,
doubles, halves, begins or ends, all subflows become normal and are measured anew. While a user has
several connections, nothing is tried, because the kernel sets backup flags per address.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from controller.command import Decision, SetBackup, subflow_name
from controller.observation import Observation, Subflow, SubflowKey
from controller.strategies.base import Strategy, StrategyParams, choice, param, without_subflows
from controller.strategies.subflow_selection.selecting import arcs_along, state
from controller.strategies.trial import Conditions, PathState, TrialParams, Trials, is_alone
from controller.topology import Topology
from controller.units import ns_from_s


@dataclass
class Window:
    """The loss measurement of one subflow, and the latest command for the subflow.

    `backup` is True if the latest command made the subflow backup, and `since_ns` is the time of
    this command. `sent` and `lost` count the packets of the present measurement. `counted` has the
    subflow's sent and lost counters at the previous control step. It is None if they were not read
    since the command.
    """

    backup: bool
    since_ns: int
    counted: tuple[int, int] | None = None
    sent: int = 0
    lost: float = 0.0

    def restart(self) -> None:
        self.sent, self.lost = 0, 0.0

    def set_mode(self, backup: bool, now_ns: int) -> None:
        """Store a command that makes the subflow backup or not.

        What is sent until the next control step does not count: the hosts carry it out meanwhile.
        """
        self.backup, self.since_ns, self.counted = backup, now_ns, None


@dataclass(frozen=True)
class Verdict:
    """A subflow whose loss has reached the threshold `gamma`.

    The loss was reported by the subflow's interface, or its lost packets were counted.
    """

    subflow: Subflow
    sent: int
    lost: float
    gamma: float
    is_reported: bool

    @property
    def loss(self) -> float:
        return self.lost / self.sent

    def text(self) -> str:
        measured = (
            "its interface reports a loss of"
            if self.is_reported
            else f"{self.lost:.0f} of {self.sent} packets lost:"
        )
        return f"{measured} {self.loss:.3%} >= {self.gamma:.3%}"


START_S = 3.0  # until new subflows are measured; longer, trials of short connections come too late
ROUNDING = 1e-9  # a loss equal to gamma, apart from rounding, reaches gamma


class LossAwareParams(TrialParams):
    """Parameters of the strategy `loss_aware`.

    The loss thresholds (gamma) are those of MPTCP-LA, section 4.3.1. The paper gives no value for
    the window length N, so the default of `window_packets` is ours.
    """

    interval_s: float = param(0.5, "s", "Time between two control steps", ge=0.2, le=60)
    thresholds: Literal["paper", "measured"] = choice(
        "paper",
        "Leave a path from gamma on as in the paper, or only if the others carry more then (ours)",
    )
    window_packets: int = param(
        1000, "packets", "Packets of a subflow between two verdicts (N)", ge=10, le=1_000_000
    )
    gamma_wifi: float = param(
        0.0001,
        "fraction",
        "Loss from which a subflow over WiFi becomes backup",
        words="Most loss over WiFi (gamma)",
        gt=0,
        le=1,
    )
    gamma_lte: float = param(
        0.01,
        "fraction",
        "Loss from which a subflow over LTE becomes backup",
        words="Most loss over LTE (gamma)",
        gt=0,
        le=1,
    )
    gamma_wired: float = param(
        0.0001,
        "fraction",
        "Loss from which a subflow over a cable becomes backup",
        words="Most loss over a cable (gamma)",
        gt=0,
        le=1,
    )
    loss_source: Literal["device", "network", "tcp"] = choice(
        "device",
        "What counts as lost: the loss that the user's interface reports (as in the paper), "
        "packets that entered the path and did not leave it, or packets that TCP retransmitted",
    )
    stay_s: float = param(
        0.0, "s", "Shortest time as normal or as backup; the paper has none", ge=0, le=600
    )


class LossAware(Strategy):
    """Turns subflows with a large loss into backup subflows (MPTCP-LA).

    When the controller restarts or a parameter changes, the packet counts of the present
    measurement and the latest commands are lost.
    """

    name = "loss_aware"
    Params = LossAwareParams
    params: LossAwareParams
    improved = {"thresholds": "measured"}

    @classmethod
    def unfit(cls, network: Topology) -> str | None:
        return without_subflows(network)

    def __init__(self, params: StrategyParams) -> None:
        super().__init__(params)
        self._windows: dict[SubflowKey, Window] = {}
        self._suspects: dict[SubflowKey, Verdict] = {}  # for `thresholds: measured`, as `_trials`
        self._trials: dict[str, Trials] = {}

    def decide(self, observation: Observation) -> list[Decision]:
        self._windows = {
            each.key: self._windows.get(each.key) or Window(each.backup, observation.now_ns)
            for each in observation.subflows
        }
        measured = self.params.thresholds == "measured"
        decide_for = self._decide_by_trials if measured else self._decide_for
        connections = observation.connections()
        self._trials = {name: each for name, each in self._trials.items() if name in connections}
        return [
            decision
            for subflows in connections.values()
            if len(subflows) > 1
            for decision in decide_for(subflows, observation)
        ]

    def withdraw(self, observation: Observation) -> list[Decision]:
        why = "strategy withdrawn: the subflow becomes normal"
        return [
            _set_backup(each, False, why)
            for each in observation.subflows
            if each.backup or self._commanded(each)
        ]

    def _commanded(self, subflow: Subflow) -> bool:
        """Return whether this strategy's latest command for the subflow made it backup."""
        window = self._windows.get(subflow.key)
        return window is not None and window.backup

    def _decide_for(
        self, subflows: tuple[Subflow, ...], observation: Observation
    ) -> list[Decision]:
        normal = [each for each in subflows if not each.backup and not self._commanded(each)]
        unconfirmed = [each for each in subflows if each.backup != self._commanded(each)]
        decisions = [
            _set_backup(each, self._commanded(each), "repeated: the hosts have not confirmed it")
            for each in unconfirmed
        ]
        decisions += self._returning(
            [each for each in subflows if each.backup and self._commanded(each)], observation
        )
        verdicts = [
            verdict for each in normal if (verdict := self._judge(each, observation)) is not None
        ]
        return decisions + self._leaving(verdicts, len(normal), observation.now_ns)

    def _decide_by_trials(
        self, subflows: tuple[Subflow, ...], observation: Observation
    ) -> list[Decision]:
        """Return the commands that put a set of subflows of one connection into use.

        While a trial runs, this is the set on trial. Otherwise it is the best set so far.
        """
        for each in subflows:
            verdict = None if each.backup else self._judge(each, observation)
            if verdict is not None:
                self._suspects[each.key] = verdict
            elif not self._windows[each.key].sent:  # a window has ended without a verdict
                self._suspects.pop(each.key, None)
        suspects = [self._suspects[each.key] for each in subflows if each.key in self._suspects]
        suspects.sort(key=lambda each: (-each.loss, each.subflow.number))
        trials = self._trials.setdefault(
            subflows[0].connection, Trials(self.params, start_s=START_S)
        )
        candidates = [trials.incumbent - {each.subflow.number} for each in suspects]
        alone = is_alone(subflows, observation)
        conditions = Conditions(_states(subflows, observation), alone)
        outcome = trials.step(observation.now_ns, subflows, conditions, candidates if alone else ())
        why = outcome.reason or "repeated: the hosts have not confirmed it"
        texts = {each.subflow.key: f"{each.text()}; {why}" for each in suspects}
        changes = [
            (each, each.number not in outcome.active)
            for each in subflows
            if each.backup == (each.number in outcome.active)
        ]
        changes.sort(key=lambda change: change[1])  # normal first
        return [_set_backup(each, backup, texts.get(each.key, why)) for each, backup in changes]

    def _judge(self, subflow: Subflow, observation: Observation) -> Verdict | None:
        """Return a verdict if the loss of a subflow has reached the threshold, else None.

        A measurement ends with a verdict, or when `window_packets` packets were sent. Then a new
        one begins.
        """
        window, gamma = self._windows[subflow.key], self._gamma(subflow, observation)
        self._count(window, subflow)  # 1
        reached = window.lost * (1 + ROUNDING) >= gamma * max(
            window.sent, self.params.window_packets
        )  # 2
        verdict = (
            Verdict(subflow, window.sent, window.lost, gamma, self.params.loss_source == "device")
            if reached and window.sent
            else None
        )
        if verdict or window.sent >= self.params.window_packets:
            window.restart()
        return verdict

    def _count(self, window: Window, subflow: Subflow) -> None:
        """Add to `window` the packets that the subflow has sent and lost since the previous step.

        Nothing is added if a counter is missing or has restarted from a lower value.
        """
        by_source = {
            "device": 0,
            "network": subflow.lost_packets,
            "tcp": subflow.retransmitted_packets,
        }
        sent, lost = subflow.sent_packets, by_source[self.params.loss_source]
        if sent is None or lost is None:
            return
        before, window.counted = window.counted, (sent, lost)
        if before is None or sent < before[0] or lost < before[1]:  # the counters restarted
            return
        newly_sent = sent - before[0]
        window.sent += newly_sent
        device = self.params.loss_source == "device"
        window.lost += newly_sent * (subflow.device_loss or 0.0) if device else lost - before[1]

    def _leaving(self, verdicts: list[Verdict], normal: int, now_ns: int) -> list[Decision]:
        """Return decisions about the subflows in `verdicts`, whose loss has reached the threshold.

        The subflow with the largest loss becomes backup, unless it is the last one in use, or came
        into use less than `stay_s` ago. A decision about a subflow that stays in use only says why.
        `normal` is the number of the connection's subflows that are in use.
        """
        ranked = sorted(verdicts, key=lambda each: (-each.loss, each.subflow.number))  # 3
        if not ranked:
            return []
        worst = ranked[0]
        if normal < 2:
            return [_keep(worst.subflow, f"{worst.text()}, but it is the last normal subflow")]
        if not self._may_change(worst.subflow, now_ns):
            return [
                _keep(
                    worst.subflow,
                    f"{worst.text()}, but it is normal for less than {self.params.stay_s:g} s",
                )
            ]
        self._windows[worst.subflow.key].set_mode(True, now_ns)
        kept = [
            _keep(each.subflow, f"{each.text()}, but {subflow_name(worst.subflow.key)} loses more")
            for each in ranked[1:]
        ]
        return [_set_backup(worst.subflow, True, worst.text()), *kept]

    def _returning(self, backups: Iterable[Subflow], observation: Observation) -> list[Decision]:
        """Return a command for each subflow in `backups` that shall be in use again.

        The subflow must have been backup for at least `stay_s`, and its interface must report a
        loss below the threshold.
        """
        decisions = []
        for each in backups:
            gamma = self._gamma(each, observation)
            gone = each.device_loss is not None and each.device_loss * (1 + ROUNDING) < gamma  # 4
            if gone and self._may_change(each, observation.now_ns):
                self._windows[each.key].set_mode(False, observation.now_ns)
                text = f"its interface reports a loss of {each.device_loss:.3%} < {gamma:.3%}"
                decisions.append(_set_backup(each, False, text))
        return decisions

    def _may_change(self, subflow: Subflow, now_ns: int) -> bool:
        return now_ns - self._windows[subflow.key].since_ns >= ns_from_s(self.params.stay_s)

    def _gamma(self, subflow: Subflow, observation: Observation) -> float:
        kinds = {ap.id: ap.kind for ap in observation.access_points}
        by_kind = {"wifi": self.params.gamma_wifi, "lte": self.params.gamma_lte}
        return by_kind.get(kinds.get(subflow.ap, ""), self.params.gamma_wired)


def _states(subflows: Iterable[Subflow], observation: Observation) -> tuple[PathState, ...]:
    arcs = {(arc.tail, arc.head): arc for arc in observation.arcs}

    def of(subflow: Subflow) -> PathState:
        path = arcs_along(subflow, arcs)
        known = state(path) if path else PathState(None)
        return replace(known, loss=subflow.device_loss)

    return tuple(map(of, subflows))


def _set_backup(subflow: Subflow, backup: bool, reason: str) -> Decision:
    return Decision(subflow_name(subflow.key), reason, SetBackup(subflow.key, backup))


def _keep(subflow: Subflow, reason: str) -> Decision:
    return Decision(subflow_name(subflow.key), reason)
