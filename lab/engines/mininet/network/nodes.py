"""Mininet-WiFi without the processes it starts for every node. The only place that imports mininet and mn_wifi.

Mininet gives each node a shell and types commands into it, some ten per host; under software emulation each costs a tenth
of a second. Here a host is a namespace held by a process that sleeps, a switch is nothing but a name, and what Mininet would
type is not typed: `network.py` says it for all nodes together. hostapd is started as Mininet-WiFi configures it.
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

import mininet.net  # noqa: E402 - found only now
import mn_wifi.net  # noqa: E402
from mininet.link import Link  # noqa: E402
from mininet.log import setLogLevel  # noqa: E402
from mininet.node import Host, OVSSwitch  # noqa: E402
from mn_wifi.link import HostapdConfig, IntfWireless  # noqa: E402
from mn_wifi.node import OVSKernelAP, Station  # noqa: E402

TERMINATE_TIMEOUT_S = 3


class _Quiet:
    """A node that is told nothing: `network.py` configures it."""

    name: str
    inNamespace: bool
    shell: subprocess.Popen[str] | None
    pid: int | None

    @classmethod
    def checkSetup(cls) -> None:
        """`doctor` has looked at this machine."""

    def startShell(self, mnopts: str | None = None) -> None:
        """A namespace, and a process that holds it until its input ends or it is killed."""
        if self.inNamespace:
            argv = ["mnexec", "-cdn", "sh", "-c", "echo; read _", f"mininet:{self.name}"]
            self.shell = shell.spawn(
                argv, f"make host {self.name}", stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
            self.pid = self.shell.pid

    def settle(self) -> None:
        """Wait until the namespace is there."""
        if self.shell is not None and self.shell.stdout is not None:
            self.shell.stdout.readline()

    def cmd(self, *_args: Any, **_keywords: Any) -> str:
        return ""

    def pexec(self, *_args: Any, **_keywords: Any) -> tuple[str, str, int]:
        return "", "", 0

    def terminate(self) -> None:
        """End the process, and the namespace with it."""
        if self.shell is not None:
            self.shell.kill()
            self.shell.communicate(timeout=TERMINATE_TIMEOUT_S)
            self.shell = None


class QuietHost(_Quiet, Host):  # type: ignore[misc]
    """A wired host."""


class QuietStation(_Quiet, Station):  # type: ignore[misc]
    """A host with a radio."""

    def update_graph(self) -> None:
        """Nothing is drawn when it moves."""


class QuietSwitch(_Quiet, OVSSwitch):  # type: ignore[misc]
    """A bridge, made by `network.py`."""


class QuietAccessPoint(_Quiet, OVSKernelAP):  # type: ignore[misc]
    """A bridge with a radio; hostapd serves it."""


class Wire(Link):  # type: ignore[misc]
    """A pair of interfaces that `network.py` has made."""

    @classmethod
    def makeIntfPair(cls, *_args: Any, **_keywords: Any) -> None:
        pass


class _NoRadios:
    """In place of what makes radios: `radios.py` does."""

    hwsim_ids: tuple[str, ...] = ()

    def __init__(self, **_keywords: Any) -> None:
        pass


def empty() -> Any:
    """A Mininet-WiFi network of such nodes, which shapes nothing by itself."""
    setLogLevel("warning")
    mininet.net.Mininet.inited = (
        True  # its `init` raises limits of the whole machine and leaves them
    )
    mininet.net.numCores = os.cpu_count
    mn_wifi.net.Mac80211Hwsim = _NoRadios
    HostapdConfig.ap_config_file = _start_hostapd
    IntfWireless.getMAC = lambda radio: (
        Path(f"/sys/class/net/{radio.name}/address").read_text().strip()
    )
    for method in ("set_tc", "set_tc_ap", "set_tc_reorder", "configWLink"):
        setattr(IntfWireless, method, _nothing)  # a link's qdiscs are ours
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
    """Write the configuration Mininet-WiFi made, without the `echo` it would be typed with, and start the daemon."""
    file = Path(f"mn{os.getpid()}_{radio.name}.apconf")
    file.write_text(text.removeprefix("echo '"))
    shell.run(["hostapd", "-B", str(file.resolve())], f"start hostapd of {radio.node.name}")


def _nothing(*_args: Any, **_keywords: Any) -> None:
    """In place of what Mininet-WiFi shall not do."""
