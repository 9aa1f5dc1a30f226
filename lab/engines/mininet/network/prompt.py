"""Offer Mininet-WiFi's own prompt, its class CLI, on a running emulation.

It runs in a copy (fork) of the engine's process, which has the network as Mininet-WiFi knows it.
What the prompt does to the kernel acts on the running network; what it does to Mininet-WiFi's
objects, such as a new position of a station, stays in the copy. Positions and associations that the
run changes are read from its folder before each command.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lab.engines.mininet.machine import shell
from lab.engines.mininet.network import release
from lab.engines.mininet.network.nodes import CLI, setLogLevel
from lab.run.reading import Follower

SHELLS = ("bash", "sh")


class Prompt(CLI):  # type: ignore[misc]
    """Adapt Mininet-WiFi's prompt to a terminal that may be on another machine than the network."""

    windows: Path
    update: Callable[[], None]
    script: Sequence[str] | None

    def preloop(self) -> None:
        """Let the loop of commands take them from the script, if there is one."""
        if self.script is not None:
            self.cmdqueue = [*self.script, "exit"]
            self.script = None

    def precmd(self, line: str) -> str:
        """Update the stations before each command, and return the command."""
        if not self.isatty():
            print(f"{self.prompt}{line}", flush=True)
        self.update()
        return str(super().precmd(line))

    def default(self, line: str) -> Any:
        """Run a command in a node: `ue1 ping srv1`. A shell, `ue1 bash`, gets the terminal."""
        node, _, command = line.strip().partition(" ")
        if node in self.mn and command.strip() in SHELLS and self.isatty():
            enter = ["mnexec", "-a", str(self.mn[node].pid)]
            title = f"PS1={node}:\\w# "
            argv = [*enter, "env", title, *_plain_shell(command.strip())]
            shell.spawn(argv, f"open a shell in {node}").wait()
            return None
        return super().default(line)

    def do_distance(self, line: str) -> None:
        """Print the distance between two nodes: distance ue1 wifi1."""
        setLogLevel("info")
        super().do_distance(line)
        setLogLevel("output")

    def do_xterm(self, line: str, term: str = "xterm") -> None:
        """Open a terminal window on each node, where the prompt was started: xterm ue1 srv1."""
        for name in line.split():
            if name not in self.mn:
                print(f"node '{name}' not in network")
            else:
                with self.windows.open("a") as windows:
                    windows.write(f"{name}\n")
        if not line.split():
            print(f"usage: {term} node1 node2 ...")


def _plain_shell(name: str) -> list[str]:
    """Return the command line of a shell that keeps the prompt of its environment."""
    return [name, "--norc"] if name == "bash" else [name]


class Updates:
    """Keep the stations of a copied network as the running one has them, by files of the run."""

    def __init__(self, net: Any, run: Path) -> None:
        """Follow samples (positions) and events (handovers) in the run's folder `run`."""
        self._net, self._samples = net, Follower(run / "samples.jsonl")
        self._events = Follower(run / "events.jsonl")

    def apply(self) -> None:
        """Apply what has been written since the last call."""
        for sample in self._samples.new()[-1:]:
            for user, row in sample["user"].items():
                if row.get("x_m") is not None:
                    self._net[user].position = [row["x_m"], row["y_m"], 0.0]
        for event in self._events.new():
            if event["kind"] == "handover":
                release.associate(self._net, event["user"], event["to"])


def run(net: Any, folder: Path, windows: Path, script: Sequence[str] | None) -> None:
    """Run the prompt until its end, in a forked process.

    `folder` is the run's. The commands come from the terminal or, if it is not None, from `script`;
    then each command is printed before its output. `windows` is the file that takes the names of
    nodes on which the caller shall open a terminal window.
    """
    Prompt.windows, Prompt.script = windows, script
    Prompt.update = staticmethod(Updates(net, folder).apply)
    for node in net.values():
        node.forget_shell()  # it belongs to the parent
    for handler in logging.getLogger("mininet").handlers:
        if isinstance(handler, logging.StreamHandler):
            handler.setStream(sys.stdout)
    Prompt(net, stdin=sys.stdin)
