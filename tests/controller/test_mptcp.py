"""Multipath TCP options and frames are read from raw bytes."""

from __future__ import annotations

import struct
from socket import inet_aton

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.paths import Flow
from controller.pox_ext import frames
from controller.pox_ext.frames import ACK, SYN, Arp, Capable, Ip, Join, Other, Prio

KEY, PEER = bytes(range(1, 9)), bytes(range(11, 19))
TIMESTAMP = b"\x01\x01\x08\x0a" + bytes(8)


def option(subtype: int, low: int, rest: bytes) -> bytes:
    return bytes([30, 3 + len(rest), subtype << 4 | low]) + rest


def segment(flags: int, options: bytes, vlan: bool = False, payload: bytes = b"") -> bytes:
    options += b"\1" * (-len(options) % 4)
    tcp = (
        struct.pack(
            "!HHLLBBHHH", 40112, 5001, 1, 2, (20 + len(options)) // 4 << 4, flags, 100, 0, 0
        )
        + options
        + payload
    )
    ip = struct.pack(
        "!BBHHHBBH4s4s",
        0x45,
        0,
        20 + len(tcp),
        0,
        0,
        64,
        6,
        0,
        inet_aton("10.1.0.3"),
        inet_aton("10.0.0.1"),
    )
    tag = struct.pack("!HH", 0x8100, 7) if vlan else b""
    return b"\2\0\0\0\0\1" + b"\2\0\0\0\0\2" + tag + b"\x08\x00" + ip + tcp


@pytest.mark.parametrize(
    ("raw", "meaning"),
    [
        (option(0, 1, b"\x01"), Capable(1, 1)),
        (option(0, 1, b"\x01" + KEY), Capable(1, 1, KEY)),
        (option(0, 1, b"\x01" + KEY + PEER), Capable(1, 1, KEY, PEER)),
        (option(0, 1, b"\x01" + KEY + PEER + b"\x05\x78"), Capable(1, 1, KEY, PEER, 1400)),
        (
            option(0, 1, b"\x81" + KEY + PEER + b"\x05\x78\xab\xcd"),
            Capable(1, 0x81, KEY, PEER, 1400),
        ),
        (option(0, 0, b"\x81" + KEY), Capable(0, 0x81, KEY)),
        (option(0, 0, b"\x81" + KEY + PEER), Capable(0, 0x81, KEY, PEER)),
        (option(1, 0, b"\x02\x3f\x2a\x91\xc0" + bytes(4)), Join("syn", False, 2, "3f2a91c0")),
        (option(1, 1, b"\x02\x3f\x2a\x91\xc0" + bytes(4)), Join("syn", True, 2, "3f2a91c0")),
        (option(1, 1, b"\x03" + bytes(12)), Join("syn_ack", True, 3)),
        (option(1, 0, bytes(21)), Join("ack", False, 0)),
        (option(5, 1, b""), Prio(True)),
        (option(5, 0, b"\x04"), Prio(False, 4)),
        (option(2, 0, bytes(17)), Other("DSS")),
        (option(3, 0, bytes(13)), Other("ADD_ADDR")),
        (option(7, 0, bytes(9)), Other("MP_FASTCLOSE")),
    ],
)
def test_every_option_of_both_versions_is_read(raw, meaning):
    assert frames.mptcp_option(TIMESTAMP + raw) == meaning


def test_priority_is_found_behind_data_sequence_signals():
    assert frames.mptcp_option(option(2, 0, bytes(17)) + option(5, 1, b"")) == Prio(True)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\x1e",
        b"\x1e\x00\x00",
        b"\x1e\x02",
        option(0, 1, b"\x01\x02"),
        option(0, 2, b"\x01"),
        option(15, 0, b""),
    ],
)
def test_unknown_options_are_ignored(raw):
    assert frames.mptcp_option(raw) is None


def test_tokens_are_the_first_32_bits_of_the_hash_of_the_key():
    assert frames.token(b"\0" * 8, 1) == "af5570f5"
    assert frames.token(b"\0" * 8, 0) == "05fe405753166f125559e7c9ac558654f107c7e9"[:8]


@given(st.binary(max_size=60))
def test_no_options_raise(data):
    frames.mptcp_option(data)


@given(st.binary(max_size=120))
def test_no_frame_raises(data):
    frames.parse(data)


@given(st.integers(0, 200), st.integers(0, 255), st.integers(0, 130))
def test_no_damaged_segment_raises(at, value, length):
    data = bytearray(segment(SYN, option(0, 1, b"\x01" + KEY)))
    data[at % len(data)] = value
    frame = frames.parse(bytes(data[:length]))
    if frame is not None and isinstance(frame.payload, Ip):
        frames.mptcp_option(frame.payload.options)


@pytest.mark.parametrize("vlan", [False, True])
def test_ports_and_options_of_a_version_1_syn_are_read(vlan):
    frame = frames.parse(segment(SYN, option(0, 1, b"\x01"), vlan))
    assert frame.payload.flow == Flow("10.1.0.3", "10.0.0.1", 6, 40112, 5001)
    assert frame.payload.is_syn
    assert frames.mptcp_option(frame.payload.options) == Capable(1, 1)


def test_payload_is_not_read_as_an_option():
    frame = frames.parse(segment(ACK, b"", payload=option(0, 1, b"\x01" + KEY)))
    assert not frame.payload.is_syn
    assert frame.payload.options == b""


def test_an_encoded_arp_frame_is_read_back():
    reply = frames.arp(
        frames.ARP_REPLY, "02:00:00:00:00:01", "10.0.0.1", "02:00:00:00:00:02", "10.1.0.2"
    )
    assert frames.parse(reply).payload == Arp(
        2, "02:00:00:00:00:01", "10.0.0.1", "02:00:00:00:00:02", "10.1.0.2"
    )
    request = frames.parse(
        frames.arp(frames.ARP_REQUEST, "02:00:00:00:00:02", "10.1.0.2", "", "10.0.0.1")
    )
    assert request.destination_mac == frames.BROADCAST


MACS, TO_IP = b"\2\0\0\0\0\1" + b"\2\0\0\0\0\2", b"\x08\x00"
UDP = Flow("10.1.0.3", "10.0.0.1", 17)


def ip(protocol: int, data: bytes, fragment: int = 0, options: bytes = b"") -> bytes:
    ends = inet_aton(UDP.source) + inet_aton(UDP.destination)
    header = 20 + len(options)
    fixed = (0x40 | header // 4, 0, header + len(data), 0, fragment, 64, protocol, 0)
    return struct.pack("!BBHHHBBH", *fixed) + ends + options + data


def test_other_protocols_and_later_fragments_are_known_by_their_addresses_alone():
    assert frames.parse(MACS + TO_IP + ip(17, bytes(8))).payload == Ip(UDP)
    assert frames.parse(MACS + TO_IP + ip(6, bytes(8), fragment=1)).payload == Ip(
        Flow(UDP.source, UDP.destination, 6)
    )
    assert (Ip(UDP).flags, Ip(UDP).options) == (0, b"")


def test_a_first_fragment_and_a_header_with_options_are_read_whole():
    tcp = segment(SYN, b"")[34:]
    for fragment, options in ((0x2000, b""), (0x4000, bytes(8))):
        packet = frames.parse(MACS + TO_IP + ip(6, tcp, fragment, options)).payload
        assert (packet.flow.source_port, packet.flags, packet.options) == (40112, SYN, b"")


def test_the_padding_of_a_short_frame_is_no_option():
    frame = frames.parse(segment(ACK, b"") + option(0, 1, b"\x01" + KEY))
    assert frame.payload.options == b""


def test_addresses_are_read_through_any_number_of_vlan_tags():
    tags = b"\x88\xa8\0\7" + b"\x81\0\0\7"
    frame = frames.parse(MACS + tags + TO_IP + ip(17, b""))
    assert (frame.destination_mac, frame.source_mac) == ("02:00:00:00:00:01", "02:00:00:00:00:02")
    assert frame.payload == Ip(UDP)


@pytest.mark.parametrize(
    "data",
    [
        b"\x86\xdd" + bytes(40),  # IPv6
        TO_IP + b"\x65" + ip(17, b"")[1:],
        TO_IP + b"\x44" + ip(17, b"")[1:],  # a header of 16 bytes
        TO_IP + ip(17, b"")[:2] + b"\0\x13" + ip(17, b"")[4:],  # 19 bytes in all
        TO_IP + ip(6, segment(SYN, b"")[34:46] + b"\x40" + bytes(7)),  # a TCP header of 16 bytes
        TO_IP + ip(6, segment(SYN, b"")[34:46] + b"\x60" + bytes(7)),  # 24 bytes, of which 20 came
        b"\x08\x06\0\2" + bytes(26),  # ARP, not of Ethernet
    ],
)
def test_what_is_neither_arp_nor_ip_version_4_has_no_payload(data):
    assert frames.parse(MACS + data).payload is None


def test_arp_goes_to_all_as_a_request_and_to_the_asking_host_as_a_reply():
    asking, asked = ("02:00:00:00:00:02", "10.1.0.2"), ("02:00:00:00:00:01", "10.0.0.1")
    request = frames.parse(frames.arp(frames.ARP_REQUEST, *asking, "", asked[1]))
    reply = frames.parse(frames.arp(frames.ARP_REPLY, *asked, *asking))
    assert (request.destination_mac, request.source_mac) == (frames.BROADCAST, asking[0])
    assert request.payload == Arp(1, *asking, "00:00:00:00:00:00", asked[1])
    assert (reply.destination_mac, reply.source_mac) == (asking[0], asked[0])
