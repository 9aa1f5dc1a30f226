"""What users of Mininet-WiFi know: the prompt, captures, stock scripts, their own networks.

One VM runs everything, one after the other. Rates are low: nothing here measures speed.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from emulation.vm_run import ROOT, SCENARIO, Run
from emulation.vm_shell import VmShell
from machine import needs_emulation

from lab.engines.mininet.export.script import script
from lab.engines.mininet.machine import upstreams
from lab.run import captured
from lab.scenario import loading
from lab.scenario.loading import Overrides

pytestmark = needs_emulation
DOCS = ROOT / "docs"
# Mininet gives up if Open vSwitch does not answer within a second, as on a busy machine.
READY = "until ovs-vsctl -t 1 show >/dev/null 2>&1; do sleep 1; done"
# Below the rates of the links, so that queues stay empty and pings are answered soon.
LIGHT = "[{user: ue2, kind: rate, rate_mbps: 5}, {user: ue3, kind: rate, rate_mbps: 5}]"
STOCK = {"testbed_wifi_lte": 0.03, "fat_tree": 0.02, "campus": 0.02}
STOCK_S, STOCK_WITHIN_S = 8, 1800


def entered(run: Run, text: str) -> str:
    """Output of the prompt of a running emulation for these lines."""
    argv = [sys.executable, "-m", "lab", "cli", str(run.folder)]
    return subprocess.run(
        argv, cwd=ROOT, input=text, capture_output=True, text=True, timeout=900, check=True
    ).stdout


def block(page: str, info: str) -> str:
    """The block of a page whose first line is ```INFO."""
    text = (DOCS / page).read_text()
    return re.search(rf"^```{re.escape(info)}\n(.*?)^```$", text, re.M | re.S).group(1)


@pytest.fixture(scope="module")
def ran(vm: VmShell) -> tuple[Run, dict[str, str]]:
    """Run the testbed with captures and enter the page's commands; return the run, and each
    command's output.

    `pingall` and a further command are entered at a second prompt.
    """
    settings = ("--set", "rate_scale=0.1", "--set", f"traffic={LIGHT}")
    run = vm.run(SCENARIO, "--pcap", "--duration", "900", *settings)
    run.until(1)
    output = entered(run, block("cli.md", "sh prompt"))
    output += entered(run, "pingall\npy [ap.name for ap in net.aps]\n")
    output += entered(run, "link s1 lte1 down\nlink s1 lte1 up\nsh bpftool net show\n")
    (run.folder / "early.pcap").write_bytes((run.folder / "pcap" / "ue2.pcap").read_bytes())
    run.until(run.now() + 2)  # captures are written at every sample
    run.kill()
    parts = re.split(r"^mininet-wifi> (.*)$", output, flags=re.M)[1:]
    return run, dict(zip(parts[::2], parts[1::2], strict=True))


def test_a_student_finds_hosts_addresses_and_paths(ran):
    _, shown = ran
    assert "lte1 s1 srv1 ue1 ue2 ue3 ue4 wifi1" in shown["nodes"]
    assert "ue2-wlan0:10.1.0.2,ue2-lte0:10.2.0.2" in shown["dump"]
    assert "2 received, 0% packet loss" in shown["ue1 ping -c 2 srv1"]
    assert "10.2.0.2 id 2 subflow dev ue2-lte0" in shown["ue2 ip mptcp endpoint"]
    assert "1 received, 0% packet loss" in shown["ue2 ping -c 1 -I 10.2.0.2 srv1"]
    assert "SSID: lab-wifi1" in shown["ue2 iw dev ue2-wlan0 link"]
    assert "s1-eth2<->wifi1-eth1 (OK OK)" in shown["links"]
    assert "tcp-ulp-mptcp" in shown["srv1 ss -Mtin"]
    assert "nw_dst=10.2.0.2" in shown["dpctl dump-flows"]
    assert re.search(
        r"MPJoinSynAckRx +[1-9]",
        shown['py net.get("ue3").cmd("nstat -asz MPTcpExtMPJoinSynAckRx")'],
    )


def test_every_host_reaches_every_other(ran):
    assert "*** Results: 0% dropped (20/20 received)" in ran[1]["pingall"]
    assert "['wifi1']" in ran[1]["py [ap.name for ap in net.aps]"]


def test_each_port_that_leads_to_a_host_replaces_packets(ran):
    """Otherwise Linux takes packets in the network's queues for packets in the host's own."""
    actions = ran[1]["sh bpftool net show"].splitlines()
    ports = {line.split("(")[0] for line in actions if "ingress host_port" in line}
    assert len(ports) == 4, actions  # srv1, and the LTE interfaces of ue2, ue3 and ue4


def test_each_host_has_a_capture_with_multipath_tcp(ran):
    run, _ = ran
    files = sorted(file.stem for file in (run.folder / "pcap").glob("*.pcap"))
    assert files == ["srv1", "switch_ports", "ue1", "ue2", "ue3", "ue4"]
    for name in ("early.pcap", "pcap/ue2.pcap"):  # during the run, and after it
        argv = ["tcpdump", "-nvr", str(run.folder / name), "-c", "2000"]
        text = subprocess.run(argv, capture_output=True, text=True, check=False).stdout
        assert "capable" in text
        assert "join" in text
    early, late = ((run.folder / n).stat().st_size for n in ("early.pcap", "pcap/ue2.pcap"))
    assert 10_000 < early < late


def test_captured_packets_have_times_of_day_in_order(ran):
    run, _ = ran
    argv = ["tcpdump", "-ttnr", str(run.folder / "early.pcap")]
    text = subprocess.run(argv, capture_output=True, text=True, check=False).stdout
    times_s = [float(line.split()[0]) for line in text.splitlines()]
    assert len(times_s) > 20
    steps_s = [after - before for before, after in pairwise(times_s)]
    assert min(steps_s) > -0.05  # two processors stamp packets, so neighbours may change places
    assert max(steps_s) < 60


def test_a_link_that_was_set_down_at_the_prompt_is_a_flip_that_pox_knows(ran):
    run, shown = ran
    assert "link.lte.up = false, recorded at" in shown["link s1 lte1 down"]
    assert "link.lte.up = true, recorded at" in shown["link s1 lte1 up"]
    flips = [each for each in run.events("flip") if each["state"] == "applied"]
    assert [(each["target"], each["value"]) for each in flips] == [
        ("link.lte.up", False),
        ("link.lte.up", True),
    ]
    decisions = (run.folder / "pox" / "decisions.jsonl").read_text().splitlines()
    known = [each for each in map(json.loads, decisions) if each["kind"] == "flip"]
    assert [each["value"]["up"] for each in known] == [False, True]


def test_captures_are_events(ran):
    run, _ = ran
    events = run.events("pcap")
    for state in ("started", "ended"):
        hosts = {each["host"] for each in events if each["state"] == state}
        assert hosts == {"srv1", "ue1", "ue2", "ue3", "ue4", captured.SWITCH_PORTS}
    assert all(each["packets"] > 0 for each in events if each["state"] == "ended")


def test_captures_show_each_subflow(ran):
    run, _ = ran
    captured.write_report(run.folder)  # the host of a VM does it; this run is one of the VM's shell
    found = captured.report(run.folder)
    assert sorted(each.user for each in found if each.joins) == ["ue2", "ue3"]
    assert sorted(each.user for each in found if not each.joins) == ["ue2", "ue3"]
    assert all(each.handshake_ms > 0 for each in found)
    assert all(each.segments > 10 for each in found)
    (started,) = (
        each
        for each in run.events("pcap")
        if each["state"] == "started" and each["host"] == captured.SWITCH_PORTS
    )
    assert "s1-eth1" in started["ports"].values()
    ports = run.folder / "pcap" / "switch_ports.pcap"
    hosts = {end[0] for each in captured.segments(ports) for end in (each.source, each.destination)}
    assert "10.0.0.1" in hosts
    assert "127.0.0.1" not in hosts


@pytest.fixture(scope="module")
def stock(vm: VmShell) -> dict[str, str]:
    """Output of the exported scripts on stock Mininet-WiFi."""
    shown = {}
    for name, scale in STOCK.items():
        file = vm.folder / f"{name}.py"
        settings = (f"rate_scale={scale}", "duration_s=900")  # longer than the start on any machine
        file.write_text(script(loading.load(name, Overrides(settings=settings))))
        argv = f"{sys.executable} tests/emulation/stock.py {file} --seconds {STOCK_S}"
        shown[name] = vm.command(f"{READY}\nPYTHONPATH=. {argv}", within_s=STOCK_WITHIN_S)
        print(name, shown[name])
    return shown


@pytest.mark.long
@pytest.mark.parametrize("name", STOCK)
def test_an_exported_script_runs_on_stock_mininet_wifi(stock, name):
    network, text = loading.load(name).network, stock[name]
    lost = dict(re.findall(r"^ping (\S+ \S+) \S+: (\d+) % lost$", text, re.M))
    assert set(lost.values()) == {"0"}, text
    assert {key.split()[0] for key in lost} == set(network.users)
    joins = {user: int(n) for user, n in re.findall(r"^joins (\S+): (\d+) ", text, re.M)}
    assert set(joins) == set(network.multipath)
    assert all(joins.values()), text
    rates = {user: float(n) for user, n in re.findall(r"^rate (\S+): (\S+) Mb/s down", text, re.M)}
    assert set(rates) == set(network.users)
    assert all(rates.values()), text


POX = """
start_pox() {{
    cd {pox}
    PYTHONPATH={lab} {python} pox.py openflow.of_01 --port=6633 --address=127.0.0.1 \\
        controller.pox_ext --topology=$1 --run=$2 --patience_s=180 --strategy=$3 >$2/pox.txt 2>&1 &
    POX=$!
    cd {lab}
}}
"""


@pytest.fixture(scope="module")
def own(vm: VmShell) -> tuple[Path, str, str]:
    """Run the page's two networks with POX; return a folder and the output of each."""
    folder = vm.folder / "own"
    for info in ("json mn.json", "json own_network.json", "python own_network.py"):
        name = info.split()[1]
        (folder / name.split(".")[0]).mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(block("own_networks.md", info))
    pox = POX.format(pox=upstreams.folder("pox"), lab=ROOT, python=sys.executable)
    mn = re.search(r"^ {4}(mn --topo .*)$", (DOCS / "own_networks.md").read_text(), re.M).group(1)
    wait = "sh for n in $(seq 100); do grep -q ready {}/decisions.jsonl && break; sleep 1; done"
    by_mn = vm.command(
        f"{READY}\n{pox}\nstart_pox {folder}/mn.json {folder}/mn none\n"
        f"printf '{wait.format(folder / 'mn')}\\npingall\\n' | {mn} 2>&1\nkill $POX"
    )
    mininet = upstreams.folder() / "mininet"
    by_script = vm.command(
        f"{READY}\n{pox}\nstart_pox {folder}/own_network.json {folder}/own_network expected_throughput\n"
        f"PYTHONPATH={mininet} {sys.executable} {folder}/own_network.py 2>&1\nkill $POX"
    )
    print(by_mn, by_script)
    return folder, by_mn, by_script


@pytest.mark.long
def test_a_network_of_mn_takes_the_controller(own):
    assert "0% dropped (2/2 received)" in own[1]


@pytest.mark.long
def test_a_network_of_another_script_gets_its_paths_from_expected_throughput(own):
    folder, _, text = own
    assert text.count("2 received, 0% packet loss") == 2
    assert re.search(r"MPJoinSynAckRx +[1-9]", text)
    lines = (folder / "own_network" / "decisions.jsonl").read_text().splitlines()
    decisions = [json.loads(line) for line in lines]
    routed = [each for each in decisions if each.get("action") == "route"]
    assert {each["strategy"] for each in routed} == {"expected_throughput"}
    latest = {each["subflow"]: each for each in decisions if each["kind"] == "subflow"}
    paths = {tuple(each["path"]) for each in latest.values()}
    assert {("s1", "s2", "s4"), ("s1", "s3", "s4")} <= {*paths, *(p[::-1] for p in paths)}
    (received,) = re.findall(r"([\d.]+) ([KM])bits/sec +receiver", text)
    mbps = float(received[0]) / (1000 if received[1] == "K" else 1)
    assert mbps > 2, "more than the faster path alone"
