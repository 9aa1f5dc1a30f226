"""Offer Mininet-WiFi's own command prompt, its class CLI, on a running emulation.

The prompt runs in a fork of the engine's process, so it has a copy of Mininet-WiFi's objects. A
command that acts on the kernel acts on the running network. A command that only changes objects
changes only the copy; setting the position of a station is a change of the run instead. Before each
command, the prompt reads the changed positions and associations from the run's folder, and updates
the copy.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from lab.engines.mininet.machine import shell
from lab.engines.mininet.network import network
from lab.engines.mininet.network.nodes import CLI, setLogLevel
from lab.run import inbox
from lab.run.flipping import SENT
from lab.run.reading import Follower, Line, read_document

SHELLS = ("bash", "sh")
IPERF_PORT = 5003  # the lab's own programs listen on the ports before it, 5001 and 5002
APPLIED_WITHIN_S = 30  # a crowded machine needs several samples


class Prompt(CLI):  # type: ignore[misc]
    """Mininet-WiFi's prompt, for a terminal that may be on another machine than the network.

    `update` is called before each command. `script` lists the commands to run; if it is None, the
    commands come from the terminal. The command `xterm` appends names of nodes to the file
    `windows`. The reader of this file opens a terminal window for each node.
    """

    windows: Path
    update: Callable[[], None]
    script: Sequence[str] | None
    flips: Flips

    def preloop(self) -> None:
        """Queue the commands of `script`, if there is one, and then the command `exit`."""
        if self.script is not None:
            self.cmdqueue = [*self.script, "exit"]
            self.script = None

    def precmd(self, line: str) -> str:
        """Call `update` before the command `line`, and return the command to run.

        If standard input is no terminal, the prompt and the command are printed too.
        """
        if not self.isatty():
            print(f"{self.prompt}{line}", flush=True)
        self.update()
        return str(super().precmd(line))

    def default(self, line: str) -> Any:
        """Run a command in a node, as in `ue1 ping srv1`.

        A shell, as in `ue1 bash`, gets the terminal.
        """
        node, _, command = line.strip().partition(" ")
        if node in self.mn and command.strip() in SHELLS and self.isatty():
            enter = ["mnexec", "-a", str(self.mn[node].pid)]
            title = f"PS1={node}:\\w# "
            argv = [*enter, "env", title, *_plain_shell(command.strip())]
            shell.spawn(argv, f"open a shell in {node}").wait()
            return None
        return super().default(line)

    def do_link(self, line: str) -> None:
        """Set the link between two nodes up or down. Example: link s1 wifi1 down."""
        near, far, state = (*line.split(), "", "", "")[:3]
        links = self.flips.links(near, far) if state in ("up", "down") else []
        for link in links:
            print(self.flips.make(f"link.{link}.up", state == "up"))
        if not links:
            super().do_link(line)

    def do_switch(self, line: str) -> None:
        """Print that a switch cannot be stopped during a run.

        Set the links of the switch down instead. Example: link s1 wifi1 down.
        """
        print("a switch cannot be stopped during a run. Set its links down: link s1 wifi1 down")

    def do_dpctl(self, line: str) -> None:
        """Run ovs-ofctl on all switches and access points. Example: dpctl dump-flows.

        OpenFlow 1.0, its default, shows no meters.
        """
        chosen = any(word.startswith(("-O", "--protocols")) for word in line.split())
        super().do_dpctl(line if chosen or not line else f"{line} -O OpenFlow13")

    def do_distance(self, line: str) -> None:
        """Print the distance between two nodes. Example: distance ue1 wifi1."""
        setLogLevel("info")
        super().do_distance(line)
        setLogLevel("output")

    def do_xterm(self, line: str, term: str = "xterm") -> None:
        """Open a terminal window for each of the named nodes. Example: xterm ue1 srv1.

        The windows open on the machine where the user has started the prompt.
        """
        for name in line.split():
            if name not in self.mn:
                print(f"node '{name}' not in network")
            else:
                with self.windows.open("a") as windows:
                    windows.write(f"{name}\n")
        if not line.split():
            print(f"usage: {term} node1 node2 ...")


def _plain_shell(name: str) -> list[str]:
    """Return the command line of a shell that keeps the prompt (PS1) of its environment."""
    return [name, "--norc"] if name == "bash" else [name]


class Flips:
    """Sets links of a running emulation up or down, and moves its users, by messages to the run.

    The run applies each change, notifies POX, and records the change.
    """

    def __init__(self, run: Path) -> None:
        """Read which wired links the run in the folder `run` has, from its topology.json."""
        self._run, self._events = run, Follower(run / "events.jsonl")
        topology = read_document(run / "pox", "topology.json")
        ends = [(each["link"], each["a"], each["b"]) for each in topology["trunks"]]
        for host, interfaces in topology["hosts"].items():
            wired = [each for each in interfaces if "delay_ms" in each]
            ends += [(each["link"], host, each["switch"]) for each in wired]
        self._ends = [(link, {near, far}) for link, near, far in ends]

    def links(self, near: str, far: str) -> list[str]:
        """Return the IDs of all wired links between two nodes; [] if a node is unknown."""
        return [link for link, ends in self._ends if ends == {near, far}]

    def place(self, user: str, pos: str) -> None:
        """Put a user somewhere, as Mininet-WiFi's `setPosition` does: `pos` is such as "12,40,0".

        The height is left out.
        """
        x, y = (float(each) for each in pos.split(",")[:2])
        print(self.make(f"user.{user}.position", [x, y]))

    def make(self, target: str, value: Any) -> str:
        """Send a change to the run, wait for the answer of the run, and return the answer as text.

        `target` names the parameter to change, such as `link.l1.up`. If the run does not answer
        within `APPLIED_WITHIN_S` seconds, the returned text says this.
        """
        seq, until = inbox.send(self._run, {"target": target, "value": value}), time.monotonic()
        until += APPLIED_WITHIN_S
        while time.monotonic() < until:
            for event in self._events.new():
                if event.get("seq") == seq and event.get("state") != SENT:
                    return _answer(event)
            time.sleep(0.1)
        return f"{target}: the run has not answered within {APPLIED_WITHIN_S} s"


def _answer(event: Line) -> str:
    if not event["ok"]:
        return f"refused: {event['why']}"
    return f"{event['target']} = {str(event['value']).lower()}, recorded at {event['t']:g} s"


class Updates:
    """Keeps a copy of the network up to date from the files that the run writes."""

    def __init__(self, net: Any, run: Path) -> None:
        """`net` is the copy of Mininet-WiFi's network, and `run` is the folder of the run."""
        self._net, self._samples = net, Follower(run / "samples.jsonl")
        self._events = Follower(run / "events.jsonl")

    def apply(self) -> None:
        """Apply the latest positions, and all handovers since the last call."""
        for sample in self._samples.new()[-1:]:
            for user, row in sample["user"].items():
                if row.get("x_m") is not None:
                    self._net[user].position = [row["x_m"], row["y_m"], 0.0]
        for event in self._events.new():
            if event["kind"] == "handover":
                network.record_in_objects(self._net, event["user"], event["to"])


def run(net: Any, folder: Path, windows: Path, script: Sequence[str] | None) -> None:
    """Run the prompt on `net` until the user leaves it. Call this in a forked process.

    `folder` is the folder of the run. `script` lists the commands to run, and each is printed
    before its output. If `script` is None, the commands come from the terminal. For the command
    `xterm`, the prompt appends names of nodes to the file `windows`. The caller opens a terminal
    window for each name.
    """
    Prompt.windows, Prompt.script = windows, script
    Prompt.update = staticmethod(Updates(net, folder).apply)
    Prompt.flips = Flips(folder)
    net.iperf = partial(net.iperf, port=IPERF_PORT)
    for station in net.stations:
        station.setPosition = partial(Prompt.flips.place, station.name)
    for node in net.values():
        node.forget_shell()  # it belongs to the parent
    for handler in logging.getLogger("mininet").handlers:
        if isinstance(handler, logging.StreamHandler):
            handler.setStream(sys.stdout)
    Prompt(net, stdin=sys.stdin)
