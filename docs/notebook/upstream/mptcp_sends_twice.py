"""Show that Linux sends data twice over the only subflow, because another one has failed to join.

A client that has written all and shut its side down refuses its own second subflow when the SYN/ACK
arrives. As for each subflow that it closes, the kernel then queues again all that is not
acknowledged at the connection's level (`__mptcp_retransmit_pending_data`), although the first
subflow still has it in flight or in its queue. It needs root and netem.

    python3 mptcp_sends_twice.py
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

CLIENT, SERVER = "twice1", "twice2"
VOLUME = 140_000  # bytes; the last are written when the first are acknowledged, and the SYN is sent
LINK = ["netem", "delay", "20ms", "rate", "10mbit", "limit", "100"]
OPEN = (
    "import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)  # IPPROTO_MPTCP\n"
)
RECEIVE = f"""{OPEN}
s.bind(("10.78.1.2", 7000))
s.listen()
print("ready", flush=True)
flow, _ = s.accept()
while flow.recv(100_000):
    pass
"""
SEND = f"""{OPEN}
s.connect(("10.78.1.2", 7000))
s.sendall(bytes({VOLUME}))
s.shutdown(socket.SHUT_WR)
s.recv(1)
"""


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


def inside(host: str, *words: str) -> str:
    argv = ["ip", "netns", "exec", host, *words]
    return subprocess.run(argv, check=True, text=True, stdout=subprocess.PIPE).stdout


def sent_bytes(subflows: int) -> int:
    """Return the bytes that the client's first interface sends for one file."""
    try:
        for host in (CLIENT, SERVER):
            ip("netns", "add", host)
            inside(host, "sysctl", "-qw", "net.mptcp.enabled=1", "net.ipv4.conf.all.rp_filter=0")
        for n in (1, 2):
            ip(
                "link",
                "add",
                f"c{n}",
                "netns",
                CLIENT,
                "type",
                "veth",
                "peer",
                f"s{n}",
                "netns",
                SERVER,
            )
            for host, name, last in ((CLIENT, f"c{n}", 1), (SERVER, f"s{n}", 2)):
                ip("-n", host, "addr", "add", f"10.78.{n}.{last}/24", "dev", name)
                ip("-n", host, "link", "set", name, "up", "gso_max_segs", "1")
                inside(host, "sysctl", "-qw", f"net.ipv4.conf.{name}.rp_filter=0")
                inside(host, "tc", "qdisc", "add", "dev", name, "root", *LINK)
        ip("-n", CLIENT, "rule", "add", "from", "10.78.2.1", "table", "2")
        ip("-n", CLIENT, "route", "add", "default", "via", "10.78.2.2", "table", "2")
        if subflows == 2:
            inside(CLIENT, "ip", "mptcp", "endpoint", "add", "10.78.2.1", "subflow")
        argv = ["ip", "netns", "exec", SERVER, sys.executable, "-c", RECEIVE]
        with subprocess.Popen(argv, stdout=subprocess.PIPE) as receiver:
            receiver.stdout.readline()
            before = counted()
            inside(CLIENT, sys.executable, "-c", SEND)
            receiver.wait()
        time.sleep(0.2)
        return counted() - before
    finally:
        for host in (CLIENT, SERVER):
            subprocess.run(["ip", "netns", "del", host])


def counted() -> int:
    return int(inside(CLIENT, "cat", "/sys/class/net/c1/statistics/tx_bytes"))


if __name__ == "__main__":
    for subflows in (1, 2):
        sent = sent_bytes(subflows)
        print(f"{subflows} subflow{'s' * (subflows > 1)} wanted: {VOLUME} bytes are sent as {sent}")
    print(Path("/proc/version").read_text().split(" (")[0])
