"""commands.sh has the names of hosts instead of PIDs, and can be run again."""

import subprocess

from built_network import LOCK, building, needs_nodes

from lab.engines.mininet.commands.command_script import HEADER, CommandScript
from lab.engines.mininet.machine import lock, shell


def script(*commands, pids):
    written = CommandScript(lambda: pids)
    return [line for argv, stdin in commands for line in written.lines(argv, stdin)]


def test_process_numbers_of_hosts_become_names():
    lines = script(
        (["mnexec", "-a", "203", "ip", "-batch", "-"], "link set dev lo up\naddr add 203 dev x"),
        (["ip", "-batch", "-"], "link add p type veth peer name q netns 204"),
        (["iw", "phy", "mn00001p01", "set", "netns", "203"], None),
        (["mnexec", "-a", "999", "tc", "qdisc", "add dev"], None),
        pids={"ue1": 203, "srv 1": 204},
    )
    assert lines == [
        "mnexec -a ${pid[ue1]} ip link set dev lo up",
        "mnexec -a ${pid[ue1]} ip addr add 203 dev x",
        "ip link add p type veth peer name q netns ${pid['srv 1']}",
        "iw phy mn00001p01 set netns ${pid[ue1]}",
        "mnexec -a 999 tc qdisc 'add dev'",
    ]


def test_the_script_runs_once_more(tmp_path):
    file = tmp_path / "hostapd.conf"
    lines = script(
        (["env", "sh", "-c", "echo; read _", "mininet:ue1"], None),
        (["tee", str(file)], "ssid=lab\nchannel=1\n"),
        (["/usr/bin/python3", "-m", "nowhere"], None),
        (["sh", "-c", 'kill -0 "$1" && echo "$0 $1"', "netns", "203"], None),
        pids={"ue1": 203},
    )
    end = 'echo "holder ${pid[ue1]}"; kill ${pid[ue1]}'
    text = HEADER + "".join(f"{line}\n" for line in lines) + end
    done = subprocess.run(["bash", "-e"], input=text, capture_output=True, text=True, timeout=10)
    *_, entered, holder = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert holder.split()[1] == entered.split()[1] != "203"
    assert file.read_text() == "ssid=lab\nchannel=1\n"


@needs_nodes[0]
@needs_nodes[1]
def test_a_built_network_is_built_once_more(tmp_path, monkeypatch):
    commands = []
    with (
        shell.journal_to(lambda _at, argv, stdin: commands.append((argv, stdin))),
        lock.hold("a network of the tests", wait=True, path=LOCK),
    ):
        for network in building(tmp_path, monkeypatch):
            pids, built = network.pids(), len(commands)
            ports = " ".join(network.ports())
            before = network.run("ue1", ["ip", "-brief", "address"], "inspect")
        text = HEADER + "".join(f"{line}\n" for line in script(*commands[:built], pids=pids))
        end = (
            "mnexec -a ${pid[ue1]} ip -brief address; kill ${pid[@]}; "
            f"for port in {ports}; do ip link del $port 2>/dev/null || [ ! -e /sys/class/net/$port ]; done"
        )
        done = subprocess.run(
            ["bash", "-e"], input=text + end, capture_output=True, text=True, timeout=60
        )
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split()[2:] for line in done.stdout.splitlines() if "ue1-" in line] == [
        line.split()[2:] for line in before.splitlines() if "ue1-" in line
    ]
