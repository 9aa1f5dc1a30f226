"""Show that Open vSwitch lets packets of a new flow overtake each other. It needs root.

Each burst is a new UDP flow: its first packets are not in the kernel's flow table, so they go to
ovs-vswitchd, which first installs the flow and then sends them on. A packet that comes in between
goes directly, and overtakes them.

    python3 open_vswitch_order.py [BURSTS]
"""

from __future__ import annotations

import subprocess
import sys
import time

BRIDGE, HOSTS = "ovsorder", ("order1", "order2")
PACKETS, GAP_S = 40, 0.0005
RECEIVE = """
import socket, sys
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
server.bind(("10.77.0.2", 7000))
server.settimeout(2)
print("ready", flush=True)
flows = {}
while True:
    try:
        data, source = server.recvfrom(100)
    except TimeoutError:
        break
    flows.setdefault(source, []).append(int(data))
turned = sum(each != sorted(each) for each in flows.values())
print(f"{turned} of {len(flows)} flows arrived in another order than they were sent")
"""
SEND = """
import socket, sys, time
for n in range(int(sys.argv[1])):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.bind(("10.77.0.1", 10000 + n))
        for k in range(int(sys.argv[2])):
            client.sendto(str(k).encode(), ("10.77.0.2", 7000))
            time.sleep(float(sys.argv[3]))
"""


def run(*words: str) -> None:
    subprocess.run(words, check=True)


def inside(host: str, script: str, *arguments: str) -> subprocess.Popen[str]:
    argv = ["ip", "netns", "exec", host, sys.executable, "-c", script, *arguments]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)


def main(bursts: str = "200") -> None:
    run("ovs-vsctl", "--may-exist", "add-br", BRIDGE)
    try:
        run("ovs-ofctl", "add-flow", BRIDGE, "priority=0,actions=NORMAL")
        # matching ports makes each UDP flow an entry of its own in the kernel
        run("ovs-ofctl", "add-flow", BRIDGE, "priority=9,udp,tp_src=9,actions=drop")
        for n, host in enumerate(HOSTS, 1):
            run("ip", "netns", "add", host)
            run("ip", "link", "add", f"{host}-s", "type", "veth", "peer", f"{host}-h")
            run("ip", "link", "set", f"{host}-h", "netns", host)
            for words in (
                ["addr", "add", f"10.77.0.{n}/24", "dev", f"{host}-h"],
                ["link", "set", f"{host}-h", "up"],
            ):
                run("ip", "-n", host, *words)
            run("ip", "link", "set", f"{host}-s", "up")
            run("ovs-vsctl", "add-port", BRIDGE, f"{host}-s")
        time.sleep(2)
        receiver = inside(HOSTS[1], RECEIVE)
        receiver.stdout.readline()
        inside(HOSTS[0], SEND, bursts, str(PACKETS), str(GAP_S)).wait()
        print(receiver.communicate()[0], end="")
    finally:
        subprocess.run(["ovs-vsctl", "--if-exists", "del-br", BRIDGE])
        for host in HOSTS:
            subprocess.run(["ip", "netns", "del", host])


if __name__ == "__main__":
    main(*sys.argv[1:2])
