"""A fat tree of twenty bridges in user space, with some of its hosts. Links have no rate limit."""

from __future__ import annotations

import subprocess
from functools import cached_property
from pathlib import Path
from typing import Any

from traffic_scripts import COUNT, SEND
from userspace_bridges import eventually
from userspace_network import MPTCP, Network

from lab.engines.mininet.programs.host_agent import HostSettings
from lab.topologies import fat_tree
from lab.topologies.topology import as_json, wire

TREE = fat_tree.build(fat_tree.Params(k=4), rate_scale=0.1)
WIRING = wire(TREE)
CORES = ("c1", "c2", "c3", "c4")


class FatTree(Network):
    """Only `users` and their servers exist; topology.json has all hosts."""

    switches = WIRING.dpid
    trunks = {trunk.link: (trunk.a, trunk.b) for trunk in WIRING.trunks}
    users: tuple[str, ...] = ()

    @cached_property
    def pairs(self) -> dict[str, str]:
        """Server of each user."""
        return {user: TREE.server_of(user) for user in self.users}

    def address(self, host: str) -> str:
        return WIRING.of(host)[0].address

    def topology(self) -> dict[str, Any]:
        """Return the contents of topology.json, with the port names of these bridges."""
        described = as_json(TREE, WIRING)
        for trunk in described["trunks"]:
            trunk |= {
                "a_port": self.name(trunk["a"] + trunk["b"]),
                "b_port": self.name(trunk["b"] + trunk["a"]),
            }
        for host, (interface,) in described["hosts"].items():
            interface["port"] = self.name(f"p{host}")
        return described | {
            "switches": {switch: {"dpid": dpid} for switch, dpid in self.switches.items()}
        }

    def start_agents(self) -> subprocess.Popen[bytes]:
        hosts = {}
        for user, server in self.pairs.items():
            for host in (user, server):
                holder = self.start_inside(host, "import time; time.sleep(1e6)")
                hosts[host] = HostSettings(holder.pid, endpoints=host == user, loss={})
        return self._start_agents(hosts)

    def download(self, user: str) -> Path:
        """Endless download; as `userspace_traffic.download`."""
        server, progress = self.pairs[user], self.folder / f"progress-{user}"
        sending, counting = (
            script.replace("10.0.0.1", self.address(server)) for script in (SEND, COUNT)
        )
        self.start_inside(server, sending, str(MPTCP), "5001", "100000000")
        eventually(lambda: ":5001" in self.inside(server, "ss", "-Hltn"), "listen")
        self.start_inside(user, counting, str(MPTCP), "5001", self.address(user), str(progress))
        eventually(progress.exists, "receive the first bytes")
        return progress

    def break_link(self, link: str, seq: int) -> None:
        """Lose all packets on a link, and tell POX as the runner does."""
        a, b = self.trunks[link]
        for here, there in ((a, b), (b, a)):
            self.ofctl("mod-port", here, self.name(here + there), "down")
        self.tell(seq, "link", {"link": link, "up": False})

    def _make_hosts(self) -> None:
        for user, server in self.pairs.items():
            for host in (user, server):
                (each,) = WIRING.of(host)
                self._command("ip", "netns", "add", self.name(host))
                self._hosts.callback(self._quietly, "ip", "netns", "del", self.name(host))
                self.inside(host, "ip", "link", "set", "lo", "up")
                self._attach(host, "eth", each.address, each.mac, each.switch, 1, f"p{host}")
                self._configure(host, each.further)

    def _configure(self, host: str, further: tuple[str, ...]) -> None:
        self.inside(
            host, "sysctl", "-qw", "net.mptcp.enabled=1", "net.ipv6.conf.all.disable_ipv6=1"
        )
        self.inside(host, "ip", "mptcp", "limits", "set", "subflow", "4", "add_addr_accepted", "0")
        for address in further:
            self.inside(host, "ip", "address", "add", f"{address}/32", "dev", "eth")
            self.inside(host, "ip", "rule", "add", "from", address, "table", "1")
            self.inside(host, "ip", "mptcp", "endpoint", "add", address, "dev", "eth", "subflow")
