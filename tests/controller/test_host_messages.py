"""Commands to hosts and reports of hosts are read as they were encoded; anything else is
refused."""

from __future__ import annotations

import json
import random

import pytest

from controller import agent_messages, datagrams, host_messages
from controller.errors import MessageRefused
from controller.host_messages import HostCommand, HostReport, SubflowChange, SubflowState

KEY = "secret"
ORDER = HostCommand(
    17,
    "ue3",
    "13b63c69",
    (
        SubflowChange("10.0.0.1:5001", "10.1.0.3:40112", True, None),
        SubflowChange("10.0.0.1:5001", "10.2.0.3:40112", False, 4.5),
    ),
)
REPORT = HostReport(
    3,
    "srv1",
    (SubflowState("13b63c69", "10.0.0.1:5001", "10.1.0.3:40112", False, 4.5, 12),),
    {"10.1.0.3": 0.01},
)


def changed(message, **changes):
    """A message's datagram with some fields replaced."""
    key, text = host_messages.encode(message, KEY).split(b"\n")
    return key + b"\n" + json.dumps(json.loads(text) | changes).encode()


def test_encoded_messages_are_read():
    assert host_messages.read_command(host_messages.encode(ORDER, KEY), KEY) == ORDER
    assert host_messages.read_report(host_messages.encode(REPORT, KEY), KEY) == REPORT


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"key": KEY}, "its fields: not"),
        ({"v": 1}, "v: not 2"),
        ({"seq": 10**400}, "too many digits"),
        ({"host": "\ud800"}, "UTF-8"),
        ({"seq": -1}, "seq: no whole number"),
        ({"seq": True}, "seq: no whole number"),
        ({"seq": 1e9}, "seq: no whole number"),
        ({"token": ""}, "token: no text"),
        ({"more": 1}, "its fields: not"),
        ({"subflows": {}}, "subflows: no list"),
        ({"subflows": [1]}, "subflows: the whole message: not"),
        (
            {"subflows": [{"source": "a", "destination": "b", "backup": 1, "expected_mbps": None}]},
            "backup: neither",
        ),
        (
            {
                "subflows": [
                    {"source": "a", "destination": "b", "backup": True, "expected_mbps": -1}
                ]
            },
            "expected_mbps: no rate",
        ),
        (
            {
                "subflows": [
                    {
                        "source": "a",
                        "destination": "b",
                        "backup": True,
                        "expected_mbps": float("nan"),
                    }
                ]
            },
            "not a finite number",
        ),
        ({"subflows": [{}] * 257}, "subflows: no list"),
    ],
)
def test_an_invalid_command_is_refused_with_the_reason(changes, why):
    with pytest.raises(MessageRefused, match=why):
        host_messages.read_command(changed(ORDER, **changes), KEY)


@pytest.mark.parametrize(
    "changes", [{"loss": {"a": 2}}, {"loss": [1]}, {"loss": {"a": "0"}}, {"subflows": None}]
)
def test_an_invalid_report_is_refused(changes):
    with pytest.raises(MessageRefused, match="read the report of a host"):
        host_messages.read_report(changed(REPORT, **changes), KEY)


@pytest.mark.parametrize(
    "read", [host_messages.read_command, host_messages.read_report, agent_messages.read_ap_report]
)
@pytest.mark.parametrize(
    "key", ["", "other", "secret ", "secre", "\ud800".encode("utf-8", "surrogatepass")]
)
def test_the_key_is_checked_before_anything_else(read, key):
    sent = key if isinstance(key, bytes) else key.encode()
    for text in (b"{}", b"[" * 50_000, b'{"key":"\\ud800"}', b""):
        for datagram in (sent + b"\n" + text, text):
            with pytest.raises(MessageRefused, match="key: not this run's"):
                read(datagram, KEY)


@pytest.mark.parametrize("read", [host_messages.read_command, host_messages.read_report])
def test_without_a_key_no_datagram_is_accepted(read):
    with pytest.raises(MessageRefused, match="key: not this run's"):
        read(host_messages.encode(ORDER, ""), "")


@pytest.mark.parametrize("read", [host_messages.read_command, host_messages.read_report])
def test_invalid_datagrams_are_refused(read):
    chance = random.Random(1)
    whole = [
        host_messages.encode(ORDER, KEY),
        host_messages.encode(REPORT, KEY),
        b"[" * 100_000,
        b"",
        b"null",
        b'"x"',
    ]
    for _ in range(3000):
        datagram = bytearray(chance.choice(whole))
        for _ in range(chance.randrange(1, 6)):
            if datagram:
                at = chance.randrange(len(datagram))
                datagram[at : at + chance.randrange(3)] = chance.randbytes(chance.randrange(3))
        try:
            read(bytes(datagram), KEY)
        except MessageRefused:
            continue


@pytest.mark.parametrize(
    ("datagram", "key"),
    [
        (b"secret\n{}", ""),
        (b"\n{}", ""),
        (b"secre\n{}", KEY),
        (b"secret2\n{}", KEY),
        (b"Secret\n{}", KEY),
        (b"secret", KEY),
        (b"{}", KEY),
        (b"", KEY),
        (b"secret\n" + bytes(datagrams.MOST_BYTES), KEY),
    ],
)
def test_a_datagram_without_the_key_or_above_the_limit_is_not_read(datagram, key):
    with pytest.raises(MessageRefused, match="read it: key: not this run's"):
        datagrams.content(datagram, key, "read it")


def test_the_largest_datagram_is_read():
    text = b"x" * (65_507 - len("secret\n"))
    assert datagrams.content(b"secret\n" + text, KEY, "read it") == text
    assert datagrams.unseal(datagrams.seal({"a": "b\nc"}, KEY), KEY, "") == {"a": "b\nc"}
