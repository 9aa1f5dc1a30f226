"""Routes, backup flags and pacing rates with real POX, Open vSwitch in user space, the kernel's
Multipath TCP and host agents."""

from __future__ import annotations

import json
import signal
import socket
import time

import pytest
from userspace_bridges import eventually
from userspace_network import KEY, MPTCP, Network, missing
from userspace_traffic import FAST, download, held_to, mbps, start

from controller import host_messages
from controller.host_messages import HostCommand, SubflowChange

pytestmark = [
    pytest.mark.emulation,
    pytest.mark.long,
    pytest.mark.skipif(bool(missing()), reason=missing()),
]
DETOUR = ["s1", "c1", "wifi1"]
EVEN = {"1": 2.0, "2": 2.0}  # Mb/s; without them the kernel uses one of two idle subflows
PAYLOAD = 1420 / 1514


def scripted(network: Network, **script: object) -> Network:
    network.start_agents()
    return start(network, "scripted", script=json.dumps(script))


def ask(network: Network, seq: int, **script: object) -> None:
    """Replace the commands of the scripted strategy."""
    network.tell(seq, "params", {"script": json.dumps(script)})


def subflow(network: Network, number: int) -> dict[str, object]:
    """Last line about a subflow."""
    return next(
        (line for line in reversed(network.lines("subflow")) if line["subflow"] == number), {}
    )


def interface_mbps(network: Network, interface: str, over_s: float) -> float:
    def received() -> int:
        return int(network.inside("user", "cat", f"/sys/class/net/{interface}/statistics/rx_bytes"))

    before, since = received(), time.monotonic()
    time.sleep(over_s)
    return (received() - before) * 8 / 1e6 / (time.monotonic() - since)


def test_a_routed_subflow_moves_without_a_stall_and_moves_back_when_its_path_breaks(network):
    scripted(network, routes={"2": DETOUR}, expect=EVEN)
    progress = download(network, MPTCP, pace_bps=100_000_000)
    eventually(lambda: subflow(network, 2).get("path") == DETOUR, "route the second subflow")
    time.sleep(0.5)
    table = network.ofctl("dump-flows", "c1", "table=1")
    assert table.count("tcp,nw_src") == 2  # both directions
    assert mbps(progress, 2) > 2
    assert interface_mbps(network, "wifi", 1) > 0.5
    network.tell(2, "link", {"link": "down", "up": False})
    eventually(
        lambda: subflow(network, 2).get("path") == ["s1", "wifi1"], "fall back to a shortest path"
    )
    assert mbps(progress, 1) > 2
    assert interface_mbps(network, "wifi", 1) > 0.5
    eventually(
        lambda: "tcp,nw_src" not in network.ofctl("dump-flows", "c1", "table=1"),
        "clear the old way",
    )


def test_a_restarted_controller_keeps_the_routes_of_a_strategy(network):
    scripted(network, routes={"2": DETOUR}, expect=EVEN)
    progress = download(network, MPTCP, pace_bps=100_000_000)
    eventually(lambda: subflow(network, 2).get("path") == DETOUR, "route the second subflow")
    statistics = network.run / "statistics.json"
    eventually(
        lambda: statistics.exists() and '"pinned": true' in statistics.read_text(),
        "write that down",
    )
    network.stop_pox(signal.SIGKILL)
    assert mbps(progress, 1) > 2
    network.ofctl("del-flows", "c1")  # the switch loses all entries
    known, said = len(network.lines("ready")), len(network.lines("subflow"))
    network.start_pox(
        "scripted", **FAST, script=json.dumps({"expect": EVEN})
    )  # no strategy sets its path
    eventually(lambda: len(network.lines("ready")) > known, "connect again")
    eventually(
        lambda: "tcp,nw_src" in network.ofctl("dump-flows", "c1", "table=1"), "put the way back"
    )
    # TCP retries after pauses that double, up to two minutes.
    eventually(lambda: interface_mbps(network, "wifi", 1) > 0.5, "go on when TCP tries again", 250)
    assert not [line for line in network.lines("subflow")[said:] if line["path"] == ["s1", "wifi1"]]


def test_a_backup_subflow_carries_nothing_until_it_is_normal_again(network):
    scripted(network, expect=EVEN)
    progress = download(network, MPTCP, pace_bps=100_000_000)
    eventually(lambda: subflow(network, 2).get("expected_mbps"), "hold both subflows")
    assert interface_mbps(network, "wifi", 1) > 0.5
    ask(network, 1, expect=EVEN, backup=[2])
    eventually(lambda: subflow(network, 2)["backup"], "confirm the backup")
    eventually(
        lambda: interface_mbps(network, "wifi", 1) < 0.1,
        "send what the subflow had been given before",
    )
    held_to(lambda: mbps(progress, 3), 2 * PAYLOAD, within=0.1)
    assert interface_mbps(network, "wifi", 1) < 0.1
    ask(network, 2, expect=EVEN)
    eventually(lambda: not subflow(network, 2)["backup"], "confirm that it is over")
    eventually(lambda: interface_mbps(network, "wifi", 1) > 0.5, "carry data again")
    assert "backup" in [line["action"] for line in network.lines("decision")]


def test_a_pacing_rate_is_kept_within_five_percent_and_removed(network):
    scripted(network)
    progress = download(network, MPTCP, pace_bps=100_000_000)
    eventually(lambda: len(network.lines("subflow")) >= 2, "see both subflows")
    ask(network, 1, expect={"1": 3.0, "2": 2.0})
    eventually(
        lambda: subflow(network, 2)["expected_mbps"] and subflow(network, 1)["expected_mbps"],
        "confirm the rates",
    )
    time.sleep(1.0)  # packets in flight
    held_to(lambda: mbps(progress, 4), 5.0 * PAYLOAD, within=0.05)
    held_to(lambda: interface_mbps(network, "wifi", 3), 2.0, within=0.05)
    held_to(lambda: interface_mbps(network, "lte", 3), 3.0, within=0.05)
    ask(network, 2)
    eventually(lambda: subflow(network, 2)["expected_mbps"] is None, "confirm that it is lifted")
    assert eventually(lambda: mbps(progress, 1) > 20, "go at full speed")


def test_pacing_rates_and_backup_flags_survive_the_controller(network):
    scripted(network, expect={"1": 3.0}, backup=[2])
    progress = download(network, MPTCP, pace_bps=100_000_000)
    eventually(
        lambda: subflow(network, 2).get("backup") and subflow(network, 1).get("expected_mbps"),
        "confirm both",
    )
    network.stop_pox(signal.SIGKILL)
    time.sleep(75)
    held_to(lambda: mbps(progress, 2), 3.0 * PAYLOAD, within=0.08)
    (network.run / "statistics.json").unlink()  # now only the hosts have this state
    known, said = len(network.lines("ready")), len(network.lines("subflow"))
    network.start_pox("scripted", **FAST, script=json.dumps({"expect": {"1": 3.0}, "backup": [2]}))
    eventually(lambda: len(network.lines("ready")) > known, "connect again")
    eventually(lambda: len(network.lines("subflow")) >= said + 2, "take over both subflows")
    before, after = (
        {line["destination"]: (line["connection"], line["subflow"]) for line in part}
        for part in (network.lines("subflow")[:said], network.lines("subflow")[said:])
    )
    assert after == before
    held_to(lambda: mbps(progress, 2), 3.0 * PAYLOAD, within=0.08)


def test_a_subflow_that_has_ended_is_not_observed(network):
    scripted(network)
    download(network, MPTCP)
    eventually(lambda: len(network.lines("subflow")) >= 2, "see both subflows")
    network.inside("user", "ip", "mptcp", "endpoint", "delete", "id", "1")  # of wifi
    eventually(
        lambda: [line["subflow"] for line in network.lines("subflow") if line.get("ended")] == [2],
        "see it end",
    )


def test_a_host_carries_out_commands_of_its_controller_only(network):
    agents = network.start_agents()
    start(network, "none")
    download(network, MPTCP)
    both = eventually(
        lambda: len(network.lines("subflow")) >= 2 and network.lines("subflow")[:2],
        "see both subflows",
    )
    orders = tuple(
        SubflowChange(str(line["source"]), str(line["destination"]), backup=True)
        for line in both[1:]
    )
    order = HostCommand(2**50, "ue1", str(both[0]["connection"]), orders)
    here = {
        line.split()[3].rpartition(":")[2]
        for line in network.outside("ss", "-Hlunp").splitlines()
        if f"pid={agents.pid}," in line
    }
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        for port in here:
            for datagram in (
                host_messages.encode(order, KEY),
                host_messages.encode(order, "guessed"),
                b"\0" * 100,
                b"{}",
            ):
                stranger.sendto(datagram, ("127.0.0.1", int(port)))
    time.sleep(1.5)
    assert here
    assert not subflow(network, 2)["backup"]
    assert "is not the registered controller" in (network.folder / "hosts.log").read_text()
    assert agents.poll() is None


def test_reports_without_the_key_change_nothing(network):
    scripted(network)
    download(network, MPTCP)
    eventually(lambda: len(network.lines("subflow")) >= 2, "see both subflows")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        stranger.sendto(
            host_messages.encode(host_messages.HostReport(2**60, "srv1"), "guessed"),
            ("127.0.0.1", network.hosts_port),
        )
        stranger.sendto(b"[" * 1000, ("127.0.0.1", network.hosts_port))
    eventually(
        lambda: any("key: not this run's" in line["text"] for line in network.lines("warning")),
        "refuse it",
    )
    time.sleep(1)
    assert not [line for line in network.lines("subflow") if line.get("ended")]
