"""The emulation builds networks that other programs have described."""

from __future__ import annotations

from pathlib import Path

import pytest
from emulation.vm_run import VmRun, mean
from machine import needs_emulation

pytestmark = needs_emulation
TRIES = 3
DIAMOND = '''"""sudo mn --custom diamond.py --topo diamond --link tc"""

from mininet.topo import Topo


class Diamond(Topo):
    def build(self, short=4, long=6):
        s1, s2, s3, s4 = (self.addSwitch(f"s{n}") for n in range(1, 5))
        for host, first, second in (("h1", s1, s2), ("h2", s3, s4)):
            self.addHost(host)
            self.addLink(host, first)
            self.addLink(host, second)
        self.addLink(s1, s3, bw=short, delay="4ms", max_queue_size=40)
        self.addLink(s2, s4, bw=long, delay="9ms", max_queue_size=60)


topos = {"diamond": Diamond}
'''
SCENARIO = """name: diamond
title: Two hosts with two links each
topology: {mininet: diamond.py, topo: diamond, params: {long: 5}, users: [h1], servers: [h2]}
traffic: [{user: h1, kind: bulk}]
duration_s: 12
slow_machine_rate_scale: 0.5
"""


def finished(folder: Path, scenario: str, *options: str) -> VmRun:
    """A run. An overloaded one proves nothing, so it is repeated."""
    for number in range(TRIES):
        run = VmRun(folder / f"run{number}", *options, scenario=scenario)
        if not run.finish()["overloaded"]:
            break
    return run


def mbps(run: VmRun, user: str) -> float:
    return mean(run.samples(), lambda each: each["user"][user]["mbps"], 4, 12)


def test_a_mininet_topology_whose_file_the_machine_does_not_see(tmp_path: Path) -> None:
    (tmp_path / "diamond.py").write_text(DIAMOND)
    (tmp_path / "diamond.yaml").write_text(SCENARIO)
    run = finished(tmp_path, str(tmp_path / "diamond.yaml"))
    result = run.finish()
    assert result["mptcp"]["verified"]
    assert result["mptcp"]["joins"] >= 1
    assert mbps(run, "h1") > 6.5  # of 4 and 5 Mb/s
    assert (run.folder / "inputs" / "diamond.py").read_text() == DIAMOND


@pytest.mark.long
def test_a_network_of_graphml(tmp_path: Path) -> None:
    run = finished(tmp_path, "eight_cities", "--duration", "12")
    assert run.finish()["mptcp"]["verified"]
    assert mbps(run, "ue1") > 20  # 28 in the simulator, more than one path carries
    assert 7 < mbps(run, "ue2") < 10
