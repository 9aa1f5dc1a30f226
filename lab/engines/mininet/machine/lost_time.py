"""Measure the processor time that programs lose to other programs, and VMs to their hosts.

A program loses time while it is ready to run but has no processor. In an emulation, lost time looks
like a slow network.
"""

from __future__ import annotations

from pathlib import Path

PERIOD_S = 1.0


def stolen_share(before: str, after: str) -> float:
    """Return steal as a share (0 to 1) of all processor time that was not idle.

    Steal is the time that the host of a VM took from the VM. `before` and `after` are texts of
    /proc/stat.
    """
    old, new = _fields(before), _fields(after)
    changes = [b - a for a, b in zip(old, new, strict=True)]
    wanted = sum(changes) - changes[3] - changes[4]  # without idle and iowait
    return changes[7] / wanted if wanted > 0 else 0.0


def _fields(stat: str) -> list[int]:
    """Return user, nice, system, idle, iowait, irq, softirq and steal time [jiffies]."""
    return [int(number) for number in stat.splitlines()[0].split()[1:9]]


class Reporter:
    """Writes the share of processor time that a VM loses into `file`, for the VM to read.

    A VM cannot measure this share itself. `pid` is the process ID of QEMU, or of the process that
    started QEMU.
    """

    def __init__(self, pid: int, file: Path, proc: Path = Path("/proc")) -> None:
        self._pid, self._file, self._proc = pid, file, proc
        self._before = (proc / "stat").read_text()
        self._times = self._threads()
        self._at = 0.0

    def poll(self, now: float) -> None:
        """Write the share of processor time that the VM has lost since the last write.

        Do nothing if the last write was less than `PERIOD_S` seconds ago. `now` is the current time
        [s] of any clock.
        """
        if now - self._at < PERIOD_S:
            return
        stat, times = (self._proc / "stat").read_text(), self._threads()
        ran, waited = (
            sum(new[n] - self._times.get(thread, (0, 0))[n] for thread, new in times.items())
            for n in (0, 1)
        )
        waiting = waited / (ran + waited) if ran + waited else 0.0
        lost = 1 - (1 - waiting) * (1 - stolen_share(self._before, stat))
        self._file.write_text(f"{lost:.4f}\n")
        self._before, self._times, self._at = stat, times, now

    def _threads(self) -> dict[str, tuple[int, int]]:
        """Return two times [ns] of each thread of the process and its children, by thread ID.

        They are the time that the thread has run, and the time that it has waited for a processor.
        """
        found = {}
        for pid in (self._pid, *self._children()):
            for file in (self._proc / str(pid) / "task").glob("*/schedstat"):
                try:
                    ran, waited, _slices = file.read_text().split()
                except OSError:  # it has ended
                    continue
                found[file.parent.name] = (int(ran), int(waited))
        return found

    def _children(self) -> list[int]:
        own = self._proc / str(self._pid) / "task" / str(self._pid) / "children"
        try:
            return [int(word) for word in own.read_text().split()]
        except OSError:
            return []
