"""Measure the processor time of a coupled law: `PYTHONPATH=.:tests python -m emulation.cost`

Needs root and a kernel with eBPF. One connection has two subflows, each limited to RATE by a token
bucket. The kernel adds up the time of each program and counts its calls (kernel.bpf_stats_enabled).
For comparison: the time of all processors per packet under cubic.
"""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from statistics import median

from emulation.small_network import NetworkPath, SmallNetwork

from lab.engines.mininet.ebpf import LAWS, kernel_name
from lab.engines.mininet.ebpf.load import Laws

RATE, QUEUE = "40mbit", "150kb"
PACKET_BYTES, TICKS_PER_S = 1420, 100
SLOW_START_S, MEASURED_S, ROUNDS = 2.0, 5.0, 5
STATISTICS = Path("/proc/sys/kernel/bpf_stats_enabled")


class Fast(SmallNetwork):
    def _shape(self, number: int, path: NetworkPath) -> None:
        self.run(
            "router", f"tc qdisc add dev r{number} root tbf rate {RATE} burst 32kb limit {QUEUE}"
        )


def busy_s() -> float:
    """Busy time of all processors since boot (/proc/stat): all but idle and iowait."""
    user, nice, system, _idle, _iowait, irq, softirq, *_ = map(
        int, Path("/proc/stat").read_text().split("\n")[0].split()[1:8]
    )
    return (user + nice + system + irq + softirq) / TICKS_PER_S


def programs() -> tuple[int, int]:
    """Run time [ns] and calls of all laws' programs; only those of the law in use change."""
    listed = json.loads(subprocess.check_output(["bpftool", "-j", "prog", "show"]))
    own = [each for each in listed if each["type"] == "struct_ops"]
    return sum(each.get("run_time_ns", 0) for each in own), sum(
        each.get("run_cnt", 0) for each in own
    )


def measured(cc: str) -> dict[str, float]:
    """Packets per second, busy time per packet [us], and time of the law per packet and per call
    [ns]."""
    with Fast(NetworkPath(0, 0, 0), NetworkPath(0, 0, 0)) as network:
        network.start("f", cc)
        time.sleep(SLOW_START_S)
        before, received, (spent_ns, calls) = busy_s(), network.received()["f"], programs()
        time.sleep(MEASURED_S)
        packets = (network.received()["f"] - received) / PACKET_BYTES
        busy, (later_ns, later_calls) = busy_s() - before, programs()
    count = max(1, later_calls - calls)
    return {
        "packets_per_s": packets / MEASURED_S,
        "packet_us": busy / packets * 1e6,
        "law_ns_per_packet": (later_ns - spent_ns) / packets,
        "law_ns_per_call": (later_ns - spent_ns) / count,
    }


def main() -> None:
    """Print medians over several rounds, each of which measures every law once."""
    laws = Laws()
    laws.load(*LAWS)
    before = STATISTICS.read_text()
    STATISTICS.write_text("1")
    try:
        rounds = [
            {cc: measured(cc) for cc in ("cubic", *map(kernel_name, LAWS))} for _ in range(ROUNDS)
        ]
    finally:
        STATISTICS.write_text(before)
        laws.close()
    for cc in rounds[0]:
        print(
            cc,
            {name: round(median(each[cc][name] for each in rounds), 1) for name in rounds[0][cc]},
        )


if __name__ == "__main__":
    main()
