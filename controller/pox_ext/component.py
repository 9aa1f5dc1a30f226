"""Open files and sockets when POX starts, and close them when it stops."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pox.core import core
from pox.lib.recoco import Select, Task, Timer

from controller import plan
from controller.control import Control
from controller.errors import ControllerError, ParamsRefused, PlanRefused
from controller.pox_ext import statistics
from controller.pox_ext.host_channel import Address, HostChannel
from controller.pox_ext.openflow13_channel import Listener
from controller.pox_ext.run_folder import RunFolder
from controller.pox_ext.session import TICK_S, Session
from controller.strategies import from_file

AGENTS_HOST = "127.0.0.1"


def start(
    strategy: str,
    topology: str | None,
    run: str | None,
    params: str,
    of13_port: int,
    agents_port: int,
    patience_s: float,
    hosts_port: int,
    key_file: str | None,
    strategy_file: str | None,
) -> None:
    """Check the arguments, then start the controller; an error ends POX with one sentence."""
    log = core.getLogger("pox_ext")
    try:
        network = read_topology(topology)
        if strategy_file:
            from_file.register(strategy_file)
        control = Control(strategy, read_params(params), network.rate_scale)
        key = read_key(key_file)
    except ControllerError as error:
        log.error("%s", error)
        logging.shutdown()
        os._exit(2)  # POX would continue without this component
    folder = RunFolder(Path(run) if run else Path(str(topology)).resolve().parent)
    writer = statistics.Writer(folder.statistics)

    hosts = (
        DatagramSocket(hosts_port, lambda data, sender: session.host_datagram(data, sender))
        if key
        else None
    )
    channel = HostChannel(key, hosts.send) if hosts else None
    session = Session(network, control, folder, core.openflow, writer.put, patience_s, channel)
    session.restore(statistics.read(folder.statistics))
    Listener(of13_port, session.channel_up, session.channel_down, session.warn).start()
    DatagramSocket(agents_port, session.datagram)
    Timer(TICK_S, session.tick, recurring=True)
    log.info("strategy %s on %d switches, folder %s", strategy, len(network.switches), folder.path)

    def end(_event: Any) -> None:
        writer.close()
        folder.close()

    core.addListenerByName("DownEvent", end)


def read_topology(path: str | None) -> plan.Plan:
    """Return the plan in a file; raise `PlanRefused` if there is none."""
    if not path:
        raise PlanRefused(
            "start the controller: no topology. Add --topology=FILE (see docs/formats.md)"
        )
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise PlanRefused(
            f"read {path}: {error.strerror}. Add --topology=FILE with a file that exists"
        ) from error
    return plan.read(text, path)


def read_params(text: str) -> dict[str, Any]:
    """Return the parameters in a JSON object; raise `ParamsRefused` if it is none."""
    try:
        values = json.loads(text or "{}")
    except ValueError as error:
        raise ParamsRefused(
            f'read --params={text}: {error}. Write a JSON object such as {{"cth": 0.85}}'
        ) from error
    if not isinstance(values, dict):
        raise ParamsRefused(f'read --params={text}: it is not an object. Write {{"cth": 0.85}}')
    return values


def read_key(path: str | None) -> str:
    """Return the key that the hosts and this controller share, empty without a file."""
    if not path:
        return ""
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise PlanRefused(
            f"read --key_file={path}: {error.strerror}. Give the key file of the host agents"
        ) from error


class DatagramSocket(Task):  # type: ignore[misc]
    """Receive datagrams at a port of this machine, and send from there.

    `handle` is called with each datagram and its sender's address.
    """

    def __init__(self, port: int, handle: Callable[[bytes, Address], None]) -> None:
        Task.__init__(self)
        self._take = handle
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((AGENTS_HOST, port))
        self._socket.setblocking(False)
        self.start()

    def send(self, data: bytes, address: Address) -> None:
        """Send a datagram; one that cannot be sent counts as lost."""
        with contextlib.suppress(OSError):
            self._socket.sendto(data, address)

    def run(self) -> Iterator[Any]:
        """Receive datagrams in POX's cooperative loop."""
        while core.running:
            yield Select([self._socket], [], [], 1.0)
            for data, sender in self._waiting():
                self._take(data, sender)

    def _waiting(self) -> Iterator[tuple[bytes, Address]]:
        while True:
            try:
                yield self._socket.recvfrom(65536)
            except OSError:
                return
