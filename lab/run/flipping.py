"""Flips: changes of a parameter, such as `link.path1.loss`, while the run goes on.

A flip has two events in events.jsonl with the same `seq`. The first says that the change was sent.
The second says that the change was applied, or that it was refused and why. The simulator applies a
change at once. In the emulation, the controller POX makes some changes and answers later; without
an answer, only the first event exists.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lab.errors import LabError
from lab.run.engine import Answer, Engine
from lab.run.recorder import Recorder
from lab.scenario import targets
from lab.scenario.schema import Scenario

SENT, APPLIED, REFUSED = "sent", "applied", "refused"  # the states of a flip
CC_NOTE = "open connections use it too, from their present windows on; UDP has none"


@dataclass(eq=False)
class _Flip:
    """A change while the run goes on.

    `row` is the change's entry in result.json. A change has two events: one says that it was sent,
    the other has the outcome. `about` has the fields that both events share.
    """

    target: str
    value: Any
    t: float
    about: dict[str, Any]
    row: dict[str, Any]


class Flipping:
    """Checks changes while the run goes on (flips), sends them to the engine, and records the
    outcomes.

    `scenario` includes all changes so far, except those that were refused. Changes that the engine
    has not answered yet are included. The next change is checked against `scenario`.
    """

    def __init__(self, scenario: Scenario, engine: Engine, recorder: Recorder) -> None:
        self.scenario = self._first = scenario
        self._engine, self._recorder = engine, recorder
        self._made: list[_Flip] = []  # without the refused ones
        self._unanswered: dict[int, _Flip] = {}
        self._values: dict[str, Any] = {}  # the latest value of each changed parameter
        self._by_scenario = 0

    def from_scenario(self, t: float, target: str, value: Any) -> None:
        """Make a change that the scenario file lists under `events`.

        In events.jsonl, these changes have the `seq` `scenario-1`, `scenario-2` and so on.
        """
        self._by_scenario += 1
        self._make(t, target, value, source="scenario", seq=f"scenario-{self._by_scenario}")

    def from_inbox(self, t: float, target: str, value: Any, seq: str) -> None:
        self._make(t, target, value, source="inbox", seq=seq)

    def unreadable(self, t: float, seq: str, problem: str) -> None:
        """Record a message from the inbox of the run that could not be read or names no
        parameter."""
        self._recorder.event(t, "flip", ok=False, seq=seq, **_refusal(problem))

    def answered(self, answer: Answer, t: float) -> None:
        """Record the engine's answer to a change that it could not apply at once."""
        flip = self._unanswered.pop(answer.number, None)
        if flip is None:
            if answer.refused:
                self._recorder.event(t, "warning", text=answer.refused)
        elif answer.refused:
            self._refused(flip, t, answer.refused)
        else:
            self._applied(flip, t)

    def _make(self, t: float, target: str, value: Any, **about: Any) -> None:
        fields = {"target": target, "value": value, **about}
        try:
            value = targets.check_flip(self.scenario, target, value)
        except LabError as error:
            self._recorder.event(t, "flip", **fields, state=SENT)
            self._recorder.event(t, "flip", ok=False, **fields, **_refusal(str(error)))
            return
        fields = {"target": target, "old": self._present(target), "value": value, **about}
        row = {"t": t} | {key: fields[key] for key in ("target", "old", "value")}
        flip = _Flip(target, value, t, fields, row | {"state": SENT, "ok": False})
        self._recorder.event(t, "flip", **fields, state=SENT)
        change = targets.change(self.scenario, target, value)
        self._remember(flip)
        if about["source"] == "inbox":
            self._recorder.flips.append(flip.row)
        try:
            number = self._engine.apply(change)
        except LabError as error:
            self._refused(flip, t, str(error))
            return
        if number is None:
            self._applied(flip, t)
        else:
            self._unanswered[number] = flip

    def _remember(self, flip: _Flip) -> None:
        self._made.append(flip)
        self._values = {
            name: each
            for name, each in self._values.items()
            if not targets.is_replaced(name, flip.target)
        }
        self._values[flip.target] = flip.value
        self.scenario = targets.after(self.scenario, flip.target, flip.value)

    def _present(self, target: str) -> Any:
        """Return the latest value of a parameter. The value of `strategy` is the strategy's
        name."""
        if target in self._values and not target.startswith("strategy"):
            return self._values[target]
        return targets.targets(self.scenario)[target].value

    def _applied(self, flip: _Flip, t: float) -> None:
        t = round(max(t, flip.t), 3)
        flip.row.update(t=t, state=APPLIED, ok=True)
        if flip.target in ("strategy", "cc"):
            is_strategy = flip.target == "strategy"
            self._recorder.use(flip.value["name"] if is_strategy else flip.value)
        note = {"note": CC_NOTE} if flip.target == "cc" else {}
        self._recorder.event(t, "flip", ok=True, **flip.about, state=APPLIED, **note)

    def _refused(self, flip: _Flip, t: float, why: str) -> None:
        """Record that a change was refused, and rebuild `scenario` from the other changes."""
        left = [each for each in self._made if each is not flip]
        self._made, self._values, self.scenario = [], {}, self._first
        for each in left:
            self._remember(each)
        if flip.row in self._recorder.flips:
            self._recorder.flips.remove(flip.row)
        self._recorder.event(max(t, flip.t), "flip", ok=False, **flip.about, **_refusal(why))


def _refusal(why: str) -> dict[str, Any]:
    """Return the fields of the event that records a refused change.

    `error` repeats `why`, because events of older versions have only `error`.
    """
    return {"state": REFUSED, "why": why, "error": why}
