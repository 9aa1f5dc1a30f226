"""Is this machine fast enough for what it emulates? A run that overloads it is evidence of nothing.

Each sample is looked at in four ways: how late the tick came, how idle the processors were, whether packets whose time
on the air had come were still waiting, and whether the kernel gave up in the middle of its packet work. The first three
condemn a run when they last; the last is only reported, because a healthy run has some. Late packets are wrong results;
a late tick or busy processors only threaten them, and the first moment of many flows in slow start has both.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from lab.run.report import Overload

LATE_S = 0.5
IDLE_SHARE = 0.10
LAG_MS = 60.0
PATIENCE_S = {"late": 2.0, "busy": 2.0, "lag": 1.0}  # how long a condition holds before it counts


@dataclass(frozen=True)
class Look:
    """One sample of the machine. `lag_ms` is the largest of the cells."""

    late_s: float
    idle_share: float
    lag_ms: float


@dataclass
class Watchdog:
    """Judges looks as they come."""

    looks: list[Look] = field(default_factory=list)
    reasons: dict[str, str] = field(default_factory=dict)
    _held_s: dict[str, float] = field(default_factory=dict)
    _looked_at: float = 0.0
    _processors: tuple[int, int] | None = None
    _squeezed: int | None = None

    def look(self, t: float, late_s: float, lag_ms: float, proc: Path = Path("/proc")) -> list[str]:
        """Take one look; the reasons that are new with it."""
        idle_share = self._idle_share((proc / "stat").read_text())
        if self._squeezed is None:
            self._squeezed = time_squeeze((proc / "net/softnet_stat").read_text())
        seen = Look(late_s, idle_share, lag_ms)
        self.looks.append(seen)
        return self.judge(t, seen)

    def judge(self, t: float, seen: Look) -> list[str]:
        """Add up how long each condition has held, in s of the run; say which became a reason just now."""
        span_s, self._looked_at = t - self._looked_at, t
        lasted_s = {"late": seen.late_s, "busy": span_s, "lag": span_s}
        conditions = {
            "late": (seen.late_s > LATE_S, f"the sampling tick came {seen.late_s:.2f} s late"),
            "busy": (
                seen.idle_share < IDLE_SHARE,
                f"the processors were {seen.idle_share:.0%} idle",
            ),
            "lag": (
                seen.lag_ms > LAG_MS,
                f"packets due on the air waited {seen.lag_ms:.0f} ms longer",
            ),
        }
        new = []
        for name, (holds, text) in conditions.items():
            self._held_s[name] = self._held_s.get(name, 0.0) + lasted_s[name] if holds else 0.0
            if self._held_s[name] >= PATIENCE_S[name] and name not in self.reasons:
                self.reasons[name] = f"at {t:.1f} s {text}"
                new.append(self.reasons[name])
        return new

    def _idle_share(self, stat: str) -> float:
        before, self._processors = self._processors, idle_and_total(stat)
        if before is None or self._processors[1] <= before[1]:
            return 1.0
        return (self._processors[0] - before[0]) / (self._processors[1] - before[1])

    def verdict(self, proc: Path = Path("/proc")) -> Overload:
        """Return whether the machine kept up, with the evidence."""
        squeezed = time_squeeze((proc / "net/softnet_stat").read_text()) - (self._squeezed or 0)
        idle = [look.idle_share for look in self.looks] or [1.0]
        figures = {
            "late_max_s": round(max((look.late_s for look in self.looks), default=0.0), 3),
            "idle_share_min": round(min(idle), 3),
            "idle_share_mean": round(sum(idle) / len(idle), 3) if self.looks else 0.0,
            "lag_max_ms": round(max((look.lag_ms for look in self.looks), default=0.0), 1),
            "time_squeeze": squeezed,
        }
        return Overload(bool(self.reasons), tuple(self.reasons.values()), figures)


def idle_and_total(stat: str) -> tuple[int, int]:
    """Jiffies idle and in all, from /proc/stat."""
    fields = [int(number) for number in stat.splitlines()[0].split()[1:9]]
    return fields[3] + fields[4], sum(fields)


def time_squeeze(softnet_stat: str) -> int:
    """How often packet work was cut short, from /proc/net/softnet_stat (third column)."""
    return sum(int(line.split()[2], 16) for line in softnet_stat.splitlines())
