"""Forwarding of packets over bridges that record messages."""

from __future__ import annotations

import struct
from types import SimpleNamespace

import pytest
from bridge_world import DPID, OFPR_ACTION, PORTS, SERVER, USER, World, segment, tcp

from controller.paths import TCP, Flow, digest
from controller.pox_ext import forwarding, frames, nicira, sent_messages
from controller.pox_ext.frames import ACK, SYN


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(forwarding.time, "monotonic", lambda: now[0])
    return now


def test_a_refused_entry_is_a_warning_that_names_switch_and_flow():
    world = World()
    world.comes("ap", "ap-host", tcp(SYN))
    xids = world.bridges["s1"].xids
    assert len(set(xids)) == len(xids)
    world.refuses("s1", xids[0], 3, 0)
    world.refuses("ap", world.bridges["ap"].xids[-1], 1, 6)
    world.refuses("ap", 12, 3, 1)
    entry, packet, unknown = world.warnings
    assert entry.startswith("switch s1 refused to write the entry of 10.")
    assert entry.endswith(": FLOW_MOD_FAILED, code 0. See ovs-ofctl(8)")
    assert "5001" in entry
    assert packet.startswith("switch ap refused to send a packet of 10.1.0.1")
    assert unknown.startswith("switch ap refused to carry out an OpenFlow message: FLOW_MOD_FAILED")


def test_a_syn_installs_both_directions_and_is_sent_on():
    world = World()
    world.comes("ap", "ap-host", tcp(SYN))
    middle = next(name for name in ("up", "low") if name in world.entries)
    assert world.entries == {"ap": 2, middle: 2, "s1": 2}
    assert world.bridges["ap"].packets == [(tcp(SYN), PORTS["ap"].index(f"ap-{middle}") + 1)]
    assert [packet.flow.source_port for packet in world.seen] == [40000]


FLOW = Flow(USER[0], SERVER[0], TCP, 40000, 5001)
SYN_ACK = segment(FLOW.back(), (SERVER[1], USER[1]), SYN | ACK)
FOURTH_ACK = segment(FLOW.back(), (SERVER[1], USER[1]), ACK)


def copying(world: World) -> dict[str, list[bool]]:
    """For each switch, whether each entry that was written for the server's packets copies them."""
    return {
        name: [
            nicira.copy_to_controller() in each
            for each in bridge.messages
            if each[1] == 4 and ends_at(each, FLOW.back())
        ]
        for name, bridge in world.bridges.items()
    }


def test_a_syn_is_sent_on_when_all_switches_on_its_path_have_the_entries():
    world = World()
    for bridge in world.bridges.values():
        bridge.slow = True
    world.comes("ap", "ap-host", tcp(SYN))
    for name in world.entries:
        assert world.bridges["ap"].packets == []
        world.bridges[name].pass_barriers()
    assert [data for data, _ in world.bridges["ap"].packets] == [tcp(SYN)]


def test_a_syn_ack_is_copied_by_the_first_switch_and_does_not_wait_for_the_controller():
    world = World()
    world.comes("ap", "ap-host", tcp(SYN))
    assert {name: copies for name, copies in copying(world).items() if any(copies)} == {
        "s1": [True]
    }
    world.comes("s1", "s1-host", SYN_ACK, nicira.COPY)
    assert [packet.flow for packet in world.seen] == [FLOW, FLOW.back()]
    assert copying(world)["s1"] == [True, False]
    assert world.bridges["s1"].packets == []


def test_an_entry_copies_until_the_syn_ack_is_seen_also_after_a_move(clock):
    world = World()
    world.comes("ap", "ap-host", tcp(SYN))
    middle = "low" if "up" in world.entries else "up"
    world.forwarding.pin(FLOW, ("ap", middle, "s1"))
    assert copying(world)["s1"] == [True, True]
    clock[0] += 1
    world.comes("ap", "ap-host", tcp(SYN))  # it was lost, and comes again
    world.comes("s1", "s1-host", SYN_ACK, nicira.COPY)
    assert copying(world)["s1"] == [True, True, True, False]
    assert copying(world)[middle] == [False] * 2


def test_a_syn_ack_that_came_to_the_controller_ends_the_copies_too():
    world = World()
    world.comes("ap", "ap-host", tcp(SYN))
    world.comes("s1", "s1-host", SYN_ACK)
    assert copying(world)["s1"] == [True, False]
    assert [data for data, _ in world.bridges["s1"].packets] == [SYN_ACK]


def test_copies_that_an_earlier_controller_asked_for_end_at_the_first(clock):
    world = World()
    for passed_s in (0, 0.1, 0.4):
        clock[0] += passed_s
        world.comes("s1", "s1-host", FOURTH_ACK, nicira.COPY)
    assert copying(world)["s1"] == [False, False]
    assert world.seen == []
    assert world.bridges["s1"].packets == []


def test_the_latest_handshakes_are_copied(monkeypatch):
    monkeypatch.setattr(forwarding, "MOST_INSTALLED", 2)
    world = World()
    for port in range(40000, 40003):
        world.comes("ap", "ap-host", tcp(SYN, port))
    world.comes("s1", "s1-host", SYN_ACK, nicira.COPY)
    assert copying(world)["s1"] == [True, False]
    assert len(world.forwarding._entries._copying) == 2


def test_an_entry_lasts_ten_minutes_without_packets_and_its_end_is_reported():
    world = World()
    world.comes("ap", "ap-host", tcp(SYN))
    flow = world.seen[0].flow
    (entry,) = [
        each for each in world.bridges["ap"].messages if each[1] == 4 and ends_at(each, flow)
    ]
    cookie, command, idle_s, hard_s, priority = struct.unpack_from("!QHHHH", entry, 16)
    flags, _ = struct.unpack_from("!HH", entry, 38)
    assert (cookie, command, idle_s, hard_s, priority, flags) == (
        digest(flow),
        0x102,
        600,
        0,
        110,
        1,
    )


def ends_at(message, flow):
    return nicira.match_flow(flow) in message


def test_data_in_the_middle_of_a_connection_gets_a_path_but_is_not_tracked():
    world = World()
    world.comes("ap", "ap-host", tcp(ACK))
    assert world.entries["ap"] == 2
    assert world.seen == []


def test_entries_are_not_rewritten_for_each_packet_in_flight():
    world = World()
    for _ in range(5):
        world.comes("ap", "ap-host", tcp(ACK))
    assert world.entries["ap"] == 2
    assert len(world.bridges["ap"].packets) == 5


def test_a_link_down_moves_its_flows_and_clears_its_ends():
    world = World()
    for port in range(20):
        world.comes("ap", "ap-host", tcp(SYN, port))
    before = world.entries["low"]
    world.bridges["s1"].entries.clear()
    moved = world.forwarding.set_link("s1up", up=False)
    assert moved > 0
    assert world.entries["low"] == before + moved
    assert (3, 0) in world.bridges["s1"].entries
    assert world.forwarding.set_link("s1up", up=False) == 0
    assert world.forwarding.set_link("nowhere", up=False) is None


def pinned(world: World, *middle: str) -> int:
    """Move the installed flow to this switch."""
    flow = world.seen[0].flow
    return world.forwarding.pin(flow, ("ap", *middle, "s1"))


def one_flow() -> tuple[World, str, str]:
    """(world, switch in the middle of its only flow, the other switch)."""
    world = World()
    world.comes("ap", "ap-host", tcp(SYN))
    old = next(name for name in ("up", "low") if name in world.entries)
    for bridge in world.bridges.values():
        bridge.entries.clear()
    return world, old, "low" if old == "up" else "up"


def test_a_routed_flow_moves_and_its_old_entries_are_deleted_later():
    world, old, new = one_flow()
    assert pinned(world, new) == 2
    assert world.entries == {"ap": 2, new: 2, "s1": 2}
    world.forwarding.tick()
    assert old not in world.entries
    world.forwarding._entries.delete_stale(1e12, world.forwarding._router.switches)
    assert world.bridges[old].entries == [(4, 110)] * 2
    assert pinned(world, new) == 0


def test_a_flow_that_moves_back_keeps_its_entries():
    world, old, new = one_flow()
    pinned(world, new)
    pinned(world, old)
    world.bridges[old].entries.clear()
    world.forwarding._entries.delete_stale(1e12, world.forwarding._router.switches)
    assert not world.bridges[old].entries
    assert world.bridges[new].entries[-2:] == [(4, 110)] * 2


def test_a_new_path_is_complete_before_its_first_packet():
    world, _, new = one_flow()
    for bridge in world.bridges.values():
        bridge.slow = True
    pinned(world, new)
    assert world.entries == {"ap": 1, "s1": 1}  # the last hop of each direction
    for name in ("ap", "s1"):
        world.bridges[name].pass_barriers()
    assert world.entries == {"ap": 1, "s1": 1, new: 2}
    world.bridges[new].pass_barriers()
    assert world.entries == {"ap": 2, "s1": 2, new: 2}


def test_a_disconnected_switch_does_not_delay_the_others():
    world, _, new = one_flow()
    world.bridges[new].slow = True
    pinned(world, new)
    world.forwarding._handle_ConnectionDown(SimpleNamespace(dpid=DPID[new]))
    assert world.entries["ap"] == world.entries["s1"] == 2


def test_a_chosen_path_over_a_broken_link_is_replaced_by_the_shortest():
    world, _, new = one_flow()
    pinned(world, new)
    assert world.forwarding.set_link(f"{new}ap", up=False) == 2
    assert new not in world.forwarding._router.path(world.seen[0].flow)
    assert world.forwarding.set_link(f"{new}ap", up=True) == 2
    assert new in world.forwarding._router.path(world.seen[0].flow)


def test_packets_without_a_path_are_dropped_in_the_bridge():
    world = World()
    for link in ("s1up", "s1low"):
        world.forwarding.set_link(link, up=False)
    world.comes("ap", "ap-host", tcp(ACK))
    assert world.entries["ap"] == 1
    assert world.bridges["ap"].packets == []


def test_arp_is_answered_from_the_topology():
    world = World()
    world.comes("ap", "ap-host", frames.arp(frames.ARP_REQUEST, USER[1], USER[0], "", SERVER[0]))
    ((data, port),) = world.bridges["ap"].packets
    assert frames.parse(data).payload == frames.Arp(
        frames.ARP_REPLY, SERVER[1], SERVER[0], USER[1], USER[0]
    )
    assert PORTS["ap"][port - 1] == "ap-host"


def test_an_unknown_address_is_requested_and_the_reply_is_passed_on():
    world = World(srv1=False)
    world.comes("ap", "ap-host", frames.arp(frames.ARP_REQUEST, USER[1], USER[0], "", SERVER[0]))
    ((asked, port),) = world.bridges["s1"].packets
    assert frames.parse(asked).payload.operation == frames.ARP_REQUEST
    assert PORTS["s1"][port - 1] == "s1-host"
    world.comes(
        "s1", "s1-host", frames.arp(frames.ARP_REPLY, SERVER[1], SERVER[0], USER[1], USER[0])
    )
    ((answer, _),) = world.bridges["ap"].packets
    assert frames.parse(answer).payload.sender_mac == SERVER[1]
    assert not world.bridges["up"].packets
    assert not world.bridges["low"].packets


@pytest.mark.parametrize("data", [b"", bytes(13), bytes(60), tcp(SYN)[:30]])
def test_invalid_frames_are_not_forwarded(data):
    world = World()
    world.comes("ap", "ap-host", data)
    assert world.entries == {}


def test_a_packet_at_a_wrong_switch_makes_its_path_be_rewritten(clock):
    world = World()
    world.comes("ap", "ap-host", tcp(ACK))
    middle, other = ("up", "low") if "up" in world.entries else ("low", "up")
    clock[0] += 1
    world.comes(other, f"{other}-ap", tcp(ACK))
    assert world.entries == {"ap": 4, middle: 4, "s1": 4}
    assert world.bridges[other].packets == []


def test_a_silent_switch_delays_a_move_for_a_limited_time(clock):
    world = World()
    world.comes("ap", "ap-host", tcp(ACK))
    flow = Flow(USER[0], SERVER[0], 6, 40000, 5001)
    other = "low" if "up" in world.entries else "up"
    for bridge in world.bridges.values():
        bridge.slow = True
    world.forwarding.pin(flow, ("ap", other, "s1"))
    for passed_s in (0, 1.9):
        clock[0] += passed_s
        world.forwarding.tick()
        assert other not in world.entries
    clock[0] += 0.1
    world.forwarding.tick()
    assert world.entries[other] == 2


def test_an_address_of_unknown_place_is_requested_at_every_other_host_and_of_no_switch():
    world = World()
    request = frames.arp(frames.ARP_REQUEST, USER[1], USER[0], "", "10.9.9.9")
    world.comes("ap", "ap-host", request)
    asked = {name: bridge.packets for name, bridge in world.bridges.items() if bridge.packets}
    assert asked == {"s1": [(request, PORTS["s1"].index("s1-host") + 1)]}


@pytest.mark.parametrize("target", [USER[0], SERVER[0]])
def test_gratuitous_arp_and_replies_are_not_answered(target):
    world = World()
    kind = frames.ARP_REQUEST if target == USER[0] else frames.ARP_REPLY
    world.comes("ap", "ap-host", frames.arp(kind, USER[1], USER[0], SERVER[1], target))
    assert not any(bridge.packets for bridge in world.bridges.values())


def test_the_ports_of_a_switch_are_read_once_until_it_says_that_they_changed():
    world = World()
    ports, bridge = world.forwarding.switches.ports, world.bridges["ap"]
    known = ports("ap")
    assert known == {name: number for number, name in enumerate(PORTS["ap"], 1)}
    bridge.ports[4] = SimpleNamespace(name="new-host", port_no=4)
    bridge.ports[0xFFFE] = SimpleNamespace(name="ap", port_no=0xFFFE)  # the switch itself
    assert ports("ap") is known
    changed = SimpleNamespace(dpid=DPID["ap"], added=True, deleted=False)
    bridge.entries.clear()
    world.forwarding._handle_PortStatus(changed)
    assert ports("ap") == known | {"new-host": 4}
    assert bridge.entries == [(0, 210)] * 2  # the SYN entries of both hosts


def test_a_link_can_fail_while_a_switch_at_its_end_is_away():
    world = World()
    for port in range(20):
        world.comes("ap", "ap-host", tcp(SYN, port))
    away = world.bridges.pop("up")
    world.forwarding._handle_ConnectionDown(SimpleNamespace(dpid=DPID["up"]))
    away.messages.clear()
    assert world.forwarding.set_link("s1up", up=False) > 0
    assert (3, 0) in world.bridges["s1"].entries
    assert away.messages == []


def test_a_station_that_sends_from_another_place_takes_its_flows_along():
    world = World(ue1=False)
    lost = frames.arp(frames.ARP_REQUEST, USER[1], "10.1.0.7", "", SERVER[0])
    world.comes("ap", "ap-host", lost)
    moving = Flow("10.1.0.7", SERVER[0], TCP, 40000, 5001)
    macs = (USER[1], SERVER[1])
    world.comes("ap", "ap-host", segment(moving, macs, SYN))
    world.bridges["low"].ports[3] = SimpleNamespace(name="low-host", port_no=3)
    world.forwarding._handle_PortStatus(
        SimpleNamespace(dpid=DPID["low"], added=True, deleted=False)
    )
    assert world.forwarding._router.path(moving)[0] == "ap"
    for bridge in world.bridges.values():
        bridge.entries.clear()
    data = segment(moving, macs, ACK)
    ofp = SimpleNamespace(reason=OFPR_ACTION)
    event = SimpleNamespace(dpid=DPID["low"], port=3, data=data, ofp=ofp)
    world.forwarding._handle_PacketIn(event)
    assert world.forwarding._router.path(moving) == ("low", "s1")
    assert world.forwarding._router.path(moving.back()) == ("s1", "low")
    assert (2, 110) in world.bridges["low"].entries


def test_old_entries_stay_until_every_packet_has_left_the_old_path(clock):
    world, old, new = one_flow()
    pinned(world, new)
    clock[0] += 2.9
    world.forwarding.tick()
    assert world.bridges[old].entries == []
    clock[0] += 0.1
    world.forwarding.tick()
    assert world.bridges[old].entries == [(4, 110)] * 2
    world.forwarding.tick()
    assert len(world.bridges[old].entries) == 2


def test_entries_are_written_again_only_after_they_had_time_to_take_effect(clock):
    world = World()
    written = []
    for passed_s in (0, 0.4, 0.1, 0.4, 0.1):
        clock[0] += passed_s
        world.comes("ap", "ap-host", tcp(ACK))
        written.append(world.entries["ap"])
    assert written == [2, 2, 4, 4, 6]


def test_a_packet_without_a_path_is_dropped_for_one_second():
    world = World()
    for link in ("s1up", "s1low"):
        world.forwarding.set_link(link, up=False)
    world.bridges["ap"].messages.clear()
    world.comes("ap", "ap-host", tcp(ACK))
    (entry,) = world.bridges["ap"].messages
    _, command, idle_s, hard_s, priority = struct.unpack_from("!QHHHH", entry, 16)
    assert (command, idle_s, hard_s, priority) == (0x100, 0, 1, 110)
    match = nicira.match_flow(Flow(USER[0], SERVER[0], TCP, 40000, 5001))
    assert entry[48:] == match + bytes(-len(match) % 8)  # and no action


def test_the_latest_requests_for_an_address_are_answered(monkeypatch):
    monkeypatch.setattr(forwarding, "MOST_WAITING", 2)
    world = World()
    wanted = [f"10.9.0.{n}" for n in range(3)]
    for address in wanted:
        request = frames.arp(frames.ARP_REQUEST, USER[1], USER[0], "", address)
        world.comes("ap", "ap-host", request)
    for address in wanted:
        reply = frames.arp(frames.ARP_REPLY, SERVER[1], address, USER[1], USER[0])
        world.comes("s1", "s1-host", reply)
    answers = [frames.parse(data).payload for data, _ in world.bridges["ap"].packets]
    assert [each.sender for each in answers] == wanted[1:]


def test_the_purpose_of_the_latest_messages_is_known(monkeypatch):
    monkeypatch.setattr(sent_messages, "MOST_KEPT", 2)
    world = World()
    world.comes("ap", "ap-host", tcp(SYN))
    for xid in world.bridges["ap"].xids:
        world.refuses("ap", xid, 3, 0)
    assert "carry out an OpenFlow message" in world.warnings[0]
    assert "send a packet" in world.warnings[-1]


def test_a_repeated_request_for_an_address_is_answered_once_for_each_host():
    world = World()
    asking = [USER, ("10.1.0.7", "02:00:00:00:00:07")]
    for address, mac in asking * 3:
        request = frames.arp(frames.ARP_REQUEST, mac, address, "", "10.9.0.1")
        world.comes("ap", "ap-host", request)
    reply = frames.arp(frames.ARP_REPLY, SERVER[1], "10.9.0.1", USER[1], USER[0])
    for _ in range(2):
        world.comes("s1", "s1-host", reply)
    answers = [frames.parse(data).payload for data, _ in world.bridges["ap"].packets]
    assert [(each.target, each.target_mac) for each in answers] == asking


def test_a_switch_that_the_topology_file_does_not_name_is_a_warning():
    """Access points of Mininet-WiFi have such datapath IDs."""
    world = World()
    world.forwarding._handle_ConnectionUp(SimpleNamespace(dpid=0x1000000000000001))
    (text,) = [each for each in world.warnings if "topology file" in each]
    assert "1152921504606846977 (hexadecimal 1000000000000001)" in text
