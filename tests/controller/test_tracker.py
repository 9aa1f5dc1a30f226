"""Connections and subflows are found from SYN and SYN/ACK packets."""

from __future__ import annotations

from controller.paths import Flow
from controller.pox_ext import tracker as tracker_module
from controller.pox_ext.frames import ACK, SYN, Ip, token
from controller.pox_ext.tracker import Fallback, Joined, Tracker, plain_name

KEY = bytes(range(8))
TOKEN = token(KEY, 1)
FIRST, SECOND = (
    Flow("10.2.0.3", "10.0.0.1", 6, 40000, 5001),
    Flow("10.1.0.3", "10.0.0.1", 6, 40001, 5001),
)
CAPABLE_SYN, CAPABLE_SYN_ACK = b"\x1e\x04\x01\x01", b"\x1e\x0c\x01\x01" + KEY
JOIN_SYN, JOIN_SYN_ACK = (
    b"\x1e\x0c\x10\x02" + bytes.fromhex(TOKEN) + bytes(4),
    b"\x1e\x10\x10\x00" + bytes(12),
)


def handshake(tracker: Tracker, flow: Flow, syn: bytes, syn_ack: bytes):
    assert tracker.handle_syn(Ip(flow, SYN, syn)) is None
    return tracker.handle_syn(Ip(flow.back(), SYN | ACK, syn_ack))


def test_a_second_subflow_joins_by_the_token_of_the_servers_key():
    tracker = Tracker()
    assert handshake(tracker, FIRST, CAPABLE_SYN, CAPABLE_SYN_ACK) == Joined(TOKEN, 1, FIRST)
    assert handshake(tracker, SECOND, JOIN_SYN, JOIN_SYN_ACK) == Joined(TOKEN, 2, SECOND)
    assert tracker.subflows() == [Joined(TOKEN, 1, FIRST), Joined(TOKEN, 2, SECOND)]


def test_a_retransmitted_syn_ack_is_no_new_subflow():
    tracker = Tracker()
    handshake(tracker, FIRST, CAPABLE_SYN, CAPABLE_SYN_ACK)
    assert tracker.handle_syn(Ip(FIRST.back(), SYN | ACK, CAPABLE_SYN_ACK)) is None
    assert len(tracker.subflows()) == 1


def test_the_backup_flag_of_a_join_is_read():
    tracker = Tracker()
    syn = bytes([JOIN_SYN[0], JOIN_SYN[1], JOIN_SYN[2] | 1]) + JOIN_SYN[3:]
    assert handshake(tracker, SECOND, syn, JOIN_SYN_ACK).backup


def test_a_connection_without_mptcp_has_one_subflow_and_a_name_of_its_own():
    tracker = Tracker()
    plain = handshake(tracker, FIRST, b"", b"")
    assert plain == Joined(plain_name(FIRST), 1, FIRST)
    assert handshake(tracker, FIRST, b"", b"") is None  # retransmitted
    assert handshake(tracker, SECOND, b"", b"").connection != plain.connection
    tracker.remove(plain)
    assert handshake(tracker, FIRST, b"", b"") == plain


def test_a_syn_ack_without_option_is_a_fallback_to_plain_tcp():
    tracker = Tracker()
    plain = Joined(plain_name(FIRST), 1, FIRST)
    assert handshake(tracker, FIRST, CAPABLE_SYN, b"") == Fallback(plain)
    assert tracker.subflows() == [plain]
    assert tracker.handle_syn(Ip(FIRST.back(), SYN | ACK, b"")) is None


def test_a_refused_join_is_no_connection():
    tracker = Tracker()
    assert handshake(tracker, SECOND, JOIN_SYN, b"") is None
    assert tracker.subflows() == []


def test_a_restored_subflow_counts_when_the_next_is_numbered():
    tracker = Tracker()
    tracker.restore(Joined(TOKEN, 1, FIRST))
    assert handshake(tracker, SECOND, JOIN_SYN, JOIN_SYN_ACK) == Joined(TOKEN, 2, SECOND)


def test_the_number_of_a_removed_subflow_is_not_used_again_while_its_connection_exists():
    tracker = Tracker()
    first = handshake(tracker, FIRST, CAPABLE_SYN, CAPABLE_SYN_ACK)
    second = handshake(tracker, SECOND, JOIN_SYN, JOIN_SYN_ACK)
    tracker.remove(second)
    assert tracker.subflows() == [first]
    assert tracker.find(TOKEN, 2) is None
    assert handshake(tracker, SECOND, JOIN_SYN, JOIN_SYN_ACK) == Joined(TOKEN, 3, SECOND)
    for each in tracker.subflows():
        tracker.remove(each)
    assert tracker.subflows() == []
    assert handshake(tracker, FIRST, CAPABLE_SYN, CAPABLE_SYN_ACK) == Joined(TOKEN, 1, FIRST)


def test_a_subflow_reported_by_its_host_is_adopted():
    tracker = Tracker()
    assert tracker.adopt(TOKEN, FIRST) == Joined(TOKEN, 1, FIRST)
    assert tracker.adopt(TOKEN, SECOND) == Joined(TOKEN, 2, SECOND)


def test_a_reported_connection_without_mptcp_gets_the_name_that_its_handshake_would_give():
    assert Tracker().adopt(None, FIRST) == handshake(Tracker(), FIRST, b"", b"")


def test_a_packet_without_syn_is_ignored():
    assert Tracker().handle_syn(Ip(FIRST, ACK, CAPABLE_SYN_ACK)) is None


def test_the_latest_connections_and_requests_are_kept(monkeypatch):
    monkeypatch.setattr(tracker_module, "MOST_CONNECTIONS", 3)
    monkeypatch.setattr(tracker_module, "MOST_REQUESTS", 2)
    tracker = Tracker()
    flows = [Flow("10.2.0.3", "10.0.0.1", 6, port, 5001) for port in range(5)]
    for flow in flows:
        handshake(tracker, flow, b"", b"")
    assert [each.flow for each in tracker.subflows()] == flows[2:]
    waiting = [Flow("10.2.0.4", "10.0.0.1", 6, port, 5001) for port in range(3)]
    for flow in waiting:
        tracker.handle_syn(Ip(flow, SYN))
    answered = [tracker.handle_syn(Ip(flow.back(), SYN | ACK)) for flow in waiting]
    assert [each is not None for each in answered] == [False, True, True]


def test_only_a_syn_is_tracked():
    tracker = Tracker()
    for flags in (ACK, 0, 0x11):
        assert tracker.handle_syn(Ip(FIRST, flags, CAPABLE_SYN)) is None
    assert tracker.handle_syn(Ip(FIRST.back(), SYN | ACK)) is None
