"""What users notice while a run goes on, for its samples: how long they waited, whether their
videos stood still, and how their calls sound. `lab.run.transfers` and `lab.run.calls` have the
numbers of a whole run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

from lab.frame import Frame
from lab.run import calls
from lab.run.report import VideoReport
from lab.scenario.flows import Act, Flow

DIGITS = 4
NOTICED_IN = {  # the field of a sample that says how the traffic of a kind feels
    **dict.fromkeys(("file", "workload", "rpc", "web"), "waited_s"),
    "call": "mos",
    "video": "stalled",
}
FIELDS = tuple(dict.fromkeys(NOTICED_IN.values()))
Heard = Callable[[Flow, range], list[float]]  # delays in ms


@dataclass
class _User:
    waited_s: list[float] = field(default_factory=list)  # since the last sample
    stalled: list[float] = field(default_factory=list)
    mos: list[float] = field(default_factory=list)


class Felt:
    """Adds to samples what users notice.

    `heard` returns the one-way delays of those datagrams of a direction of a call that have
    arrived; datagrams are numbered from 0.
    """

    def __init__(self, acts: Iterable[Act], heard: Heard) -> None:
        """`acts` is the schedule of the run."""
        spoken = [act for act in acts if act.flow.call]
        stops_s = {act.flow.id: act.at_s for act in spoken if act.verb == "stop"}
        self._calls = [
            (act.flow, act.at_s, stops_s.get(act.flow.id, float("inf")))
            for act in spoken
            if act.verb == "start"
        ]
        self._heard = heard
        self._users: dict[str, _User] = {}
        self._still_s: dict[str, float] = {}  # of each video, until the last sample
        self._at_s = 0.0

    def completed(self, event: Mapping[str, str | float]) -> None:
        """Note the event of a transfer that is complete. A chunk of a video does not count: its
        viewer waits only while the video stands still."""
        if event.get("traffic") != "video":
            self._of(str(event["user"])).waited_s.append(float(event["completion_s"]))

    def added_to(self, frame: Frame, videos: Iterable[VideoReport]) -> Frame:
        """Return a copy of a sample with what users noticed since the last one. `videos` are
        reports until now."""
        passed_s, self._at_s = max(1e-6, frame.t - self._at_s), frame.t
        for video in videos:
            still_s = video.startup_s + video.stall_s
            before_s = self._still_s.get(video.connection, 0.0)
            self._still_s[video.connection] = still_s
            part = min(1.0, max(0.0, (still_s - before_s) / passed_s))
            self._of(video.user).stalled.append(part)
        for flow, start_s, stop_s in self._calls:
            score = self._mos(flow, start_s, stop_s)
            if score is not None:
                self._of(flow.user).mos.append(score)
        found, self._users = self._users, {}
        if not found:
            return frame
        users = {
            name: replace(
                each,
                waited_s=_mean(found[name].waited_s),
                mos=min(found[name].mos, default=None),
                stalled=_mean(found[name].stalled),
            )
            if name in found
            else each
            for name, each in frame.user.items()
        }
        return replace(frame, user=users)

    def _mos(self, flow: Flow, start_s: float, stop_s: float) -> float | None:
        """Return the MOS of one direction of a call in the latest window whose datagrams have had
        time to arrive; None while this window is shorter than a second, and after the call."""
        assert flow.call is not None
        until_s = self._at_s - calls.LAST_S
        spoken_s = until_s - start_s
        if spoken_s < calls.LAST_S or until_s > stop_s:
            return None
        sent = int(spoken_s / flow.call.packet_s)
        window = range(max(0, sent - round(calls.WINDOW_S / flow.call.packet_s)), sent)
        score = calls.score(flow.call, self._heard(flow, window), len(window))
        return round(score.mos, DIGITS)

    def _of(self, user: str) -> _User:
        return self._users.setdefault(user, _User())


def _mean(values: Sequence[float]) -> float | None:
    return round(fmean(values), DIGITS) if values else None
