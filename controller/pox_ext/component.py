"""Open the files and sockets of the controller when POX starts, and close them when it stops."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pox.core import core
from pox.lib.recoco import Select, Task, Timer

from controller import bounded_json, topology
from controller.control import Control
from controller.errors import ControllerError, ParamsRefused, TopologyRefused
from controller.pox_ext import statistics
from controller.pox_ext.host_agents import Address, HostChannel
from controller.pox_ext.openflow13_channel import Listener
from controller.pox_ext.run_folder import RunFolder
from controller.pox_ext.session import TICK_S, Session, register_copy

AGENTS_HOST = "127.0.0.1"
MOST_AT_ONCE = 100  # datagrams of one socket before POX's other tasks


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
    strategy_source: str | None,
    of13_address: str,
) -> None:
    """Start the controller; the docstring of `launch` describes the arguments.

    If an argument is wrong, log the error and end the process with exit status 2.
    """
    log = core.getLogger("pox_ext")
    try:
        network = read_topology(topology)
        if strategy_file:
            register_copy(strategy_file, strategy_source)
        control = Control(strategy, read_params(params), network.rate_scale)
        key = read_key(key_file)
    except ControllerError as error:
        log.error("%s", error)
        logging.shutdown()
        os._exit(2)  # POX would continue without this component
    folder = RunFolder(Path(run) if run else Path(str(topology)).resolve().parent)
    writer = statistics.Writer(folder.statistics)

    hosts = DatagramSocket(hosts_port) if key else None
    channel = HostChannel(key, hosts.send) if hosts else None
    session = Session(network, control, folder, core.openflow, writer.put, patience_s, channel)
    session.restore(statistics.read(folder.statistics))
    Listener(
        of13_address, of13_port, session.channel_up, session.channel_down, session.warn
    ).start()
    if hosts:
        hosts.receive(session.host_datagram)
        DatagramSocket(agents_port).receive(session.datagram)
    Timer(TICK_S, session.tick, recurring=True)
    log.info("strategy %s on %d switches, folder %s", strategy, len(network.switches), folder.path)

    def end(_event: Any) -> None:
        writer.close()
        folder.close()

    core.addListenerByName("DownEvent", end)


def read_topology(path: str | None) -> topology.Topology:
    """Read and check the topology file.

    Raise `TopologyRefused` if `path` is empty, or if the file cannot be read or is not valid.
    """
    if not path:
        raise TopologyRefused(
            "start the controller: no topology. Add --topology=FILE (see docs/formats.md)"
        )
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise TopologyRefused(
            f"read {path}: {error.strerror}. Add --topology=FILE with a file that exists"
        ) from error
    return topology.read(text, path)


def read_params(text: str) -> dict[str, Any]:
    """Parse the parameters of a strategy; raise `ParamsRefused` if `text` is not a JSON object."""
    try:
        values = bounded_json.parse(text or "{}")
    except bounded_json.JsonRefused as error:
        raise ParamsRefused(
            f'read --params={text}: {error}. Write a JSON object such as {{"cth": 0.85}}'
        ) from error
    if not isinstance(values, dict):
        raise ParamsRefused(f'read --params={text}: it is not an object. Write {{"cth": 0.85}}')
    return values


def read_key(path: str | None) -> str:
    """Return the secret key that the agents and the controller share; "" if `path` is None.

    Raise `TopologyRefused` if the file cannot be read.
    """
    if not path:
        return ""
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise TopologyRefused(
            f"read --key_file={path}: {error.strerror}. Give the key file of the host agents"
        ) from error


class DatagramSocket(Task):  # type: ignore[misc]
    """A UDP port of the loopback interface, served in POX's event loop."""

    _take: Callable[[bytes, Address], None]

    def __init__(self, port: int) -> None:
        Task.__init__(self)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((AGENTS_HOST, port))
        self._socket.setblocking(False)

    def receive(self, handle: Callable[[bytes, Address], None]) -> None:
        """Begin to call `handle(data, sender)` for each datagram; `sender` is the sender's address.

        If `handle` raises an exception, the exception is logged and the next datagram is received.
        """
        self._take = handle
        self.start()

    def send(self, data: bytes, address: Address) -> None:
        """Send a datagram to `address`; drop it without an error if that fails."""
        with contextlib.suppress(OSError):
            self._socket.sendto(data, address)

    def run(self) -> Iterator[Any]:
        while core.running:
            yield Select([self._socket], [], [], 1.0)
            for data, sender in self._waiting():
                self._handle(data, sender)

    def _handle(self, data: bytes, sender: Address) -> None:
        try:
            self._take(data, sender)
        except Exception:  # noqa: BLE001 - POX would end the task, and no later report would arrive
            core.getLogger("pox_ext").exception("handle a datagram from %s:%d", *sender)

    def _waiting(self) -> Iterator[tuple[bytes, Address]]:
        for _ in range(MOST_AT_ONCE):
            try:
                yield self._socket.recvfrom(65536)
            except OSError:
                return
