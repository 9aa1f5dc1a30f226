"""Measure how busy this machine is."""

from __future__ import annotations

import os
import time
from pathlib import Path

from lab.classroom.queue import Load

PROC = Path("/proc")
UNKNOWN_FREE = 2**40  # bytes: where the free memory cannot be read, it does not limit
SHORTEST_S = 0.5  # between two measurements


class LoadMeter:
    """Measure the share of the processors that was busy since the measurement before."""

    def __init__(self, proc: Path = PROC) -> None:
        self._proc = proc
        self._last = self._ticks()
        self._at, self._busy = time.monotonic(), 0.0
        self.last = Load(0.0, os.cpu_count() or 1, self._free_bytes())  # what `read` returned last

    def read(self) -> Load:
        """Return the load of the machine. It is measured at most twice a second."""
        if time.monotonic() - self._at >= SHORTEST_S:
            now = self._ticks()
            busy, all_ticks = (new - old for new, old in zip(now, self._last, strict=True))
            if all_ticks > 0:
                self._busy = min(1.0, max(0.0, busy / all_ticks))
            self._last, self._at = now, time.monotonic()
        self.last = Load(self._busy, os.cpu_count() or 1, self._free_bytes())
        return self.last

    def _ticks(self) -> tuple[int, int]:
        """Return the busy ticks and all ticks of all processors since the machine booted. Where
        there is no /proc, return ticks that show the load average."""
        try:
            first = (self._proc / "stat").read_text(encoding="ascii").splitlines()[0]
        except OSError:
            share = os.getloadavg()[0] / (os.cpu_count() or 1)
            now = int(time.monotonic() * 100)
            return int(now * min(1.0, share)), now
        fields = [int(each) for each in first.split()[1:9]]
        idle = fields[3] + fields[4]
        return sum(fields) - idle, sum(fields)

    def _free_bytes(self) -> int:
        try:
            text = (self._proc / "meminfo").read_text(encoding="ascii")
        except OSError:
            return UNKNOWN_FREE
        for line in text.splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
        return UNKNOWN_FREE
