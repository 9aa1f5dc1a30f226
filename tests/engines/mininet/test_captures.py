"""Captures of a built network: one file for each host."""

import shutil
import time

import pytest
from built_network import built, needs_nodes

from lab.engines.mininet.machine import shell
from lab.engines.mininet.machine.ledger import Ledger
from lab.engines.mininet.traffic.captures import Captured, Captures, _counts, _wait_until_listening
from lab.errors import LabError
from lab.run.captured import SWITCH_PORTS

__all__ = ["built"]
pytestmark = [
    *needs_nodes,
    pytest.mark.skipif(shutil.which("tcpdump") is None, reason="needs tcpdump"),
]


def test_each_host_has_a_file_that_grows_while_it_captures(built, tmp_path):
    captures = Captures(tmp_path / "pcap", built, Ledger(tmp_path / "captures"))
    user = built.net.get("ue1")
    user.cmd("ping -c3 -i0.1 10.16.0.1")  # its own address
    deadline = time.monotonic() + 10
    while captures.files["ue1"].stat().st_size < 500 and time.monotonic() < deadline:
        captures.flush()
        time.sleep(0.1)
    text = shell.run(["tcpdump", "-nr", str(captures.files["ue1"])], "read the file")
    assert text.count("ICMP echo request") >= 3
    counts = captures.stop()
    assert set(counts) == {"ue1", "srv1", SWITCH_PORTS}
    assert counts["ue1"].packets >= 6
    assert counts["ue1"].dropped == 0


def test_the_ports_of_switches_have_a_file_with_nothing_of_other_interfaces(built, tmp_path):
    captures = Captures(tmp_path / "pcap", built, Ledger(tmp_path / "captures"))
    assert set(captures.ports.values()) == set(built.bridge_ports())
    shell.run(["ping", "-c3", "-i0.1", "127.0.0.1"], "send packets over lo")
    user = built.net.get("ue1")
    user.cmd("arping -c1 10.16.0.9 || ping -c1 -W1 10.16.0.9")  # nobody has it: asks for it
    captures.stop()
    text = shell.run(["tcpdump", "-nr", str(captures.files[SWITCH_PORTS])], "read the file")
    assert "who-has 10.16.0.9" in text
    assert " Out " not in text  # what leaves is captured where it enters next
    assert "127.0.0.1" not in text


def test_no_packet_is_damaged_when_many_arrive(built, tmp_path):
    captures = Captures(tmp_path / "pcap", built, Ledger(tmp_path / "captures"))
    user = built.net.get("ue1")
    for _ in range(10):
        user.cmd("ping -f -c 800 -s 8 10.16.0.1")  # its own address; up to 1 MB in the pipe
        captures.flush()
    counts = captures.stop()["ue1"]
    text = shell.run(["tcpdump", "-nr", str(captures.files["ue1"])], "read the file")
    assert counts.packets == len(text.splitlines())
    assert counts.packets > 10_000


def test_a_program_that_does_not_start_is_an_error():
    program = shell.spawn(["sh", "-c", "echo no such device >&2"], "fail", stderr=-1)
    with pytest.raises(LabError, match="capture the packets of ue1: tcpdump ended: no such device"):
        _wait_until_listening("ue1", program)
    program.communicate()


def test_dropped_packets_are_counted():
    text = "12 packets captured\n15 packets received by filter\n3 packets dropped by kernel\n"
    program = shell.spawn(["printf", "%s", text], "write counts", stdout=-1, stderr=-1)
    assert _counts(program, lambda: None) == Captured(None, None)
    program = shell.spawn(["sh", "-c", f"printf '{text}' >&2"], "write counts", stderr=-1)
    assert _counts(program, lambda: None) == Captured(12, 3)
