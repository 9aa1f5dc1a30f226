"""Define a network for `mn`: `mn --custom THIS_FILE --topo lab`.

The network is that of topology.json in the working directory. Instead of a prompt, `mn` then gets
`CLI`, which waits until the controller POX writes that it is ready.
"""

import json
import time
from pathlib import Path
from typing import Any

from mininet.topo import Topo

QUEUE_PACKETS = 100  # of each link; topology.json does not contain it
READY_WITHIN_S = 180


class Network(Topo):  # type: ignore[misc]
    """Hold the network of topology.json."""

    began_s = 0.0

    def build(self) -> None:
        """Add all switches, hosts and links. Mininet calls this before it makes anything."""
        Network.began_s = time.monotonic()
        network = json.loads(Path("topology.json").read_text())
        for name, switch in network["switches"].items():
            self.addSwitch(name, dpid=f"{switch['dpid']:x}")
        for each in network["trunks"]:
            ports = {"intfName1": each["a_port"], "intfName2": each["b_port"]}
            shape = _shape(each["rate_mbps"], each["delay_ms"])
            self.addLink(each["a"], each["b"], **ports, **shape)
        for name, (first, *_) in network["hosts"].items():
            self.addHost(name, ip=f"{first['address']}/8")
            ports = {"intfName1": first["name"], "intfName2": first["port"]}
            shape = _shape(first["rate_mbps"], first["delay_ms"])
            self.addLink(name, first["switch"], addr1=first["mac"], **ports, **shape)


def _shape(rate_mbps: float, delay_ms: float) -> dict[str, float | str]:
    """Return the options of a link, which `mn` uses with `--link tc`."""
    return {"bw": rate_mbps, "delay": f"{delay_ms:g}ms", "max_queue_size": QUEUE_PACKETS}


def wait_for_pox(_net: Any) -> None:
    """Wait until POX has connected to all switches; print how long building took until then."""
    decisions = Path("decisions.jsonl")
    deadline_s = time.monotonic() + READY_WITHIN_S
    while not (decisions.exists() and '"kind": "ready"' in decisions.read_text()):
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"POX is not ready after {READY_WITHIN_S} s")
        time.sleep(0.1)
    print(f"the network is up after {time.monotonic() - Network.began_s:.2f} s", flush=True)


topos = {"lab": Network}
CLI = wait_for_pox
