"""What a packet costs under each congestion control, as root, on any kernel with eBPF: `PYTHONPATH=.:tests python -m emulation.cost`

One connection of two subflows, each held to RATE by a token bucket, so that every law sends the same and loses now and then.
Each round asks all laws in turn; printed is the median over rounds of the processors' busy time per packet, and of its
difference from cubic's in the same round.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path as File
from statistics import median

from emulation.small_network import Path, SmallNetwork

from lab.engines.mininet.ebpf import LAWS, kernel_name
from lab.engines.mininet.ebpf.load import Laws

RATE, QUEUE = "400mbit", "150kb"
PACKET_BYTES, TICKS_PER_S = 1420, 100
SLOW_START_S, MEASURED_S, ROUNDS = 2.0, 6.0, 7


class Fast(SmallNetwork):
    """Two ways without delay, as fast as a small machine forwards them."""

    def _shape(self, number: int, path: Path) -> None:
        self.run("router", f"tc qdisc add dev r{number} root tbf rate {RATE} burst 32kb limit {QUEUE}")


def busy_s() -> float:
    """What all processors have worked since they started (proc(5), /proc/stat): all but idle and iowait."""
    user, nice, system, _idle, _iowait, irq, softirq, *_ = map(int, File("/proc/stat").read_text().split("\n")[0].split()[1:])
    return (user + nice + system + irq + softirq) / TICKS_PER_S


def packet_us(cc: str) -> float:
    """Busy microseconds per packet that arrives."""
    with Fast(Path(0, 0, 0), Path(0, 0, 0)) as network:
        network.start("f", cc)
        time.sleep(SLOW_START_S)
        before, received = busy_s(), network.received()["f"]
        time.sleep(MEASURED_S)
        packets = (network.received()["f"] - received) / PACKET_BYTES
        spent = busy_s() - before
    print(f"  {cc}: {packets / MEASURED_S:.0f} packets/s", file=sys.stderr)
    return spent / packets * 1e6


def main() -> None:
    """Rounds in which every congestion control has its turn."""
    laws = Laws()
    laws.bring(*LAWS)
    asked = ["cubic", "reno", *map(kernel_name, LAWS)]
    rounds = [{cc: packet_us(cc) for cc in asked} for _ in range(ROUNDS)]
    laws.close()
    for cc in asked:
        more = [each[cc] / each["cubic"] - 1 for each in rounds]
        print(
            f"{cc:10} {median(each[cc] for each in rounds):6.2f} us per packet, {median(more):+.1%} of cubic's "
            f"(from {min(more):+.1%} to {max(more):+.1%}, {ROUNDS} rounds)"
        )


if __name__ == "__main__":
    main()
