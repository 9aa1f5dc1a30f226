"""Judge whether this machine is fast enough for the network that it emulates.

A run that overloads the machine has no valid results. Each sample checks five values:

- late: how much later than planned the sample was taken
- busy: whether the processors were nearly always busy
- lag: how much longer than planned packets waited to be sent in a WiFi cell
- lost: the share of processor time that this machine wanted and others took
  (machine/lost_time.py)
- time_squeeze: how often the kernel interrupted its packet processing

A run counts as overloaded if one of the first three persists for the time in `PATIENCE_S`. For
"late", this time is the sum of the delays of successive late samples. The time for lag is the
shortest, because late packets make results wrong. The other two are only a risk, and are normal
for a short time when many flows are in slow start. lost and time_squeeze are only reported, because
they also occur in valid runs: a processor that others take counts as busy, and what is not idle
enough for the network is late.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from lab.engines.mininet.machine.lost_time import stolen_share
from lab.run.report import Overload

LATE_S = 0.5
IDLE_SHARE = 0.10
LAG_MS = 60.0
# how long a condition must persist
PATIENCE_S = {"late": 2.0, "busy": 2.0, "lag": 1.0}


@dataclass(frozen=True)
class MachineSample:
    """One sample of the machine's load.

    `late_s` is how much later than planned the sample was taken. `idle_share` (0 to 1) is the idle
    share of the processors since the last sample. `lag_ms` is the largest lag of a WiFi cell
    (`Links.lag_ms`). `lost_share` (0 to 1) is the lost time divided by all processor time that was
    not idle. Lost is the time that others, such as the host of a VM, took from this machine.
    """

    late_s: float
    idle_share: float
    lag_ms: float
    lost_share: float = 0.0

    @property
    def taken_share(self) -> float:
        """The lost time as a share (0 to 1) of all processor time, idle time included.

        A nearly idle machine can lose half of the little time that it wants, without harm. Its
        `lost_share` is then large, but its `taken_share` is small.
        """
        return self.lost_share * (1 - self.idle_share)


@dataclass
class Watchdog:
    """Collects samples of the machine's load, and decides whether the run is overloaded.

    In a VM, the host writes the share of processor time that the VM loses into `lost_share_file`.
    """

    lost_share_file: Path | None = None
    samples: list[MachineSample] = field(default_factory=list)
    reasons: dict[str, str] = field(default_factory=dict)
    _lasted_s: dict[str, float] = field(default_factory=dict)
    _sampled_at: float = 0.0
    _stat: str = ""
    _squeezed: int | None = None

    def sample(
        self, t: float, late_s: float, lag_ms: float, proc: Path = Path("/proc")
    ) -> list[str]:
        """Take a sample at time `t` of the run [s]; return new reasons for overload, as text.

        `late_s` and `lag_ms` are fields of `MachineSample`. The other values are read from files in
        `proc`.
        """
        idle_share, stolen = self._processors((proc / "stat").read_text())
        if self._squeezed is None:
            self._squeezed = time_squeeze((proc / "net/softnet_stat").read_text())
        lost_share = 1 - (1 - stolen) * (1 - self._lost_by_host())
        sample = MachineSample(late_s, idle_share, lag_ms, lost_share)
        self.samples.append(sample)
        return self.judge(t, sample)

    def judge(self, t: float, sample: MachineSample) -> list[str]:
        """Judge a sample taken at time `t` of the run; return new reasons for overload, as text.

        The machine is judged by several conditions, such as busy processors. A condition becomes a
        reason when it has lasted for the time in `PATIENCE_S`. Each reason is returned only once.
        """
        span_s, self._sampled_at = t - self._sampled_at, t
        added_s = {"late": sample.late_s, "busy": span_s, "lag": span_s}
        conditions = {
            "late": (sample.late_s > LATE_S, f"the sampling tick came {sample.late_s:.2f} s late"),
            "busy": (
                sample.idle_share < IDLE_SHARE,
                f"the processors were {sample.idle_share:.0%} idle",
            ),
            "lag": (
                sample.lag_ms > LAG_MS,
                f"packets due on the air waited {sample.lag_ms:.0f} ms longer",
            ),
        }
        new = []
        for name, (holds, text) in conditions.items():
            before_s = self._lasted_s.get(name, 0.0)
            self._lasted_s[name] = before_s + added_s[name] if holds else 0.0
            if self._lasted_s[name] >= PATIENCE_S[name] and name not in self.reasons:
                self.reasons[name] = f"at {t:.1f} s {text}"
                new.append(self.reasons[name])
        return new

    def add(self, reason: str) -> None:
        """Mark the run as overloaded for a reason that was found before the run began."""
        self.reasons[reason] = reason

    def _processors(self, stat: str) -> tuple[float, float]:
        """Return the idle share and the stolen share since the last call (0 to 1).

        `stat` is the text of /proc/stat. Stolen processor time is time that the host of a VM took.
        """
        before, self._stat = self._stat or stat, stat
        (idle, total), (idle_before, total_before) = map(idle_and_total, (stat, before))
        if total <= total_before:
            return 1.0, 0.0
        return (idle - idle_before) / (total - total_before), stolen_share(before, stat)

    def _lost_by_host(self) -> float:
        try:
            return float(self.lost_share_file.read_text()) if self.lost_share_file else 0.0
        except (OSError, ValueError):  # not yet written, or being written
            return 0.0

    def verdict(self, proc: Path = Path("/proc")) -> Overload:
        """Return whether the run was overloaded, with the reasons and a summary of the samples."""
        squeezed = time_squeeze((proc / "net/softnet_stat").read_text()) - (self._squeezed or 0)
        idle = [each.idle_share for each in self.samples] or [1.0]
        lost = [each.lost_share for each in self.samples] or [0.0]
        taken = [each.taken_share for each in self.samples] or [0.0]
        figures = {
            "late_max_s": round(max((each.late_s for each in self.samples), default=0.0), 3),
            "idle_share_min": round(min(idle), 3),
            "idle_share_mean": round(sum(idle) / len(idle), 3) if self.samples else 0.0,
            "lag_max_ms": round(max((each.lag_ms for each in self.samples), default=0.0), 1),
            "lost_share_max": round(max(lost), 3),
            "lost_share_mean": round(sum(lost) / len(lost), 3),
            "taken_share_max": round(max(taken), 3),
            "taken_share_mean": round(sum(taken) / len(taken), 3),
            "time_squeeze": squeezed,
        }
        return Overload(bool(self.reasons), tuple(self.reasons.values()), figures)


def idle_and_total(stat: str) -> tuple[int, int]:
    """Return the idle time and the total time of the processors [jiffies], from /proc/stat."""
    fields = [int(number) for number in stat.splitlines()[0].split()[1:9]]
    return fields[3] + fields[4], sum(fields)


def time_squeeze(softnet_stat: str) -> int:
    """Return how often the kernel has interrupted its packet processing since boot.

    It is the sum of the third column of /proc/net/softnet_stat.
    """
    return sum(int(line.split()[2], 16) for line in softnet_stat.splitlines())
