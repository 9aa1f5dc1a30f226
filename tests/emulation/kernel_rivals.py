"""Let BBR and Cubic share one link with this machine's kernel, without a VM. As root:

    PYTHONPATH=.:tests chrt -f 10 python -m emulation.kernel_rivals mptcp 30
    PYTHONPATH=.:tests chrt -f 10 python -m emulation.kernel_rivals tcp 30

The link has 20 Mb/s, 40 ms and a queue of 66 packets. `mptcp`: one user has two subflows of BBR;
`tcp`: two users have one flow of BBR each. Another user has Cubic. Prints what each flow carries
from 5 s on, in Mb/s, and the share of packets that `kernel_paths` forwarded late.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from typing import Any

from emulation import kernel_paths
from emulation.kernel_paths import SERVER, Direction, Hosted

from lab.scenario import loading
from lab.scenario.loading import Overrides

PATH = "{rate_mbps: 20, delay_ms: 20, queue_packets: 66}"
TOPOLOGY = f"topology={{kind: parallel_paths, paths: [{PATH}, {PATH}]}}"
LEAD_S, WARM_UP_S = 0.5, 5.0
REQUEST = {
    **{"server": SERVER, "direction": "down", "at_s": 0.0, "volume_bytes": 10**9},
    **{"rate_bps": None, "receive_buffer_bytes": 4_000_000},
}
FLOWS = {
    "mptcp": [("BBR", "bbr", "10.1.0.1", True)],
    "tcp": [("BBR 1", "bbr", "10.1.0.1", False), ("BBR 2", "bbr", "10.2.0.1", False)],
}
CUBIC = ("Cubic", "cubic", "10.1.0.1", False)


@dataclass
class OneLink:
    """Makes both paths one link: the directions that it makes share a queue, downward and upward
    in turn."""

    made: list[Direction] = field(default_factory=list)

    def __call__(self, *shape: Any) -> Direction:
        direction = Direction(*shape)
        if len(self.made) > 1:
            shared = self.made[len(self.made) % 2]
            direction.arrival_s = shared.arrival_s
        self.made.append(direction)
        return direction


def received(net: Hosted) -> dict[str, int]:
    flows = net.programs.send("user", do="status")["flows"]
    return {name: flow["bytes"] for name, flow in flows.items()}


def main(kind: str, seconds: float) -> None:
    kernel_paths.Direction = OneLink()
    net = Hosted(
        loading.load("two_paths", Overrides("none", None, 1, seconds, ("rate_scale=1", TOPOLOGY)))
    )
    flows = [
        {**REQUEST, "id": name, "cc": cc, "bind": bind, "mptcp": mptcp}
        for name, cc, bind, mptcp in (*FLOWS[kind], CUBIC)
    ]
    net.programs.send("user", do="plan", flows=flows)
    net.programs.send("user", do="begin", zero_s=time.monotonic() + LEAD_S)
    time.sleep(LEAD_S + WARM_UP_S)
    before = received(net)
    time.sleep(seconds - WARM_UP_S)
    after = received(net)
    for name, count in after.items():
        print(f"{name}: {(count - before[name]) * 8 / (seconds - WARM_UP_S) / 1e6:.2f} Mb/s")
    print(f"late: {net.paths.late / net.paths.forwarded:.4f}")
    net.close()


if __name__ == "__main__":
    sys.setswitchinterval(0.0005)
    main(sys.argv[1], float(sys.argv[2]))
