"""The whole controller: real POX, Open vSwitch in user space, the kernel's Multipath TCP."""

from __future__ import annotations

import json
import signal
import sys
import time

import pytest
from traffic_scripts import ECHO
from userspace_bridges import eventually
from userspace_network import MPTCP, SWITCHES, Network, missing
from userspace_traffic import (
    FAST,
    TCP,
    download,
    held_to,
    mbps,
    start,
    traffic_program,
    upload,
)

pytestmark = [pytest.mark.emulation, pytest.mark.skipif(bool(missing()), reason=missing())]


def saturate(network: Network, ap: str, occupancy: float = 1.0) -> None:
    for _ in range(3):
        network.report(ap, occupancy)


def test_echo_and_tcp_pass_and_nothing_is_metered_without_a_strategy(network):
    start(network, "none")
    for source in ("10.1.0.1", "10.2.0.1"):
        assert "answered" in network.inside("user", sys.executable, "-c", ECHO, source, "10.0.0.1")
    assert "answered" in network.inside(
        "server", sys.executable, "-c", ECHO, "10.0.0.1", "10.1.0.1"
    )
    assert mbps(download(network, TCP, "10.1.0.1"), 1.5) > 2
    assert all(network.meter_kbps(switch) is None for switch in SWITCHES)
    counted = eventually(
        lambda: [
            line
            for line in network.lines("observation")
            if (line["aps"]["wifi1"]["tier2_mbps"] or 0) > 2
        ],
        "count Tier 2",
    )
    assert counted[0]["tiers"] == {"ue1": {"lte1": 1, "wifi1": 2}}


def test_both_subflows_are_listed_under_one_token(network):
    start(network, "none")
    download(network, MPTCP)
    subflows = eventually(
        lambda: len(network.lines("subflow")) >= 2 and network.lines("subflow"), "see both subflows"
    )
    assert len({line["connection"] for line in subflows}) == 1
    assert {line["ap"]: (line["subflow"], line["tier"], line["path"]) for line in subflows} == {
        "lte1": (1, 1, ["s1", "lte1"]),
        "wifi1": (2, 2, ["s1", "wifi1"]),
    }
    token = f"{int(subflows[0]['connection'], 16):x}"  # as ss prints it, without leading zeros
    assert f"/{token}(" in network.inside("server", "ss", "-Htie")


def test_saturation_lowers_the_meter_to_the_floor_and_a_flip_raises_the_floor(network):
    start(network, "meter_throttling")
    eventually(lambda: network.meter_kbps("wifi1") == 100, "start at the floor")
    download(network, TCP, "10.1.0.1", port=5002)
    network.tell(1, "params", {"windup_guard": False})

    def grown():
        network.report("wifi1", 0.0)
        return (network.meter_kbps("wifi1") or 0) >= 5000

    eventually(grown, "grow while the cell is idle")

    def at_floor():
        saturate(network, "wifi1")
        return network.meter_kbps("wifi1") == 100

    eventually(at_floor, "fall to the floor while the cell is saturated")
    network.tell(2, "params", {"min_rate_mbps": 1})

    def lifted():
        saturate(network, "wifi1")
        return network.meter_kbps("wifi1") == 1000

    eventually(lifted, "lift the floor")
    assert network.meter_kbps("lte1") is None
    assert [line["seq"] for line in network.lines("flip")] == [1, 2]
    assert "MAC occupancy 1.00 >= 0.85" in network.lines("decision")[-1]["reason"]


def test_the_meter_limits_traffic_and_its_counters_agree(network):
    start(network, "meter_throttling")
    eventually(lambda: network.meter_kbps("wifi1") == 100, "install the meter")
    progress = download(network, TCP, "10.1.0.1")
    mbps(progress, 2)  # the burst
    assert mbps(progress, 3) == pytest.approx(0.1, abs=0.05)
    measured = [line["aps"]["wifi1"]["tier2_mbps"] for line in network.lines("observation")[-6:]]
    assert sum(measured) / len(measured) == pytest.approx(0.1, abs=0.05)
    network.tell(1, "strategy", {"name": "none", "params": FAST})
    eventually(lambda: network.meter_kbps("wifi1") is None, "withdraw")
    assert eventually(lambda: mbps(progress, 1) > 2, "go on at full rate")


def test_the_meter_limits_uploads_and_leaves_the_opposite_direction_alone(network):
    """The topology file says that ue1's data goes up, so a download is the opposite direction."""
    file = network.run / "topology.json"
    before = file.read_text()
    file.write_text(json.dumps(json.loads(before) | {"data": {"ue1": ["up"]}}))
    try:
        start(network, "meter_throttling")
        eventually(lambda: network.meter_kbps("wifi1") == 100, "install the meter")
        up = upload(network, "10.1.0.1")
        mbps(up, 2)  # the burst
        held_to(lambda: mbps(up, 3), 0.1, within=0.5)
        measured = [
            line["aps"]["wifi1"]["tier2_mbps"] for line in network.lines("observation")[-6:]
        ]
        assert sum(measured) / len(measured) == pytest.approx(0.1, abs=0.05)
        down = download(network, TCP, "10.1.0.1")
        assert eventually(lambda: mbps(down, 1) > 2, "download at full rate")
        entries = network.ofctl("dump-flows", "wifi1")
        assert "nw_src=10.1.0.1 actions=meter:1" in entries
        assert "nw_dst=10.1.0.1 actions=meter:1" not in entries
    finally:
        file.write_text(before)


@pytest.mark.parametrize("direction", ["down", "up"])
def test_udp_finds_its_path_and_passes_the_meter_of_tier_2_unlimited(network, direction):
    """The emulation's traffic programs run in the namespaces; 10.1.0.1 is Tier 2."""
    start(network, "meter_throttling")
    eventually(lambda: network.meter_kbps("wifi1") == 100, "install the meter")
    request = {"id": "f", "server": "10.0.0.1", "bind": "10.1.0.1", "mptcp": False, "cc": "reno"}
    request |= {"protocol": "udp", "direction": direction, "rate_bps": 1_000_000}
    user, server = (traffic_program(network, host) for host in ("user", "server"))
    try:
        port = user(do="connect", **request)["port"]
        assert server(do="expect", port=port, **request) == {}
        for program in (user, server):
            program(do="go", id="f")
        receiver = user if direction == "down" else server
        eventually(lambda: receiver(do="status")["flows"]["f"]["datagrams"], "receive")
        began, before = time.monotonic(), receiver(do="status")["flows"]["f"]
        time.sleep(4)
        after, seconds = receiver(do="status")["flows"]["f"], time.monotonic() - began
        rate = (after["bytes"] - before["bytes"]) * 8 / seconds
        assert rate == pytest.approx(1_000_000, rel=0.1)
        assert after["next"] - before["next"] == after["datagrams"] - before["datagrams"]
    finally:
        for program in (user, server):
            program(do="stop", id="f")


def test_the_demand_of_tier_1_is_limited_by_a_meter_of_its_own(network):
    """The LTE association of ue1 is Tier 1, its WiFi association Tier 2."""
    start(network, "none")
    lte, wifi = download(network, TCP), download(network, TCP, "10.1.0.1", port=5002)
    network.tell(1, "tier1", {"ap": "lte1", "mbps": 0.3})
    network.tell(2, "tier1", {"ap": "wifi1", "mbps": 0.3})
    network.tell(3, "tier1", {"ap": "lte9", "mbps": 0.3})
    eventually(lambda: "meter:2" in network.ofctl("dump-flows", "lte1"), "limit Tier 1")
    mbps(lte, 2)  # the burst
    held_to(lambda: mbps(lte, 3), 0.3, within=0.5)
    assert "meter:" not in network.ofctl("dump-flows", "wifi1")  # everything there is Tier 2
    assert mbps(wifi, 2) > 1
    flips = {line["seq"]: line for line in network.lines("flip")}
    assert (flips[1]["state"], flips[1]["value"]) == ("applied", {"ap": "lte1", "mbps": 0.3})
    assert (flips[3]["state"], flips[3]["ok"]) == ("refused", False)
    assert "choose from wifi1, lte1" in flips[3]["why"]
    network.tell(4, "tier1", {"ap": "lte1", "mbps": None})
    eventually(lambda: network.meter_kbps("lte1") is None, "withdraw the limit")
    assert eventually(lambda: mbps(lte, 1) > 2, "go on at full rate")


def test_held_steps_are_made_after_the_runner_lets_them_go_on(network):
    """POX accepts a flip while the steps are held, so only the steps wait."""
    start(network, "meter_throttling")
    eventually(lambda: network.lines("observation"), "make control steps")
    network.tell(1, "steps", {"held": True})
    eventually(lambda: network.lines("steps"), "hold the steps")
    before = len(network.lines("observation"))
    network.tell(2, "params", {"min_rate_mbps": 1})
    eventually(lambda: network.lines("flip"), "accept the flip")
    time.sleep(1)
    assert len(network.lines("observation")) == before
    network.tell(3, "steps", {"held": False})
    eventually(lambda: len(network.lines("observation")) > before, "make control steps again")
    assert [(line["seq"], line["held"]) for line in network.lines("steps")] == [
        (1, True),
        (3, False),
    ]


def test_a_command_that_a_switch_refuses_is_a_warning_that_names_it(network):
    """A switch refuses a second meter with the same number, and an entry for a full table."""
    start(network, "none")
    meter = "meter=1,kbps,burst,stats,bands=type=drop,rate=777,burst_size=122"
    network.ofctl("add-meter", "wifi1", meter)
    network.tell(1, "strategy", {"name": "meter_throttling", "params": FAST})

    def warned(text):
        return [each for each in network.lines("warning") if text in each["text"]]

    eventually(lambda: warned("switch wifi1 refused to add its meter 1 with 100 kb/s"), "warn")
    assert warned("METER_MOD_FAILED, code 1")
    network.ofctl("del-meters", "wifi1")
    network.limit_table("s1", 1)
    try:
        network.inside("user", sys.executable, "-c", ECHO, "10.1.0.1", "10.0.0.1")
        eventually(lambda: warned("switch s1 refused to write the entry of 10."), "warn")
        assert warned("FLOW_MOD_FAILED")
    finally:
        network.limit_table("s1", None)


def test_a_meter_deleted_by_hand_is_restored_with_its_entries(network):
    start(network, "meter_throttling")
    eventually(lambda: network.meter_kbps("wifi1") == 100, "install the meter")
    network.ofctl("del-meters", "wifi1")
    assert network.meter_kbps("wifi1") is None
    eventually(lambda: network.meter_kbps("wifi1") == 100, "put the meter back")
    eventually(lambda: "meter:1" in network.ofctl("dump-flows", "wifi1"), "put its flows back")


def test_traffic_continues_while_the_controller_is_stopped_and_after_it_was_killed(network):
    start(network, "meter_throttling", min_rate_mbps=1)
    progress = download(network, MPTCP)
    eventually(lambda: len(network.lines("subflow")) >= 2, "see both subflows")
    eventually(lambda: network.meter_kbps("wifi1") == 1000, "install the meter")
    network.pox.send_signal(signal.SIGSTOP)
    assert mbps(progress, 2) > 2
    network.stop_pox(signal.SIGKILL)
    assert mbps(progress, 1) > 2
    assert network.meter_kbps("wifi1") == 1000
    known = len(network.lines("ready"))
    network.start_pox("meter_throttling", **FAST, min_rate_mbps=1)
    eventually(lambda: len(network.lines("ready")) > known, "connect again")
    assert mbps(progress, 1.5) > 2
    assert network.meter_kbps("wifi1") == 1000
    assert "subflows" in (network.run / "statistics.json").read_text()


def test_a_connection_without_entries_gets_its_path_back(network):
    start(network, "none")
    progress = download(network, TCP)
    network.stop_pox(signal.SIGKILL)
    for switch in SWITCHES:
        network.ofctl("del-flows", switch)
    known = len(network.lines("ready"))
    network.start_pox("none", **FAST)
    eventually(lambda: len(network.lines("ready")) > known, "connect again")
    eventually(lambda: mbps(progress, 1) > 2, "go on when TCP tries again")


def test_switching_the_strategy_removes_the_meter_and_installs_it_again(network):
    start(network, "meter_throttling")
    eventually(lambda: network.meter_kbps("wifi1") == 100, "install the meter")
    network.tell(1, "strategy", {"name": "none", "params": FAST})
    eventually(lambda: network.meter_kbps("wifi1") is None, "withdraw")
    network.tell(
        2, "strategy", {"name": "meter_throttling", "params": {**FAST, "min_rate_mbps": 0.5}}
    )
    eventually(lambda: network.meter_kbps("wifi1") == 500, "start again")
    network.tell(3, "strategy", {"name": "nothing"})
    last = eventually(lambda: network.lines("flip")[2:], "refuse an unknown strategy")
    assert last[0]["state"] == "refused"
    assert "choose from disjoint, expected_throughput" in last[0]["why"]


def test_a_link_that_is_down_carries_nothing_until_it_is_up(network):
    start(network, "none")
    progress = download(network, TCP)
    network.tell(1, "link", {"link": "lte", "up": False})
    eventually(lambda: network.lines("flip"), "take the link down")
    time.sleep(0.5)
    assert mbps(progress, 1) == 0
    network.tell(2, "link", {"link": "lte", "up": True})
    eventually(lambda: mbps(progress, 1) > 2, "go on when TCP tries again")


def test_a_start_with_wrong_arguments_ends_with_one_sentence(network):
    network.start_pox("fixed")
    assert network.pox.wait(10) == 2
    assert "strategy 'fixed' is unknown: choose from" in (network.folder / "pox.log").read_text()
