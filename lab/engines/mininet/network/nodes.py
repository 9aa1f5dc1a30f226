"""Adapt Mininet-WiFi's node classes, so that building a network starts almost no processes.

Mininet starts a shell for each node and runs about ten commands in it. In a virtual machine without
KVM, each command takes a tenth of a second. Here a host is a network namespace, kept open by a
sleeping process, and a switch is only a Python object. While a network is built, nodes do not run
the commands that Mininet gives them; network.py configures all nodes together.

When the network is finished, the nodes behave like ordinary Mininet-WiFi nodes: `cmd` and `popen`
run real commands. A node's shell starts at its first command.
"""

from __future__ import annotations

import os
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

from lab.engines.mininet.machine import shell
from lab.engines.mininet.machine.upstreams import folder
from lab.engines.mininet.network import wifi

# Importing Mininet-WiFi without packages that the emulation never uses.
#
# It imports matplotlib, numpy and pkg_resources for its graphs, energy monitor and
# telemetry, which this emulation does not use. In a VM without KVM they take half a minute to
# import. So empty modules replace them during this import, unless the real ones are loaded
# already. Not later: POX is a fork of a process that has imported this module, and strategies in
# it import numpy.


PYPLOT = ("pyplot", "patches", "image", "animation", "style", "cbook")
UNUSED = (
    *("matplotlib", *(f"matplotlib.{name}" for name in PYPLOT)),
    *("mpl_toolkits", "mpl_toolkits.mplot3d"),
    *("numpy", "numpy.random", "pkg_resources", "pylab"),
)


class _Anything:
    """Stands in for any function, object or base class of a package that is not needed.

    Each attribute of this object is the object itself, and so is the result of a call. If it is
    used as a base class, the class is made without this base.
    """

    def __getattr__(self, name: str) -> _Anything:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *_args: object, **_keywords: object) -> _Anything:
        return self

    def __mro_entries__(self, _bases: tuple[object, ...]) -> tuple[type, ...]:
        return ()


class _Unused(types.ModuleType):
    """An empty module from which any name can be imported."""

    def __getattr__(self, name: str) -> _Anything:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything()


def prepare(upstreams: Path) -> None:
    """Make `mininet` and `mn_wifi` importable from their sources in the folder `upstreams`.

    Empty modules replace the packages in `UNUSED`, unless these packages are loaded already.
    """
    for name in ("mininet-wifi", "mininet"):
        folder = str(upstreams / name)
        if folder not in sys.path:
            sys.path.insert(0, folder)
    for name in UNUSED:
        sys.modules.setdefault(name, _Unused(name))


def restore() -> None:
    """Remove the empty modules, so that the next import of such a package loads the real one.

    They are known by having no file and no loader: in a restored VM, where this module is imported
    again, they can be of an older class `_Unused`.
    """
    for name in UNUSED:
        if name in sys.modules and sys.modules[name].__spec__ is None:
            del sys.modules[name]


prepare(folder())

import mininet.cli  # noqa: E402 - importable only now
import mininet.net  # noqa: E402
import mn_wifi.net  # noqa: E402
from mininet.link import Link  # noqa: E402
from mininet.log import setLogLevel  # noqa: E402
from mininet.node import Host, OVSSwitch, RemoteController  # noqa: E402
from mn_wifi.cli import CLI  # noqa: E402
from mn_wifi.link import HostapdConfig, IntfWireless  # noqa: E402
from mn_wifi.node import OVSKernelAP, Station  # noqa: E402

restore()
__all__ = ["CLI", "setLogLevel"]
NETWORKS = (mininet.net.Mininet, mn_wifi.net.Mininet_wifi)  # the classes of a script's `net`
PROMPT = mininet.cli.CLI  # also the base of that of Mininet-WiFi
TERMINATE_TIMEOUT_S = 3
SWITCH_VERSION = "2.0"  # Mininet treats versions before 1.10 differently


class _Quiet:
    """Base of all node classes: a Mininet node that ignores commands until the network is built.

    - `quiet`: True until the network is built
    - `holder`: process that keeps the network namespace of a host open; None for a switch
    - `pid`: process ID of the holder of a host; for a switch, of this Python process
    - `shell`: None until the node runs its first command
    """

    name: str
    inNamespace: bool
    shell: subprocess.Popen[bytes] | None
    pid: int
    quiet = True
    holder: subprocess.Popen[str] | None = None

    @classmethod
    def checkSetup(cls) -> None:
        """Skip Mininet's check of the machine. The lab's command `doctor` makes this check."""

    def startShell(self, mnopts: str | None = None) -> None:
        """Start a process that keeps the network namespace of a host open, instead of a shell.

        The namespace exists until this process is killed or its standard input is closed. For a
        switch, no process is started.
        """
        self.pid = os.getpid()
        if self.inNamespace:
            argv = ["mnexec", "-cdn", "sh", "-c", "echo; read _", f"mininet:{self.name}"]
            self.holder = shell.spawn(
                argv, f"make host {self.name}", stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
            self.pid = self.holder.pid

    def wait_ready(self) -> None:
        """Wait until the network namespace of a host exists. Return at once for a switch."""
        if self.holder is not None and self.holder.stdout is not None:
            self.holder.stdout.readline()

    def open_shell(self) -> None:
        """Start the node's shell in the way Mininet does. Do nothing if a shell is running."""
        if self.shell is None:
            pid = self.pid
            super().startShell()  # type: ignore[misc]
            self.pid = pid

    def forget_shell(self) -> None:
        """Make the next command start a new shell. A running shell goes on, but is no longer used.

        This is for a forked process, because the shell belongs to its parent.
        """
        self.shell = None

    def _popen(self, cmd: list[str], **params: Any) -> Any:
        """Start a shell of Mininet inside the node's existing namespace.

        Mininet starts shells with `mnexec -cdn`, which would make a new namespace. `mnexec -cda
        PID` enters the namespace of a process.
        """
        if cmd[:2] == ["mnexec", "-cdn"]:
            cmd = ["mnexec", "-cda", str(self.pid), *cmd[2:]]
        return super()._popen(cmd, **params)  # type: ignore[misc]

    def sendCmd(self, *args: Any, **keywords: Any) -> None:
        self.open_shell()
        super().sendCmd(*args, **keywords)  # type: ignore[misc]

    def cmd(self, *args: Any, **keywords: Any) -> Any:
        """Run a command in the node's shell and return its output.

        While `quiet`, only return "".
        """
        if self.quiet:
            return ""
        self.open_shell()
        return super().cmd(*args, **keywords)  # type: ignore[misc]

    def pexec(self, *args: Any, **keywords: Any) -> Any:
        """Run a command as Mininet does. While `quiet`, only return ("", "", 0)."""
        return ("", "", 0) if self.quiet else super().pexec(*args, **keywords)  # type: ignore[misc]

    def terminate(self) -> None:
        """Kill the node's shell, and the process that keeps the node's network namespace open."""
        if self.shell is not None:
            super().terminate()  # type: ignore[misc]
        if self.holder is not None:
            self.holder.kill()
            self.holder.communicate(timeout=TERMINATE_TIMEOUT_S)
            self.holder = None


class QuietHost(_Quiet, Host):  # type: ignore[misc]
    """A host without a radio. It runs no commands while the network is built."""


class QuietStation(_Quiet, Station):  # type: ignore[misc]
    """A host with a radio. It runs no commands while the network is built."""

    def update_graph(self) -> None:
        """Do nothing. Mininet-WiFi would redraw a plot whenever the station moves."""


class QuietSwitch(_Quiet, OVSSwitch):  # type: ignore[misc]
    """A switch of Mininet-WiFi. network.py makes its Open vSwitch bridge."""


class QuietAccessPoint(_Quiet, OVSKernelAP):  # type: ignore[misc]
    """An access point of Mininet-WiFi: an Open vSwitch bridge with a radio run by hostapd."""


class Wire(Link):  # type: ignore[misc]
    """A wired link of Mininet-WiFi. network.py makes the interfaces at its two ends."""

    @classmethod
    def makeIntfPair(cls, *_args: Any, **_keywords: Any) -> None:
        pass


class _NoRadios:
    """Replaces Mininet-WiFi's class Mac80211Hwsim, which makes radios. Here wifi.py makes them."""

    hwsim_ids: tuple[str, ...] = ()

    def __init__(self, **_keywords: Any) -> None:
        pass


class PoxComesLater(RemoteController):  # type: ignore[misc]
    """A controller of another script's network, in which POX is connected when it is complete."""

    def checkListening(self) -> None:
        """Do not complain that nothing listens yet."""


def empty(scratch: Path) -> Any:
    """Return a Mininet-WiFi network without nodes. It does not limit the rates of its links.

    This replaces functions of Mininet and Mininet-WiFi in the whole process. hostapd's
    configuration files will be written into the folder `scratch`.
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
    """Start hostapd with the configuration in `text`, and write hostapd's files into `folder`.

    `text` is a shell command of Mininet-WiFi: `echo '` and then the configuration. The command is
    not executed.
    """
    wifi.start_hostapd(folder, radio.name, text.removeprefix("echo '"))


def _nothing(*_args: Any, **_keywords: Any) -> None:
    """Replaces methods of Mininet-WiFi that must do nothing."""
