"""Run somebody else's Mininet script, and take its network over at `net.adopt()` or `CLI(net)`."""

from __future__ import annotations

import contextlib
import os
import re
import runpy
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.engines.mininet.adopt import takeover
from lab.engines.mininet.adopt.description import Options
from lab.engines.mininet.controller_client import RunningStrategy
from lab.engines.mininet.machine import lock, open_vswitch, upstreams
from lab.engines.mininet.machine.ledger import Ledger
from lab.engines.mininet.network import nodes
from lab.errors import LabError, MachineLacks, RequestError

PLACE = re.compile(r"\.adopt\(|\bCLI\(")  # where a script hands its network over
HOW = (
    "Add the line net.adopt() behind the lines that start the network and give addresses, "
    "or CLI(net)"
)


@dataclass
class _Hooks:
    """What Mininet's classes do differently while a script runs."""

    strategy: RunningStrategy
    options: Options
    folder: Path
    typed: Path | None = None
    ledger: Ledger = field(default_factory=Ledger)
    adopted: list[takeover.Adopted] = field(default_factory=list)
    was_adopted: bool = False

    def adopt(self, net: Any) -> None:
        """Take a network over. A second call does nothing."""
        if not self.was_adopted:
            arguments = (self.strategy, self.options, self.folder, self.ledger, say)
            self.adopted.append(takeover.Adopted(net, *arguments))
            self.was_adopted = True

    def release(self) -> None:
        while self.adopted:
            self.adopted.pop().close()

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Put the hooks into Mininet's classes during a `with` block."""
        with ExitStack() as undo:
            for kind in nodes.NETWORKS:
                self._hook(undo, kind, "stop", lambda net: self.release())
                self._hook(undo, kind, "build", self._remember)
                _replace(undo, kind, "adopt", lambda net: self.adopt(net))
            _replace(undo, nodes.PROMPT, "__init__", self._prompt(nodes.PROMPT.__init__))
            base = nodes.NETWORKS[0]
            _replace(undo, base, "addController", _with_remote(base.addController))
            yield

    def _prompt(self, original: Any) -> Any:
        """Return the constructor of Mininet's prompt, which first takes the network over.

        With `typed`, the prompt runs that file. It would read a standard input that is no terminal
        twice: commands in hosts would get the lines too.
        """

        def opened(prompt: Any, net: Any, *args: Any, **named: Any) -> None:
            self.adopt(net)
            if self.typed is not None:
                named["script"] = str(self.typed.absolute())
            original(prompt, net, *args, **named)

        return opened

    def _remember(self, net: Any) -> None:
        takeover.record(self.ledger, net)

    def _hook(self, undo: ExitStack, kind: type, name: str, before: Any) -> None:
        original = getattr(kind, name)

        def hooked(own: Any, *args: Any, **named: Any) -> Any:
            before(own, *args, **named)
            return original(own, *args, **named)

        _replace(undo, kind, name, hooked)


def _replace(undo: ExitStack, kind: type, name: str, value: Any) -> None:
    """Set an attribute of a class until `undo` is closed."""
    if name in vars(kind):
        undo.callback(setattr, kind, name, vars(kind)[name])
    else:
        undo.callback(delattr, kind, name)
    setattr(kind, name, value)


def _with_remote(original: Any) -> Any:
    """Return `addController` of a network whose controller is POX, whatever the script asks for."""

    def add(net: Any, name: Any = "c0", controller: Any = None, **_: Any) -> Any:
        if not isinstance(name, str):  # the script has made a controller itself
            return original(net, name, controller)
        # Its port is that of the discard service: POX is connected later.
        return original(net, name, nodes.PoxComesLater, ip="127.0.0.1", port=9)

    return add


def say(text: str) -> None:
    print(f"*** multipath-lab: {text}", flush=True)


def run(
    script: Path,
    arguments: Sequence[str],
    strategy: RunningStrategy,
    options: Options,
    folder: Path,
    typed: Path | None = None,
    wait: bool = False,
) -> None:
    """Run a script to its end, with POX beside the network that it hands over.

    `arguments` are those of the script. `typed` is a file of commands for its prompt.
    Raises `LabError` if the script fails, and removes what it has left.
    """
    check(script)
    if os.geteuid() != 0:
        raise MachineLacks("adopt: building a network needs root. Add --vm, or use sudo")
    upstreams.require()
    if not open_vswitch.database_runs() and not os.environ.get("MULTIPATH_LAB_VM"):
        raise MachineLacks(
            "adopt: Open vSwitch does not run. Add --vm, or try: "
            "sudo systemctl start openvswitch-switch"
        )
    folder.mkdir(parents=True, exist_ok=True)
    hooks = _Hooks(strategy, options, folder.absolute(), typed)
    with lock.hold(f"adopt {script.name}", wait):
        hooks.ledger.undo_all()
        takeover.check_ports()
        hooks.ledger.record("daemon", program="hostapd", word=f"mn{os.getpid()}_")
        hooks.ledger.record("radios", prefix=f"mn{os.getpid():05d}p")
        open_vswitch.change(["--retry", "show"], "wait for Open vSwitch")
        try:
            with hooks.in_place():
                _execute(script, arguments, hooks)
        finally:
            problems = hooks.ledger.undo_all()
        if problems:
            raise LabError(f"clean up: {'; '.join(problems)}. Type: ./run_lab.sh clean --force")


def check(script: Path) -> None:
    """Raise `RequestError` if a script cannot be read, or never hands its network over."""
    try:
        text = script.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RequestError(f"adopt {script}: {error}. Name a Python file") from error
    try:
        compile(text, str(script), "exec")
    except SyntaxError as error:
        raise RequestError(f"adopt {script}: line {error.lineno}: {error.msg}") from error
    if not PLACE.search(text):
        raise RequestError(f"adopt {script}: it never says when its network is complete. {HOW}")


def _execute(script: Path, arguments: Sequence[str], hooks: _Hooks) -> None:
    argv, where = sys.argv, os.getcwd()
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(script.absolute().parent))
    try:
        with contextlib.suppress(OSError):  # a folder that the VM does not have
            os.chdir(script.absolute().parent)
        runpy.run_path(str(script.absolute()), run_name="__main__")
    except LabError:
        raise
    except SystemExit as end:
        if end.code not in (None, 0):
            raise LabError(f"adopt {script}: the script ended with status {end.code}") from end
    except Exception as error:
        traceback.print_exc()
        raise LabError(
            f"adopt {script}: the script raised {type(error).__name__}: {error}"
        ) from error
    finally:
        hooks.release()
        os.chdir(where)
        sys.argv = argv
        sys.path.remove(str(script.absolute().parent))
    if not hooks.was_adopted:
        raise RequestError(f"adopt {script}: it ended before it handed its network over. {HOW}")
