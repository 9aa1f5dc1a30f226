"""OpenFlow messages have the specified layout, and replies of a switch are read."""

from __future__ import annotations

import importlib
import struct

import pytest

from controller.paths import Flow
from controller.pox_ext import meters, nicira, sent_messages
from controller.pox_ext import openflow13_messages as messages
from controller.pox_ext.counters import CounterRates
from controller.pox_ext.meters import Table0

SECOND = 1_000_000_000
A, B = messages.Data("10.1.0.1"), messages.Data("10.1.0.2")
UP = messages.Data("10.1.0.1", "up")


def kinds(sent: list[bytes]) -> list[str]:
    names = {messages.FLOW_MOD: "flow", messages.METER_MOD: "meter"}
    return [
        f"{names[each[1]]} {each[8 + 17 if each[1] == messages.FLOW_MOD else 8 + 1]}"
        for each in sent
    ]


def test_a_meter_is_added_before_and_deleted_after_the_entries_that_name_it():
    counted = Table0(frozenset({A, B}))
    metered = Table0(frozenset({A, B}), frozenset({A}), 100_000)
    assert kinds(meters.changes(counted, metered)) == ["meter 0", "flow 0"]
    assert kinds(meters.changes(metered, counted)) == ["flow 0", "meter 2"]


def test_messages_to_table_0_are_described_in_words():
    metered = Table0(frozenset({A, UP}), frozenset({UP}), 100_000)
    changes = [
        *meters.changes(Table0(default=False), metered),
        *meters.changes(metered, Table0(frozenset({A}))),
        *meters.changes(metered, Table0(metered.counted, metered.metered, 200_000)),
    ]
    assert [meters.described(each) for each in changes] == [
        "write the entry of table 0 for all other packets",
        "add its meter 1 with 100 kb/s",
        "write the entry of table 0 for data down of 10.1.0.1",
        "write the entry of table 0 for data up of 10.1.0.1",
        "delete the entry of table 0 for data up of 10.1.0.1",
        "delete its meter 1",
        "modify its meter 1 with 200 kb/s",
    ]


def test_tier_1_passes_a_meter_of_its_own_unless_it_passes_that_of_tier_2():
    both = Table0(
        frozenset({A}), frozenset({A}), 100_000, limited=frozenset({A, B}), tier1_bps=10**6
    )
    assert (both.meter(A), both.meter(B), both.meter(UP)) == (1, 2, None)
    sent = meters.changes(Table0(frozenset({A})), both)
    assert kinds(sent) == ["meter 0", "meter 0", "flow 0", "flow 0"]
    assert meters.described(sent[1]) == "add its meter 2 with 1000 kb/s"
    withdrawn = Table0(frozenset({A}), frozenset({A}), 100_000)
    assert [meters.described(each) for each in meters.changes(both, withdrawn)] == [
        "delete the entry of table 0 for data down of 10.1.0.2",
        "delete its meter 2",
    ]
    assert not meters.resets_counters(both, withdrawn)


def test_only_differences_are_sent():
    metered = Table0(frozenset({A}), frozenset({A}), 100_000)
    assert meters.changes(metered, metered) == []
    assert meters.changes(metered, Table0(frozenset({A}), frozenset({A}), 100_400)) == []
    assert kinds(meters.changes(metered, Table0(frozenset({A}), frozenset({A}), 1_000_000))) == [
        "meter 1"
    ]
    assert kinds(meters.changes(Table0(frozenset({A}), default=False), Table0(frozenset({B})))) == [
        "flow 0",
        "flow 0",
        "flow 4",
    ]


@pytest.mark.parametrize(
    ("rate_bps", "burst"), [(100_000, 122), (5_000_000, 122), (20_000_000, 400)]
)
def test_the_burst_is_ten_frames_or_20_ms(rate_bps, burst):
    assert messages.burst_kbit(rate_bps) == burst


def test_a_meter_mod_has_the_layout_of_the_specification():
    assert (
        messages.meter_mod(messages.METER_ADD, 100_000).hex(" ", 4)
        == "041d0020 00000000 0000000d 00000001 00010010 00000064 0000007a 00000000"
    )


@pytest.mark.parametrize("data", [A, UP])
def test_a_flow_mod_is_read_back_from_flow_statistics(data):
    message = messages.send_to_paths(data, messages.TIER_2_METER)
    match_and_instructions = message[48:]
    entry = (
        struct.pack(
            "!HBxLLHHHH4xQQQ", 48 + len(match_and_instructions), 0, 1, 2, 100, 0, 0, 0, 7, 3, 4500
        )
        + match_and_instructions
    )
    (read,) = messages.flows(entry)
    assert (read.data, read.meter, read.cookie, read.packets, read.bytes, read.priority) == (
        data,
        messages.TIER_2_METER,
        7,
        3,
        4500,
        100,
    )
    assert messages.flow_counts(entry) == [messages.FlowCount(7, 3, 4500)]
    assert meters.table0_of([read], 100_000) == Table0(
        frozenset({data}), frozenset({data}), 100_000, default=False
    )


def test_a_station_takes_its_meter_along_only_if_the_new_access_point_has_one():
    old = Table0(frozenset({A, B}), frozenset({A, B}), 100_000)
    with_meter, without = Table0(frozenset(), frozenset(), 200_000), Table0()
    left, come = meters.handed_over(old, with_meter, {A.address})
    assert (left.metered, come.metered) == ({B}, {A})
    assert (left.rate_bps, come.rate_bps) == (100_000, 200_000)
    left, come = meters.handed_over(old, without, {A.address})
    assert (left.metered, come.metered) == ({B}, frozenset())


def test_an_upload_is_matched_by_its_source_and_a_download_by_its_destination():
    both = Table0(frozenset({A, UP}), frozenset({UP}), 100_000)
    assert kinds(meters.changes(Table0(), both)) == ["meter 0", "flow 0", "flow 0"]
    down, up = (messages.send_to_paths(each, None) for each in (A, UP))
    assert bytes.fromhex("80001804 0a010001") in down
    assert bytes.fromhex("80001604 0a010001") in up


def test_meter_statistics_replies_are_read():
    stats = struct.pack("!LH6xLQQLL", 1, 56, 1, 690, 1_039_260, 6, 0) + struct.pack(
        "!QQ", 391, 590_390
    )
    assert messages.meter_count(stats) == messages.MeterCount(1_039_260, 590_390, 6_000_000_000)
    assert messages.meter_count(stats).passed_bytes == 448_870
    assert messages.meter_count(b"") is None
    assert (
        messages.meter_rate_bps(
            messages.meter_mod(0, 2_000_000)[8:].replace(b"\0\0\0\x0d", b"\0\x18\0\x0d", 1)
        )
        == 2_000_000
    )
    assert messages.meter_rate_bps(b"") is None


@pytest.mark.parametrize("body", [b"\0", bytes(3), bytes(50), b"\xff" * 60])
def test_a_truncated_reply_has_no_entries(body):
    assert messages.meter_count(body) is None
    assert messages.meter_rate_bps(body) is None
    assert messages.ports(body) == []
    assert messages.flows(body[:3]) == []
    assert messages.flow_counts(body) == []


def test_a_path_entry_has_niciras_layout():
    flow = Flow("10.0.0.1", "10.1.0.1", 6, 5001, 40112)
    message = nicira.flow_mod(
        1, 110, nicira.match_flow(flow), [nicira.output(2)], cookie=5, idle_s=600
    )
    version, kind, length, _, vendor, subtype, cookie, command, idle, hard, priority = (
        struct.unpack_from("!BBHLLLQHHHH", message)
    )
    assert (version, kind, length, vendor, subtype) == (1, 4, len(message), 0x2320, 13)
    assert (cookie, command, idle, hard, priority) == (5, 1 << 8, 600, 0, 110)
    match = (
        "00000602 0800 00000c01 06 00000e04 0a000001 00001004 0a010001 00001202 1389 00001402 9cb0"
    )
    assert match.replace(" ", "") in message.hex()
    assert len(message) % 8 == 0
    assert message.endswith(struct.pack("!HHHH", 0, 8, 2, 0xFFFF))


def test_a_syn_is_matched_by_the_absence_of_ack():
    assert nicira.no_ack().hex() == "00014504" + "0000" + "0010"


def test_a_copy_to_the_controller_has_a_reason_of_its_own():
    kind, length, vendor, subtype, size, controller, reason = struct.unpack(
        "!HHLHHHBx", nicira.copy_to_controller()
    )
    assert (kind, length, vendor, subtype) == (0xFFFF, 16, 0x2320, 20)  # NXAST_CONTROLLER
    assert (size, controller, reason) == (0xFFFF, 0, 0)  # whole packets, OFPR_NO_MATCH


def test_a_packet_goes_back_by_the_port_it_came_from():
    assert nicira.output(3, ingress_port=3)[4:6] == b"\xff\xf8"
    assert nicira.output(3, ingress_port=2)[4:6] == b"\x00\x03"


def test_rates_continue_when_a_counter_is_reset():
    rates = CounterRates()
    assert rates.rate_bps("x", 0, 1000) is None
    assert rates.rate_bps("x", SECOND, 2000) == 8000
    assert rates.rate_bps("x", 2 * SECOND, 500) == 4000
    rates.restart("x", 3 * SECOND, 0)
    assert rates.rate_bps("x", 5 * SECOND, 1000) == 4000
    rates.forget("x")
    assert rates.rate_bps("x", 6 * SECOND, 1000) is None


def test_a_reading_that_comes_too_soon_is_ignored():
    rates = CounterRates()
    assert rates.rate_bps("x", 0, 0, SECOND) is None
    assert rates.rate_bps("x", SECOND // 2, 5000, SECOND) is None
    assert rates.rate_bps("x", SECOND, 1000, SECOND) == 8000
    assert rates.rate_bps("x", 0, 1000, SECOND) is None  # a clock that was reset is a first reading
    assert rates.rate_bps("x", SECOND, 2000, SECOND) == 8000


def test_an_independent_decoder_reads_the_same():
    parser = pytest.importorskip("os_ken.ofproto.ofproto_v1_3_parser")
    import os_ken.ofproto.ofproto_v1_3 as ofproto

    class Datapath:
        ofproto_parser = parser

    Datapath.ofproto = ofproto
    match = parser.OFPMatch(eth_type=0x0800, ip_proto=6, ipv4_dst=A.address)
    instructions = [parser.OFPInstructionMeter(1), parser.OFPInstructionGotoTable(1)]
    flow_mod = parser.OFPFlowMod(
        Datapath,
        priority=100,
        match=match,
        instructions=instructions,
        out_port=ofproto.OFPP_ANY,
        out_group=ofproto.OFPG_ANY,
    )
    band = [parser.OFPMeterBandDrop(rate=2000, burst_size=122)]
    flags = ofproto.OFPMF_KBPS | ofproto.OFPMF_BURST | ofproto.OFPMF_STATS
    meter_mod = parser.OFPMeterMod(
        Datapath, command=ofproto.OFPMC_MODIFY, flags=flags, meter_id=1, bands=band
    )
    silence = parser.OFPSetAsync(Datapath, [0, 0], [0, 0], [0, 0])
    ours = (
        messages.send_to_paths(A, messages.TIER_2_METER),
        messages.meter_mod(messages.METER_MODIFY, 2_000_000),
        messages.disable_async(),
    )
    for message, mine in zip((flow_mod, meter_mod, silence), ours, strict=True):
        message.set_xid(0)
        message.serialize()
        assert bytes(message.buf) == mine


def test_table_numbers_in_entries_are_switched_on_with_niciras_message():
    assert nicira.enable_table_ids().hex(" ", 4) == (
        "01040018 00000000 00002320 0000000f 01000000 00000000"
    )


@pytest.mark.parametrize(
    ("version", "names"),
    [
        ("ofproto_v1_0", sent_messages.OPENFLOW10_ERRORS),
        ("ofproto_v1_3", sent_messages.OPENFLOW13_ERRORS),
    ],
)
def test_errors_have_the_names_of_the_specification(version, names):
    pytest.importorskip("os_ken")
    ofproto = importlib.import_module(f"os_ken.ofproto.{version}")
    assert {number: getattr(ofproto, f"OFPET_{name}") for number, name in names.items()} == {
        number: number for number in names
    }
