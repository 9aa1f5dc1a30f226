"""The whole controller with switches in memory: it starts, steps, is told, restarts and ends."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from openflow13_switch import Meter, Switch
from session_world import DOWN, LTE, NETWORK, OTHER, SECOND, SERVER, WIFI, host

from controller.errors import ControllerError
from controller.host_messages import SubflowChange, SubflowState
from controller.paths import digest
from controller.pox_ext.frames import ACK, SYN
from controller.pox_ext.host_agents import ends
from controller.pox_ext.openflow13_messages import ECHO_REQUEST

REST = ("", "")
DATA = (WIFI, "down")
FREE = {REST: None, DATA: None}
SCRIPTED = str(Path(__file__).resolve().parents[1] / "scripted.py")
CAPABLE, CAPABLE_WITH_KEY = b"\x1e\x04\x01\x01", b"\x1e\x0c\x01\x01" + bytes(8)
QUICK = {"interval_s": 0.5}
FLOOR_KBPS = 100


def connected(start, *arguments, **options):
    world = start(*arguments, **options)
    world.connect()
    return world


def throttled(start, **options):
    """A controller that has throttled Tier 2 at wifi1: ue1's data over WiFi."""
    world = connected(start, "meter_throttling", params=QUICK, **options)
    world.wait(0.5)
    return world


# Options


@pytest.mark.parametrize(
    ("read", "text", "why"),
    [
        ("read_topology", None, "no topology. Add --topology=FILE"),
        ("read_topology", "nowhere.json", "read nowhere.json: No such file"),
        ("read_params", "[1]", "it is not an object"),
        ("read_params", "{", "read --params={:"),
        ("read_key", "nowhere", "read --key_file=nowhere: No such file"),
    ],
)
def test_an_option_that_cannot_be_read_is_refused(pox, read, text, why):
    with pytest.raises(ControllerError, match=re.escape(why)):
        getattr(pox.component, read)(text)


def test_options_that_are_not_given_are_empty(pox):
    assert (pox.component.read_params(""), pox.component.read_key(None)) == ({}, "")


# Switches and steps


def test_it_is_ready_once_when_all_switches_have_both_tables(start):
    world = start()
    world.connect("s1", "wifi1", "lte1")
    assert world.lines("ready") == []
    world.connect("wifi2")
    (line,) = world.lines("ready")
    assert (line["switches"], line["strategy"]) == (["lte1", "s1", "wifi1", "wifi2"], "none")
    assert world.switches["s1"].table0 == world.switches["wifi2"].table0 == {REST: None}
    assert world.switches["wifi1"].table0 == FREE
    assert world.switches["lte1"].table0 == {REST: None, (LTE, "down"): None}
    assert world.warnings == []


def test_a_lost_switch_is_logged_and_gets_all_again_when_it_returns(start):
    world = connected(start)
    world.disconnect("wifi1")
    world.switches["wifi1"].table0.clear()
    world.connect("wifi1")
    states = [(line["switch"], line["state"]) for line in world.lines("switch")]
    assert states[4:] == [("wifi1", "lost"), ("wifi1", "connected")]
    assert world.switches["wifi1"].table0 == FREE
    assert len(world.lines("ready")) == 2
    assert world.bridges["wifi1"].entries


def test_each_interval_has_a_step_as_soon_as_all_counters_have_come(start):
    world = connected(start, params={"interval_s": 1})
    world.wait(0.25)
    assert len(world.lines("observation")) == 1
    world.wait(0.75)
    assert len(world.lines("observation")) == 1
    world.wait(0.25)
    assert len(world.lines("observation")) == 2


def test_a_switch_that_does_not_answer_delays_a_step_for_a_second(start):
    world = start(params={"interval_s": 5})
    world.switches["s1"].is_silent = True
    world.switches["s1"].table0[REST] = None
    world.connect()
    world.wait(10.5)  # its table 0 is never ready, so the controller waits for it
    assert world.lines("observation") == []
    world.wait(1)
    assert len(world.lines("observation")) == 1


def test_answers_that_come_too_late_do_not_count_for_the_next_step(start):
    world = connected(start, params=QUICK)
    slow = world.switches["s1"]
    slow.is_silent = True
    world.wait(1.5)
    assert len(world.lines("observation")) == 1
    world.wait(0.5)  # the counters of the second step have been requested
    slow.answer(2)
    world.settle()
    assert len(world.lines("observation")) == 1
    slow.answer(2)
    world.settle()
    assert len(world.lines("observation")) == 2


def test_a_missing_switch_is_named_after_a_while_and_the_others_are_used(start):
    world = start()
    world.connect("s1", "wifi1", "lte1")
    world.connect10("wifi2")
    world.wait(10)
    assert (world.warnings, world.lines("observation")) == ([], [])
    world.wait(0.5)
    assert len(world.lines("observation")) == 1
    world.wait(5)
    (text,) = [each for each in world.warnings if "wifi2" in each]
    assert "no OpenFlow 1.3 channel" in text
    world.disconnect("s1")
    world.wait(0.25)
    assert [each for each in world.warnings if each.startswith("switch s1 has not connected")]


def test_every_task_looks_once_a_second_whether_pox_ends(start):
    world = connected(start)
    assert [seconds for _, (*_, seconds) in world.core.waiting] == [1.0] * 3
    world.core.running = False
    for task, _ in world.core.waiting:
        with pytest.raises(StopIteration):
            task.send(([], [], []))


def test_held_steps_are_not_made_and_a_begun_one_is_given_up(start):
    world = connected(start, params=QUICK)
    world.tell("steps", {"held": True})
    world.wait(5)
    assert world.lines("observation") == []
    world.tell("steps", {"held": False})
    world.wait(0.25)
    assert len(world.lines("observation")) == 1
    assert [(line["seq"], line["held"]) for line in world.lines("steps")] == [(1, True), (2, False)]
    for each in world.switches.values():
        each.is_silent = True
    world.wait(1)
    world.tell("steps", {"held": True})
    world.wait(5)
    assert len(world.lines("observation")) == 1


def test_a_strategy_that_fails_is_reported_with_its_line_and_no_step_follows(start, tmp_path):
    file = tmp_path / "broken.py"
    file.write_text(
        "from controller.strategies.base import Strategy\n\n\n"
        "class Broken(Strategy):\n"
        "    def decide(self, seen):\n        return seen.nothing\n\n"
        "    def withdraw(self, seen):\n        return []\n"
    )
    world = connected(start, str(file))
    world.wait(5)
    (line,) = world.lines("failed")
    assert (line["strategy"], line["file"], line["line"]) == ("broken", str(file), 6)
    assert world.lines("observation") == []


# Connections with OpenFlow 1.3


def test_a_switch_without_openflow_13_is_refused_and_says_how_to_set_it(start):
    world = start()
    world.switches["s1"].connect(world.port, version=1)
    world.settle()
    (text,) = world.warnings
    assert f"speak OpenFlow 1.3 on port {world.port}: a bridge offers version 1 at most" in text
    assert world.switches["s1"].socket is None
    world.switches["s1"].connect(world.port, version=5)
    world.settle()
    assert world.switches["s1"].table0 == {REST: None}


def test_a_second_connection_of_a_switch_replaces_the_first(start):
    world = connected(start, params=QUICK)
    first = world.switches["wifi1"]
    world.switches["again"] = second = replace(first, socket=None, table0={})
    second.connect(world.port)
    world.settle()
    assert first.socket is None
    assert second.table0 == FREE
    world.wait(1)
    assert world.lines("observation")


def test_a_switch_that_is_not_in_the_topology_is_left_alone(start):
    world = connected(start)
    world.switches["another"] = another = Switch(99)
    another.connect(world.port)
    world.settle()
    another.close()
    world.settle()
    assert another.table0 == {}


def test_a_switch_that_leaves_before_its_tables_are_written_is_not_ready(start):
    world = start()
    world.connect("s1", "wifi1", "lte1")
    for left_out in ("counters", "barriers"):
        world.switches["wifi2"].is_silent = left_out == "counters"
        world.switches["wifi2"].ignores_barriers = True
        world.connect("wifi2")
        world.switches["wifi2"].close()
        world.settle()
        assert world.lines("ready") == []
        world.disconnect("wifi2")
    world.switches["wifi2"].ignores_barriers = False
    world.connect("wifi2")
    assert len(world.lines("ready")) == 1


def test_a_switch_that_leaves_while_its_counters_are_awaited_delays_no_step(start):
    world = connected(start, params={"interval_s": 5})
    world.switches["wifi1"].is_silent = True
    world.wait(0.25)
    assert world.lines("observation") == []
    world.disconnect("wifi1")
    assert len(world.lines("observation")) == 1


def test_a_switch_that_reads_slowly_gets_all_answers(start):
    world = connected(start)
    switch = world.switches["s1"]
    bodies = [bytes([number]) * 60_000 for number in range(120)]
    for number, body in enumerate(bodies):
        switch.send(ECHO_REQUEST, body, number)
        world.core.turn()
    world.settle()
    assert switch.echoes == list(enumerate(bodies))


def test_a_refused_message_is_a_warning_that_says_what_it_was(start):
    world = connected(start, params=QUICK)
    world.switches["wifi1"].meters[2] = Meter(1, 1)  # the controller has not seen it
    world.tell("tier1", {"ap": "wifi1", "mbps": 3})
    world.wait(0.25)
    text = "switch wifi1 refused to add its meter 2 with 3000 kb/s: METER_MOD_FAILED, code 1."
    assert world.warnings == [f"{text} See ovs-ofctl(8)"]


def test_a_refused_request_for_counters_delays_no_step(start):
    world = connected(start, params={"interval_s": 5})
    for switch in world.switches.values():
        switch.refuses_counters = True
    changes = [switch.changes.copy() for switch in world.switches.values()]
    world.wait(0.25)
    assert len(world.lines("observation")) == 1
    assert len(world.warnings) == 4
    world.wait(20)
    assert [switch.changes for switch in world.switches.values()] == changes


# Meters


def test_tier_2_passes_a_meter_until_the_strategy_is_replaced(start):
    world = throttled(start)
    switch = world.switches["wifi1"]
    assert {number: each.rate_kbps for number, each in switch.meters.items()} == {1: FLOOR_KBPS}
    assert switch.table0 == {REST: None, DATA: 1}
    assert world.switches["lte1"].meters == {}
    world.tell("strategy", {"name": "none", "params": QUICK})
    world.wait(1)
    assert (switch.meters, switch.table0) == ({}, FREE)
    assert switch.changes[-2:] == [f"write {WIFI} down", "delete meter 1"]
    assert world.warnings == []


def test_the_rate_of_tier_2_is_what_the_meter_lets_through(start):
    world = throttled(start)
    meter = world.switches["wifi1"].meters[1]
    world.tell("steps", {"held": False})
    for _ in range(4):
        meter.offered_bytes += 80_000
        meter.dropped_bytes += 30_000
        world.wait(0.5)
    assert [each["tier2_mbps"] for each in world.observed()[-2:]] == [0.8, 0.8]
    assert world.observed()[-1]["meter_mbps"] == FLOOR_KBPS / 1000


def test_without_a_meter_the_entries_of_tier_2_are_counted(start):
    world = connected(start, params=QUICK)
    world.wait(0.25)
    for _ in range(3):
        world.switches["wifi1"].bytes[DATA] = world.switches["wifi1"].bytes.get(DATA, 0) + 100_000
        world.switches["lte1"].bytes[LTE, "down"] = 10**9
        world.wait(0.5)
    assert world.observed()[-1]["tier2_mbps"] == 1.6
    assert world.observed("lte1")[-1]["tier2_mbps"] == 0


def test_the_rate_continues_when_a_change_of_the_meter_has_reset_its_counters(start):
    world = throttled(start)
    switch = world.switches["wifi1"]
    switch.meters[1].offered_bytes = 10**6
    world.wait(1)
    world.tell("params", {"min_rate_mbps": 1})
    world.report("wifi1", mac_occupancy=1)
    world.wait(1)
    assert switch.meters[1].rate_kbps == 1000
    for _ in range(2):
        switch.meters[1].offered_bytes += 50_000
        world.wait(0.5)
    assert world.observed()[-1]["tier2_mbps"] == 0.8


def test_a_restarted_controller_goes_on_with_the_meters_it_finds(start):
    first = throttled(start)
    switch = first.switches["wifi1"]
    switch.changes.clear()
    steps = len(first.observed())
    again = throttled(start, switches=first.switches)
    found = again.observed()[steps]
    assert (found["meter_mbps"], found["tier2_mbps"]) == (FLOOR_KBPS / 1000, 0)
    assert switch.changes == []
    assert switch.table0 == {REST: None, DATA: 1}


def test_a_limit_that_is_set_while_the_switch_is_away_is_there_when_it_returns(start):
    world = start("meter_throttling", params=QUICK)
    world.connect("s1", "lte1", "wifi2")
    world.wait(12)
    world.connect("wifi1")
    assert world.switches["wifi1"].table0 == {REST: None, DATA: 1}
    assert world.switches["wifi1"].meters[1].rate_kbps == FLOOR_KBPS


def test_a_switch_that_has_lost_all_gets_its_meter_and_entries_again(start):
    world = throttled(start)
    switch = world.switches["wifi1"]
    world.disconnect("wifi1")
    switch.table0.clear()
    switch.meters.clear()
    world.connect("wifi1")
    assert (switch.table0, switch.meters[1].rate_kbps) == ({REST: None, DATA: 1}, FLOOR_KBPS)
    assert world.warnings == []


def test_a_controller_without_limits_removes_those_it_finds(start):
    first = throttled(start)
    again = connected(start, switches=first.switches, params=QUICK)
    assert first.switches["wifi1"].meters
    again.wait(0.5)
    assert (first.switches["wifi1"].meters, first.switches["wifi1"].table0) == ({}, FREE)


@pytest.mark.parametrize("lost", [REST, DATA])
def test_entries_deleted_by_hand_come_back_after_ten_seconds(start, lost):
    world = throttled(start)
    switch = world.switches["wifi1"]
    before = dict(switch.table0)
    del switch.table0[lost]
    world.wait(9.5)
    assert lost not in switch.table0
    world.wait(2)
    assert switch.table0 == before


def test_a_meter_deleted_by_hand_comes_back_with_its_entries(start):
    world = throttled(start)
    switch = world.switches["wifi1"]
    del switch.meters[1], switch.table0[DATA]
    world.wait(9.5)
    assert switch.meters == {}
    world.wait(2)
    assert switch.table0 == {REST: None, DATA: 1}
    assert switch.meters[1].rate_kbps == FLOOR_KBPS


def test_the_meter_of_tier_1_deleted_by_hand_comes_back_too(start):
    world = connected(start, params=QUICK)
    switch = world.switches["wifi1"]
    world.wait(0.5)
    world.tell("tier1", {"ap": "wifi1", "mbps": 3})
    world.wait(0.5)
    del switch.meters[2], switch.table0[OTHER, "down"]
    world.wait(12)
    assert switch.table0 == {**FREE, (OTHER, "down"): 2}
    assert switch.meters[2].rate_kbps == 3000


def test_a_user_whose_tier_is_not_known_yet_is_limited_as_tier_1(start):
    world = connected(start)
    world.tell("steps", {"held": True})
    world.tell("tier1", {"ap": "wifi1", "mbps": 3})
    world.wait(0.5)
    assert world.switches["wifi1"].table0 == {REST: None, DATA: 2, (OTHER, "down"): 2}
    world.tell("steps", {"held": False})
    world.wait(0.5)
    assert world.switches["wifi1"].table0 == {**FREE, (OTHER, "down"): 2}


def test_an_entry_that_differs_for_a_moment_is_not_written_again(start):
    world = throttled(start)
    switch = world.switches["wifi1"]
    switch.changes.clear()
    for _ in range(2):
        switch.table0[DATA] = None
        world.wait(6)
        switch.table0[DATA] = 1
        world.wait(6)
    assert switch.changes == []


def test_tier_1_is_limited_and_the_limit_removed_on_request(start):
    world = connected(start, params=QUICK)
    switch = world.switches["wifi1"]
    world.wait(0.5)  # ue1 is known as Tier 2 at wifi1
    world.tell("tier1", {"ap": "wifi1", "mbps": 3})
    world.wait(0.25)
    assert switch.meters[2].rate_kbps == 3000
    assert switch.table0 == {**FREE, (OTHER, "down"): 2}
    world.tell("tier1", {"ap": "wifi1", "mbps": None})
    world.wait(0.25)
    assert (switch.meters, switch.table0) == ({}, FREE)
    assert [line["value"] for line in world.lines("flip")] == [
        {"ap": "wifi1", "mbps": 3.0},
        {"ap": "wifi1", "mbps": None},
    ]


def test_both_tiers_can_be_limited_and_both_limits_survive_a_restart(start):
    world = throttled(start)
    switch = world.switches["wifi1"]
    world.tell("tier1", {"ap": "wifi1", "mbps": 3})
    world.wait(0.5)
    limited = {REST: None, DATA: 1, (OTHER, "down"): 2}
    assert switch.table0 == limited
    again = throttled(start, switches=world.switches)
    again.wait(15)
    assert switch.table0 == limited
    assert {number: each.rate_kbps for number, each in switch.meters.items()} == {
        1: FLOOR_KBPS,
        2: 3000,
    }
    assert again.warnings == []


def test_a_station_takes_its_place_in_table_0_along(start):
    world = throttled(start)
    world.report("wifi2", stations={"ue1": {"rate_mbps": 5}})
    assert world.switches["wifi1"].table0 == {REST: None}
    assert world.switches["wifi2"].table0 == FREE
    (line,) = world.lines("association")
    assert (line["user"], line["from"], line["to"]) == ("ue1", "wifi1", "wifi2")
    world.wait(1)
    assert world.switches["wifi2"].table0 == {REST: None, DATA: 1}


def test_addresses_of_a_multipath_user_elsewhere_are_not_counted(start):
    hosts = NETWORK["hosts"] | {"ue1": [*NETWORK["hosts"]["ue1"], host("s1", "s1-lan", "10.3.0.1")]}
    world = connected(start, hosts=hosts)
    assert world.switches["s1"].table0 == {REST: None}
    assert world.switches["wifi1"].table0 == FREE


def test_both_directions_of_data_have_an_entry_where_the_topology_says_so(start):
    world = connected(start, data={"ue1": ["down", "up"]})
    assert world.switches["wifi1"].table0 == {**FREE, (WIFI, "up"): None}


# Reports, flows and files


def test_the_occupancy_that_a_step_observes_is_the_mean_of_the_reports_since_the_last(start):
    world = connected(start, params=QUICK)
    for occupancy in (0.2, 0.4):
        world.report("wifi1", mac_occupancy=occupancy)
    world.wait(0.25)
    world.wait(0.5)
    assert [each["mac_occupancy"] for each in world.observed()] == [0.3, None]


def test_queues_of_tier_2_do_not_count_in_the_occupancy_of_a_base_station(start):
    aps = NETWORK["aps"] | {
        "lte1": {
            "kind": "lte",
            "capacity_mbps": 20,
            "stations": {"ue1": {"rate_mbps": 1}, "ue2": {"rate_mbps": 20}},
        }
    }
    world = connected(start, params=QUICK, aps=aps)
    world.wait(0.5)
    queues = {"ue1": {"mac_occupancy": 0.8}, "ue2": {"mac_occupancy": 0.2}}
    world.report("lte1", stations=queues)
    world.wait(0.5)
    assert world.lines("observation")[-1]["tiers"]["ue1"] == {"lte1": 2, "wifi1": 1}
    assert world.observed("lte1")[-1]["mac_occupancy"] == 0.2


def test_reports_that_are_not_valid_are_warnings_each_once(start):
    world = connected(start)
    for _ in range(2):
        world.report("wifi1", key="another")
        world.report("wifi9")
        world.host_report("ue1", key="another")
    assert len(world.warnings) == 3
    assert "'wifi9', which is unknown" in world.warnings[1]


def test_warnings_end_at_their_limit(start):
    world = connected(start)
    for number in range(600):
        world.report(f"ap{number}", wait=number % 50 == 0)
    world.settle()
    assert len(world.warnings) == 500


def test_without_a_key_no_report_is_read(start):
    world = connected(start, key="")
    world.report("wifi9")
    assert world.warnings == []


def test_flows_and_ports_are_counted_in_the_statistics(start):
    world = connected(start, params=QUICK, rate_scale=0.5)
    world.open(DOWN)
    for n in range(1, 5):
        for name in ("s1", "wifi1"):
            world.switches[name].paths = [(digest(DOWN), 100 * n, 100_000 * n)]
        world.switches["s1"].ports = {2: (n, 2 * n, 50_000 * n, 100_000 * n, 7, 8)}
        world.wait(0.5)
    tables = world.tables()
    (row,) = tables["subflows"]
    assert (row["source"], row["destination"]) == ends(DOWN)
    assert (row["path"], row["mbps"], row["sent_packets"]) == (["s1", "wifi1"], 3.2, 400)
    (port,) = [each for each in tables["ports"] if each["name"] == "s1-wifi1"]
    assert (port["rx_packets"], port["tx_packets"]) == (4, 8)
    assert (port["rx_mbps"], port["tx_mbps"]) == (1.6, 3.2)
    assert (port["rx_dropped"], port["tx_dropped"]) == (7, 8)
    assert len([each for each in tables["ports"] if each["switch"] == "s1"]) == 1
    (control,) = tables["control"]
    assert (control["strategy"], control["params"]["interval_s"]) == ("none", 0.5)
    assert control["at"] > 1e9
    assert {each["ap"] for each in tables["aps"]} == {"wifi1", "lte1", "wifi2"}


def test_subflows_pins_and_links_are_known_after_a_restart(start):
    first = connected(start, params=QUICK)
    first.open(DOWN)
    first.packet(SECOND.back(), SYN)
    assert len(first.bridges["lte1"].packets) == 1
    first.tell("link", {"link": "to-lte1", "up": False})
    first.wait(2)
    (line,) = first.lines("subflow")
    again = connected(start, params=QUICK, switches=first.switches)
    again.wait(1)
    assert again.lines("subflow") == [line]
    again.packet(SECOND.back(), SYN)
    assert again.bridges["lte1"].packets == []  # the link is still down
    again.tell("link", {"link": "to-lte1", "up": True})
    again.wait(0.25)
    again.packet(SECOND.back(), SYN)
    assert len(again.bridges["lte1"].packets) == 1
    (row,) = again.tables()["subflows"]
    assert row["connection"] == line["connection"]


def test_a_link_that_fails_is_answered_with_the_flows_that_moved(start):
    world = connected(start)
    world.open(DOWN)
    world.tell("link", {"link": "to-wifi1", "up": False})
    world.tell("link", {"link": "wifi1", "rate_mbps": 2})
    world.wait(0.25)
    answers = [(line["value"], line["flows_moved"]) for line in world.lines("flip")]
    assert answers[0] == ({"link": "to-wifi1", "up": False}, 0)
    assert answers[1] == ({"link": "wifi1", "rate_mbps": 2.0}, None)


def test_a_flow_whose_entry_is_idle_has_ended(start):
    world = connected(start)
    world.open(DOWN)
    world.wait(1)
    for reason in (1, 0):
        ofp = SimpleNamespace(reason=reason, cookie=digest(DOWN))
        world.forwarding._handle_FlowRemoved(SimpleNamespace(ofp=ofp))
        ended = [line for line in world.lines("subflow") if line.get("ended")]
        assert len(ended) == (1 if reason == 0 else 0)


@pytest.mark.parametrize("opened", [DOWN, DOWN.back()])
def test_a_subflow_leads_to_its_user_whoever_has_opened_it(start, opened):
    world = connected(start)
    world.packet(opened, SYN)
    world.packet(opened.back(), SYN | ACK)
    world.wait(0.5)
    (line,) = world.lines("subflow")
    assert (line["source"], line["destination"]) == ends(DOWN)
    assert (line["user"], line["ap"], line["tier"]) == ("ue1", "wifi1", 2)
    assert line["path"] == ["s1", "wifi1"]


def test_a_connection_that_asked_for_multipath_tcp_in_vain_is_a_warning(start):
    world = connected(start)
    world.packet(DOWN.back(), SYN, options=CAPABLE)
    world.packet(DOWN, SYN | ACK)
    (text,) = world.warnings
    assert text == f"{WIFI} requested Multipath TCP of {SERVER}:5001 and got plain TCP"


# Hosts


def state(flow, expected_mbps=None, backup=False):
    return SubflowState("0", *ends(flow), backup, expected_mbps, 0)


def paced(start, mbps=2.5):
    script = f'{{"expect": {{"1": {mbps}}}}}'
    world = connected(start, SCRIPTED, params={"script": script, "interval_s": 0.5})
    world.host_report("ue1", state(DOWN.back()))
    world.open(DOWN)
    return world


def test_a_host_is_told_its_pacing_rate_until_its_report_confirms_it(start):
    world = paced(start)
    world.wait(0.25)
    (command,) = world.commands()
    assert (command.host, command.subflows) == (
        "ue1",
        (SubflowChange(*ends(DOWN), None, 2.5),),
    )
    world.wait(2)
    repeated = world.commands()
    assert command.seq < repeated[0].seq
    world.host_report("ue1", state(DOWN.back(), expected_mbps=2.5))
    world.wait(0.5)
    world.commands()
    world.wait(3)
    assert world.commands() == []


def test_hosts_are_checked_between_steps_too(start):
    world = paced(start)
    world.wait(0.5)
    world.tell("steps", {"held": True})
    world.wait(0.25)
    world.commands()
    world.wait(1.25)
    assert len(world.commands()) == 1


def test_hosts_are_checked_once_a_second_between_steps(start):
    world = connected(start)
    world.host_report("srv1", state(DOWN))
    world.wait(1)
    world.tell("steps", {"held": True})
    world.wait(1.25)
    world.host_report("srv1")
    ended = []
    for _ in range(6):
        ended.append(len([line for line in world.lines("subflow") if line.get("ended")]))
        world.wait(0.25)
    assert ended == [0, 0, 0, 0, 1, 1]


@pytest.mark.parametrize("reporting", [(), ("ue1",), ("srv1", "ue1")])
@pytest.mark.parametrize("multipath", [False, True])
def test_a_host_that_never_reports_is_a_warning_after_a_while(start, multipath, reporting):
    """Of a connection without Multipath TCP, one host that reports is enough."""
    script = '{"expect": {"1": 2.5}}'
    world = connected(start, SCRIPTED, params={"script": script})
    world.packet(DOWN.back(), SYN, CAPABLE if multipath else b"")
    world.packet(DOWN, SYN | ACK, CAPABLE_WITH_KEY if multipath else b"")
    for host_name in reporting:
        flow = DOWN if host_name == "srv1" else DOWN.back()
        world.host_report(host_name, state(flow))
    world.wait(9)
    assert world.warnings == []
    world.wait(3)
    missing = {"srv1", "ue1"} - set(reporting) if multipath or not reporting else set()
    assert {text.partition(":")[0] for text in world.warnings} == {f"host {m}" for m in missing}


def test_a_server_that_reports_its_connections_restores_them(start):
    world = connected(start)
    world.host_report("srv1", replace(state(DOWN), token="12345678"))
    world.wait(1)
    (line,) = world.lines("subflow")
    assert (line["source"], line["destination"]) == ends(DOWN)
    assert line["connection"] == "12345678"
