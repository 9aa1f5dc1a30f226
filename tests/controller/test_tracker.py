"""Connections and subflows out of SYNs and SYN/ACKs."""

from __future__ import annotations

from controller.paths import Flow
from controller.pox_ext.frames import ACK, SYN, Ip
from controller.pox_ext.mptcp import token
from controller.pox_ext.tracker import FellBack, Joined, Tracker

KEY = bytes(range(8))
TOKEN = token(KEY, 1)
FIRST, SECOND = (
    Flow("10.2.0.3", "10.0.0.1", 6, 40000, 5001),
    Flow("10.1.0.3", "10.0.0.1", 6, 40001, 5001),
)
CAPABLE_SYN, CAPABLE_ANSWER = b"\x1e\x04\x01\x01", b"\x1e\x0c\x01\x01" + KEY
JOIN_SYN, JOIN_ANSWER = (
    b"\x1e\x0c\x10\x02" + bytes.fromhex(TOKEN) + bytes(4),
    b"\x1e\x10\x10\x00" + bytes(12),
)


def opened(tracker: Tracker, flow: Flow, asked: bytes, answered: bytes):
    assert tracker.saw(Ip(flow, SYN, asked)) is None
    return tracker.saw(Ip(flow.back(), SYN | ACK, answered))


def test_a_second_subflow_joins_by_the_token_of_the_servers_key():
    tracker = Tracker()
    assert opened(tracker, FIRST, CAPABLE_SYN, CAPABLE_ANSWER) == Joined(TOKEN, 1, FIRST)
    assert opened(tracker, SECOND, JOIN_SYN, JOIN_ANSWER) == Joined(TOKEN, 2, SECOND)
    assert tracker.subflows() == [Joined(TOKEN, 1, FIRST), Joined(TOKEN, 2, SECOND)]


def test_an_answer_sent_again_is_no_new_subflow():
    tracker = Tracker()
    opened(tracker, FIRST, CAPABLE_SYN, CAPABLE_ANSWER)
    assert tracker.saw(Ip(FIRST.back(), SYN | ACK, CAPABLE_ANSWER)) is None
    assert len(tracker.subflows()) == 1


def test_a_backup_subflow_is_seen():
    tracker = Tracker()
    asked = bytes([JOIN_SYN[0], JOIN_SYN[1], JOIN_SYN[2] | 1]) + JOIN_SYN[3:]
    assert opened(tracker, SECOND, asked, JOIN_ANSWER).backup


def test_plain_tcp_is_nothing_and_an_answer_without_option_is_a_fallback():
    tracker = Tracker()
    assert opened(tracker, FIRST, b"", b"") is None
    assert opened(tracker, FIRST, CAPABLE_SYN, b"") == FellBack(FIRST)


def test_a_subflow_seen_before_a_restart_is_counted():
    tracker = Tracker()
    tracker.restore(Joined(TOKEN, 1, FIRST))
    assert opened(tracker, SECOND, JOIN_SYN, JOIN_ANSWER) == Joined(TOKEN, 2, SECOND)


def test_a_subflow_that_is_over_takes_its_number_with_it_and_the_last_one_the_connection():
    tracker = Tracker()
    first = opened(tracker, FIRST, CAPABLE_SYN, CAPABLE_ANSWER)
    second = opened(tracker, SECOND, JOIN_SYN, JOIN_ANSWER)
    tracker.ended(second)
    assert tracker.subflows() == [first]
    assert tracker.find(TOKEN, 2) is None
    assert opened(tracker, SECOND, JOIN_SYN, JOIN_ANSWER) == Joined(TOKEN, 3, SECOND)
    for each in tracker.subflows():
        tracker.ended(each)
    assert tracker.subflows() == []
    assert opened(tracker, FIRST, CAPABLE_SYN, CAPABLE_ANSWER) == Joined(TOKEN, 1, FIRST)


def test_a_subflow_that_its_host_knows_is_taken_over():
    tracker = Tracker()
    assert tracker.adopt(TOKEN, FIRST) == Joined(TOKEN, 1, FIRST)
    assert tracker.adopt(TOKEN, SECOND) == Joined(TOKEN, 2, SECOND)


def test_data_is_not_looked_at():
    assert Tracker().saw(Ip(FIRST, ACK, CAPABLE_ANSWER)) is None
