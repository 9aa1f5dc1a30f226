"""Adapt Mininet-WiFi's nodes, so that they start almost no processes.

Only this module imports Mininet-WiFi. Mininet gives each node a shell and runs about ten commands
in it; in a VM without KVM each command takes a tenth of a second. Here a host is a network
namespace that a sleeping process holds, and a switch is only a name. The commands that Mininet
would run are discarded; network.py configures all nodes together. hostapd is started with the
configuration that Mininet-WiFi writes.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

from lab.engines.mininet.machine import shell
from lab.engines.mininet.machine.upstreams import folder
from lab.engines.mininet.network import upstream_imports

upstream_imports.prepare(folder())

import mininet.net  # noqa: E402 - importable only now
import mn_wifi.net  # noqa: E402
from mininet.link import Link  # noqa: E402
from mininet.log import setLogLevel  # noqa: E402
from mininet.node import Host, OVSSwitch  # noqa: E402
from mn_wifi.link import HostapdConfig, IntfWireless  # noqa: E402
from mn_wifi.node import OVSKernelAP, Station  # noqa: E402

TERMINATE_TIMEOUT_S = 3


class _Quiet:
    """Replace the methods by which a Mininet node runs commands; network.py configures nodes."""

    name: str
    inNamespace: bool
    shell: subprocess.Popen[str] | None
    pid: int | None

    @classmethod
    def checkSetup(cls) -> None:
        """Skip Mininet's check of the machine, because the lab makes its own (doctor)."""

    def startShell(self, mnopts: str | None = None) -> None:
        """Start the process that holds the network namespace of a host; do nothing for a switch.

        The namespace exists until the process is killed or its standard input is closed.
        """
        if self.inNamespace:
            argv = ["mnexec", "-cdn", "sh", "-c", "echo; read _", f"mininet:{self.name}"]
            self.shell = shell.spawn(
                argv, f"make host {self.name}", stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
            self.pid = self.shell.pid

    def wait_ready(self) -> None:
        """Wait until the network namespace of the host exists."""
        if self.shell is not None and self.shell.stdout is not None:
            self.shell.stdout.readline()

    def cmd(self, *_args: Any, **_keywords: Any) -> str:
        return ""

    def pexec(self, *_args: Any, **_keywords: Any) -> tuple[str, str, int]:
        return "", "", 0

    def terminate(self) -> None:
        """Kill the process that holds the network namespace; the kernel then removes it."""
        if self.shell is not None:
            self.shell.kill()
            self.shell.communicate(timeout=TERMINATE_TIMEOUT_S)
            self.shell = None


class QuietHost(_Quiet, Host):  # type: ignore[misc]
    """Represent a host without a radio: Mininet runs no commands in it."""


class QuietStation(_Quiet, Station):  # type: ignore[misc]
    """Represent a host with a radio: Mininet-WiFi runs no commands in it."""

    def update_graph(self) -> None:
        """Skip redrawing the plot of the stations when the station moves."""


class QuietSwitch(_Quiet, OVSSwitch):  # type: ignore[misc]
    """Represent a switch; network.py makes its Open vSwitch bridge."""


class QuietAccessPoint(_Quiet, OVSKernelAP):  # type: ignore[misc]
    """Represent an access point: an Open vSwitch bridge with a radio, for which hostapd runs."""


class Wire(Link):  # type: ignore[misc]
    """Represent a link whose two interfaces network.py has already made."""

    @classmethod
    def makeIntfPair(cls, *_args: Any, **_keywords: Any) -> None:
        pass


class _NoRadios:
    """Replace the class of Mininet-WiFi that makes radios: radios.py makes them instead."""

    hwsim_ids: tuple[str, ...] = ()

    def __init__(self, **_keywords: Any) -> None:
        pass


def empty() -> Any:
    """Return a Mininet-WiFi network that has no nodes yet and does not shape its links."""
    setLogLevel("warning")
    # `init` would raise limits of the whole machine permanently
    mininet.net.Mininet.inited = True
    mininet.net.numCores = os.cpu_count
    mn_wifi.net.Mac80211Hwsim = _NoRadios
    HostapdConfig.ap_config_file = _start_hostapd
    IntfWireless.getMAC = lambda radio: (
        Path(f"/sys/class/net/{radio.name}/address").read_text().strip()
    )
    for method in ("set_tc", "set_tc_ap", "set_tc_reorder", "configWLink"):
        setattr(IntfWireless, method, _nothing)  # links are shaped in `links.py`
    classes = {
        "host": QuietHost,
        "station": QuietStation,
        "switch": QuietSwitch,
        "accessPoint": QuietAccessPoint,
    }
    quiet = {
        "controller": None,
        "autoAssociation": False,
        "allAutoAssociation": False,
        "build": False,
    }
    return mn_wifi.net.Mininet_wifi(ipBase="10.0.0.0/8", **classes, **quiet)


def _start_hostapd(_self: Any, text: str, radio: Any) -> None:
    """Write hostapd's configuration into a file, and start hostapd with it.

    `text` is the shell command by which Mininet-WiFi would write the file; it begins with `echo`.
    """
    file = Path(f"mn{os.getpid()}_{radio.name}.apconf")
    file.write_text(text.removeprefix("echo '"))
    shell.run(["hostapd", "-B", str(file.resolve())], f"start hostapd of {radio.node.name}")


def _nothing(*_args: Any, **_keywords: Any) -> None:
    """Accept any arguments and do nothing, in place of a method of Mininet-WiFi."""
