"""Adapt Mininet-WiFi's nodes, so that building a network starts almost no processes.

Mininet gives each node a shell and runs about ten commands in it; in a VM without KVM each command
takes a tenth of a second. Here a host is a network namespace that a sleeping process holds, and a
switch is only a name. While the network is built, the commands that Mininet would run are
discarded; network.py configures all nodes together. hostapd is started with the configuration that
Mininet-WiFi writes.

Once the network is built (release.py), the nodes are ordinary Mininet-WiFi nodes: `cmd`, `popen`
and everything that uses them run real commands. A node's shell starts at its first command.
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
from mn_wifi.cli import CLI  # noqa: E402
from mn_wifi.link import HostapdConfig, IntfWireless  # noqa: E402
from mn_wifi.node import OVSKernelAP, Station  # noqa: E402

__all__ = ["CLI", "setLogLevel"]
TERMINATE_TIMEOUT_S = 3
SWITCH_VERSION = "2.0"  # Mininet treats versions before 1.10 differently


class _Quiet:
    """Discard the commands of a Mininet node while the network is built.

    `holder` is the process that holds the network namespace of a host; a switch has none. `pid` is
    a process in the node's namespace: the holder, or for a switch this process. `shell` is None
    until the node runs its first command.
    """

    name: str
    inNamespace: bool
    shell: subprocess.Popen[bytes] | None
    pid: int
    quiet = True
    holder: subprocess.Popen[str] | None = None

    @classmethod
    def checkSetup(cls) -> None:
        """Skip Mininet's check of the machine, because the lab makes its own (doctor)."""

    def startShell(self, mnopts: str | None = None) -> None:
        """Start the process that holds the network namespace of a host; do nothing for a switch.

        The namespace exists until the process is killed or its standard input is closed.
        """
        self.pid = os.getpid()
        if self.inNamespace:
            argv = ["mnexec", "-cdn", "sh", "-c", "echo; read _", f"mininet:{self.name}"]
            self.holder = shell.spawn(
                argv, f"make host {self.name}", stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
            self.pid = self.holder.pid

    def wait_ready(self) -> None:
        """Wait until the network namespace of the host exists."""
        if self.holder is not None and self.holder.stdout is not None:
            self.holder.stdout.readline()

    def open_shell(self) -> None:
        """Start the node's shell as Mininet does, unless it is running already."""
        if self.shell is None:
            pid = self.pid
            super().startShell()  # type: ignore[misc]
            self.pid = pid

    def forget_shell(self) -> None:
        """Make the next command start a new shell, and leave the current shell running.

        A forked process calls this, because the shell belongs to its parent.
        """
        self.shell = None

    def _popen(self, cmd: list[str], **params: Any) -> Any:
        """Start a process for Mininet.

        The node's shell enters the existing namespace (-a); Mininet would make a new one (-n).
        """
        if cmd[:2] == ["mnexec", "-cdn"]:
            cmd = ["mnexec", "-cda", str(self.pid), *cmd[2:]]
        return super()._popen(cmd, **params)  # type: ignore[misc]

    def sendCmd(self, *args: Any, **keywords: Any) -> None:
        """Send a command to the node's shell; start the shell if needed."""
        self.open_shell()
        super().sendCmd(*args, **keywords)  # type: ignore[misc]

    def cmd(self, *args: Any, **keywords: Any) -> Any:
        """Run a command in the node's shell and return its output; "" while the node is quiet."""
        if self.quiet:
            return ""
        self.open_shell()
        return super().cmd(*args, **keywords)  # type: ignore[misc]

    def pexec(self, *args: Any, **keywords: Any) -> Any:
        """Run a command in the node's namespace and return its output, errors and exit status.

        While the node is quiet, run nothing and return "", "" and 0.
        """
        return ("", "", 0) if self.quiet else super().pexec(*args, **keywords)  # type: ignore[misc]

    def terminate(self) -> None:
        """Kill the node's shell and the holder of its namespace; the kernel then removes it."""
        if self.shell is not None:
            super().terminate()  # type: ignore[misc]
        if self.holder is not None:
            self.holder.kill()
            self.holder.communicate(timeout=TERMINATE_TIMEOUT_S)
            self.holder = None


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


def empty(scratch: Path) -> Any:
    """Return a Mininet-WiFi network that has no nodes yet and does not shape its links.

    hostapd's files are written into the folder `scratch`.
    """
    setLogLevel("output")
    # `init` would raise limits of the whole machine permanently
    mininet.net.Mininet.inited = True
    mininet.net.numCores = os.cpu_count
    mn_wifi.net.Mac80211Hwsim = _NoRadios
    HostapdConfig.ap_config_file = lambda _, text, radio: _start_hostapd(scratch, text, radio)
    OVSSwitch.OVSVersion = OVSKernelAP.OVSVersion = SWITCH_VERSION
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


def _start_hostapd(folder: Path, text: str, radio: Any) -> None:
    """Write hostapd's configuration into a file in `folder`, and start hostapd with it.

    `text` is the shell command by which Mininet-WiFi would write the file; it begins with `echo`.
    """
    file = folder / f"mn{os.getpid()}_{radio.name}.apconf"
    file.write_text(text.removeprefix("echo '"))
    shell.run(["hostapd", "-B", str(file)], f"start hostapd of {radio.node.name}")


def _nothing(*_args: Any, **_keywords: Any) -> None:
    """Accept any arguments and do nothing, in place of a method of Mininet-WiFi."""
