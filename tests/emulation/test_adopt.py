"""A Mininet script of somebody else, adopted: the page's two paths, with loss set by `tc`."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest
from emulation.test_mininet_wifi import block
from emulation.vm_run import ROOT
from machine import needs_emulation

pytestmark = needs_emulation
NETEM = "tc qdisc change dev s3-eth1 parent 5:1 handle 10: netem delay 10ms loss {}% limit 50"
TRAFFIC = f"""
print(h1.cmd("ping -c 2 -I 10.0.0.1 10.0.0.2"), h1.cmd("ping -c 2 -I 10.0.1.1 10.0.0.2"))
h2.cmd("mptcpize run iperf3 -s -D")
h1.cmd("mptcpize run iperf3 -c 10.0.0.2 -R -t 60 > /dev/null 2>&1 &")
s3 = net.get("s3")
for name, loss in (("begin", 0), ("lossy", 5), ("clean", 0)):
    s3.cmd("{NETEM}".format(loss))
    h1.cmd("sleep 10")
    print(name, h1.cmd("ip mptcp endpoint"))
print(h1.cmd("nstat -asz MPTcpExtMPJoinSynAckRx"))
net.stop()
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """Run the page's script with other traffic; return its folder and its output."""
    folder = tmp_path_factory.mktemp("adopted")
    file = folder / "two_paths.py"
    page = block("own_networks.md", "python two_paths.py")
    file.write_text(page.partition("h2.cmd(")[0] + TRAFFIC)
    argv = [sys.executable, "-P", "-m", "lab", "adopt", "--vm", "--wait"]
    argv += ["--strategy", "loss_aware", "--params", '{"gamma_wired": 0.03}']
    done = subprocess.run(
        [*argv, "--out", str(folder / "out"), str(file)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=1800,
    )
    print(done.stdout, done.stderr)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "out", done.stdout


def test_both_addresses_of_a_host_reach_the_server(ran):
    assert ran[1].count("2 received, 0% packet loss") == 2
    assert re.search(r"MPJoinSynAckRx +[1-9]", ran[1])


def test_pox_sets_a_lossy_subflow_to_backup(ran):
    """How long it stays backup is not tested: iperf3 has two connections, and the kernel sets the
    flag per address."""
    folder, shown = ran
    lines = (folder / "pox" / "decisions.jsonl").read_text().splitlines()
    found = [json.loads(each) for each in lines if '"decision"' in each]
    assert any(each.get("action") == "backup" and "loss" in each["reason"] for each in found)
    assert "POX runs loss_aware on 3 switches. Users: h1. Servers: h2." in shown
    assert re.search(r"POX has ended. Its decisions: \d+ backup", shown)
