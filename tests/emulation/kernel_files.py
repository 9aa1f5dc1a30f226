"""Send files over two paths at once, with this machine's kernel and in the simulator. As root:

    PYTHONPATH=.:tests python -m emulation.kernel_files COUNT BYTES RATE_1 RATE_2

COUNT connections start together and send BYTES each. The paths have RATE_1 and RATE_2 Mb/s,
delays of 5 and 20 ms, and queues of 200 and 600 packets. Both sides print when each file arrived,
and how many packets the sender sent on each path. The kernel also prints its counters of
Multipath TCP. `kernel_paths` says what the machine needs.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from emulation.kernel_paths import SERVER, Hosted

from lab.engines.mininet.network.host_setup import SOCKET_BUFFERS
from lab.run.manifest import ROOT
from lab.scenario import loading
from lab.scenario.loading import Overrides

LIMIT_S = 60
BUFFER_KB = 1000
COUNTERS = ("MPTcpExtMPTCPRetrans", "MPTcpExtSubflowStale", "MPTcpExtDuplicateData")


class Hosts(Hosted):
    """Two hosts whose sockets have the buffers of the emulation's hosts."""

    def _configure(self, count: int) -> None:
        for host in self.hosts:
            for name in ("rmem", "wmem"):
                setting = f"net.ipv4.tcp_{name}={SOCKET_BUFFERS}"
                subprocess.run(self.inside(host, ["sysctl", "-qw", setting]), check=True)
        super()._configure(count)


def settings(count: int, size: int, rates_mbps: Sequence[float]) -> tuple[str, ...]:
    """Overrides of `two_paths` for these files."""
    first, second = rates_mbps
    paths = (
        f"{{rate_mbps: {first}, delay_ms: 5, queue_packets: 200}}",
        f"{{rate_mbps: {second}, delay_ms: 20, queue_packets: 600}}",
    )
    megabytes = count * size / 1e6
    traffic = f"{{user: ue1, kind: file, volume_mb: {megabytes}, parallel: {count}}}"
    return (
        f"topology.paths=[{', '.join(paths)}]",
        f"traffic=[{traffic}]",
        f"multipath.receive_buffer_kb={BUFFER_KB}",
        "multipath.cc=reno",
        "multipath.scheduler=linux",
        "rate_scale=1",
        f"duration_s={LIMIT_S}",
        "events=[]",
    )


def with_kernel(count: int, size: int, rates_mbps: Sequence[float]) -> None:
    net = Hosts(loading.load("two_paths", Overrides(settings=settings(count, size, rates_mbps))))
    request = {
        "server": SERVER,
        "bind": "10.1.0.1",
        "mptcp": True,
        "direction": "down",
        "cc": "reno",
        "rate_bps": None,
        "volume_bytes": size,
        "receive_buffer_bytes": BUFFER_KB * 1000,
    }
    for number in range(count):
        net.programs.send("user", do="connect", id=f"f{number}", **request)
    time.sleep(1.5)  # the second subflows join
    for number in range(count):
        net.programs.send("user", do="go", id=f"f{number}")
    began = time.monotonic()
    times: list[float | None] = [None]
    while None in times and time.monotonic() - began < LIMIT_S:
        time.sleep(1)
        flows = net.programs.send("user", do="status")["flows"].values()
        times = [each["done_s"] for each in flows]
    devices = net.run("server", "cat /proc/net/dev")
    packets = [int(re.search(rf"s{n}:(?:\s+\d+){{9}}\s+(\d+)", devices)[1]) for n in (1, 2)]
    show("kernel", times, packets)
    for host in net.hosts:
        counted = dict(re.findall(r"^(\S+)\s+(\d+)", net.run(host, "nstat -asz"), re.M))
        print(f"  {host}: {', '.join(f'{name} {counted[name]}' for name in COUNTERS)}")
    net.close()


def with_simulator(count: int, size: int, rates_mbps: Sequence[float]) -> None:
    with tempfile.TemporaryDirectory() as base:
        command = [sys.executable, "-m", "lab", "run", "two_paths", "--quiet", "--out", base]
        for each in settings(count, size, rates_mbps):
            command += ["--set", each]
        subprocess.run(command, check=True, cwd=ROOT)
        result = json.loads((Path(base) / "result.json").read_text())
    connections = result["connections"]
    packets = [sum(each["subflows"][n]["segments"] for each in connections) for n in (0, 1)]
    show("sim", [each["completion_s"] for each in connections], packets)


def show(side: str, times_s: Sequence[float | None], packets: Sequence[int]) -> None:
    """Print the sorted completion times, and the packets on each path."""
    times = " ".join(f"{each:.1f}" for each in sorted(each or -1 for each in times_s))
    print(f"{side}: completed after {times} s; packets {packets[0]} and {packets[1]}")


if __name__ == "__main__":
    files, file_bytes, *path_rates = sys.argv[1:]
    sys.setswitchinterval(0.0005)
    for side in (with_simulator, with_kernel):
        side(int(files), int(file_bytes), [float(each) for each in path_rates])
