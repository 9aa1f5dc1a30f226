"""Processor time, from /proc."""

from __future__ import annotations

import re
from pathlib import Path


def busy_s_by_program() -> dict[str, float]:
    """CPU time in s by name of the program."""
    found: dict[str, float] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, rest = status.read_text().split("(", 1)[1].rsplit(")", 1)
        except OSError:
            continue
        fields = rest.split()
        found[name] = found.get(name, 0) + (int(fields[11]) + int(fields[12])) / 100
    cpu = Path("/proc/stat").read_text().split("\n")[0].split()
    return found | {"softirq": int(cpu[7]) / 100, "irq": int(cpu[6]) / 100}


def idle_s() -> float:
    """Idle time in s since boot, as a mean over the processors."""
    lines = [
        line.split()
        for line in Path("/proc/stat").read_text().splitlines()
        if re.match(r"cpu\d", line)
    ]
    return sum(int(line[4]) for line in lines) / 100 / len(lines)
