"""The program that serves a class of students on this machine or on a local network, and prints the
links.

Ctrl-C ends the server and its runs. The same command continues the class.
"""

from __future__ import annotations

import argparse
import asyncio
import errno
import ipaddress
import signal
import socket
import ssl
import sys
import threading
import time
from collections import Counter
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import segno
from filelock import FileLock, Timeout

from dashboard.base.serving import (
    LOOPBACK,
    PORTS,
    SILENT_S,
    absolute,
    add_extensions,
    exit_on_error,
    limits,
    listen_on,
    ports,
    run_until_signal,
    server,
)
from dashboard.classroom import instructor_api
from dashboard.classroom.app import create_app
from dashboard.classroom.streams import STREAMS
from lab.classroom import folder, roster
from lab.classroom.door import MOST_SLOW
from lab.classroom.folder import CLASSES, ClassFolder
from lab.classroom.room import Room
from lab.errors import MachineLacks, RequestError
from lab.run.pace import checked_speed
from lab.worksheets import loading

EVERY = "::"  # an address for all interfaces, which is refused
THREADS = STREAMS + MOST_SLOW + 16  # the last ones for requests that take no time
SENT_WITHIN_S = 5.0  # time to send the last responses when the server ends


@dataclass(frozen=True)
class Options:
    name: str
    host: str = LOOPBACK
    port: int | None = None
    roster: Path | None = None
    worksheets: tuple[str, ...] = ()
    certificate: Path | None = None
    key: Path | None = None
    speed: float = 1.0
    vm: bool = False
    extension_folders: tuple[str, ...] = ()


def listen(host: str, port: int | None) -> socket.socket:
    """Return a listening socket at `host`. If `port` is None, use 8080 or the next free port.

    Raise `RequestError` if `host` is not a single address, and `MachineLacks` if no port is free.
    """
    for each in ports(port):
        try:
            family, _, _, _, address = socket.getaddrinfo(
                host or EVERY, each, type=socket.SOCK_STREAM
            )[0]
        except OSError as error:
            raise RequestError(f"--host {host}: {error.strerror or error}") from error
        if _is_every_interface(str(address[0])):
            raise RequestError(
                f"--host {host}: that is every network of this machine. Give the address of one"
                f"{own_address_hint()}"
            )
        try:
            return listen_on(family, address)
        except OSError as error:
            if port or error.errno != errno.EADDRINUSE:
                raise MachineLacks(
                    f"listen on {host}, port {each}: {error.strerror}{own_address_hint()}"
                ) from error
    raise MachineLacks(f"listen on {host}: {PORTS} ports are taken. Choose one with --port")


def _is_every_interface(address: str) -> bool:
    found = ipaddress.ip_address(address.partition("%")[0])
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return (mapped or found).is_unspecified


def own_address_hint() -> str:
    """Return the end of an error message or hint: a comma, and an example of `--host` with an
    address of this machine.

    Return "" if this machine has no network address.
    """
    found = own_address()
    return f", such as --host {found}" if found else ""


def own_address() -> str | None:
    """Return the address that this machine uses for connections to other networks. Return None if
    it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect(("192.0.2.1", 9))  # chooses an address and sends nothing
            found = str(sock.getsockname()[0])
        except OSError:
            return None
    return None if found.startswith("127.") else found


def opened(options: Options, classes: Path = CLASSES) -> ClassFolder:
    """Return the class with the name in `options`. Make the class if it does not exist.

    Raise `RequestError` if the class exists and `options` also gives worksheets or a list of
    students.
    """
    if options.name in folder.names(classes):
        if options.worksheets or options.roster:
            raise RequestError(
                f"class '{options.name}' has begun: leave out --worksheet and --roster to continue "
                "it, or choose another --name"
            )
        return folder.find(options.name, classes)
    listed = roster.from_csv(options.roster) if options.roster else None
    return folder.make(options.name, options.worksheets or loading.names(), listed, classes)


def serve(options: Options, classes: Path = CLASSES) -> None:
    """Serve a class until Ctrl-C or SIGTERM, or until the instructor deletes the class."""
    add_extensions(options.extension_folders)
    settings = _tls(options)
    with listen(options.host, options.port) as sock:
        found = opened(options, classes)
        try:
            with FileLock(found.path / folder.LOCK, timeout=0):
                _serve(options, Room(found), sock, settings)
        except Timeout as error:
            text = f"class '{options.name}' is served already: end that first"
            raise RequestError(text) from error


def _serve(
    options: Options, room: Room, sock: socket.socket, settings: ssl.SSLContext | None
) -> None:
    port = sock.getsockname()[1]
    host = f"[{options.host}]" if ":" in options.host else options.host
    link = f"{'https' if settings else 'http'}://{host}:{port}"
    config = {
        "LINK": link,
        "SPEED": options.speed,
        "VM": options.vm,
        "EXTENSION_FOLDERS": options.extension_folders,
        "SECURE": bool(settings),
        "ONLY_HERE": only_here(options.host),
        "TRUSTED_HOSTS": [host, *(["localhost"] if host == LOOPBACK else [])],
        "END": _end,
    }
    proxy = None
    if settings:
        inner = listen(LOOPBACK, None)
        proxy = TlsProxy(sock, settings, inner.getsockname()[1])
        config["ADDRESS_OF"] = proxy.address_of
        sock = inner
    app = create_app(room, config)
    scheme = "https" if settings else "http"
    waitress = server(app, sock, THREADS, scheme, proxy.has_port if proxy else None)
    run_until_signal(waitress)
    conductor = app.extensions["conductor"]
    conductor.start()
    if proxy:
        proxy.start()
    try:
        _print_links(room, link, options)
        signal.pause()
    except KeyboardInterrupt:
        click.echo("\nending ...", err=True)
    finally:
        conductor.stop()
        send_the_rest(waitress)
        if proxy:
            proxy.close()
        waitress.close()
        room.close()
        _print_journal_end(room)


def _print_journal_end(room: Room) -> None:
    if not room.folder.journal.exists():  # the class was wiped
        return
    lines, head = room.journal_end()
    name = room.folder.name
    click.echo(f"The journal has {lines} lines; the digest of the last one is\n\n  {head}\n")
    click.echo(f"Keep it: ./run_lab.sh grade {name} --digest DIGEST shows later changes.")


def send_the_rest(waitress: Any) -> None:
    """Wait until Waitress has sent all responses, but at most `SENT_WITHIN_S` seconds."""
    ends = time.monotonic() + SENT_WITHIN_S
    while any(each.total_outbufs_len for each in list(waitress.active_channels.values())):
        if time.monotonic() > ends:
            return
        time.sleep(0.01)


def _print_links(room: Room, link: str, options: Options) -> None:
    join = link + instructor_api.join_path(room)
    click.echo(f"\nClass {room.folder.name}. Students open\n\n  {join}\n")
    if sys.stdout.isatty():
        segno.make(join).terminal(compact=True)
    click.echo(f"or {link} with the code {room.folder.settings.code}.\n")
    click.echo(
        f"Your own link, for nobody else:\n\n  {link}{instructor_api.instructor_path(room)}\n"
    )
    click.echo(f"For the projector:\n\n  {link}{instructor_api.projector_path(room)}\n")
    if warning := only_here(options.host):
        click.echo(warning)
    elif not options.certificate:
        click.echo("Plain HTTP: others in this network can read along. See --certificate.")
    click.echo("Ctrl-C ends the server. The same command continues the class.")


def only_here(host: str) -> str:
    """Return a warning if other machines cannot reach `host`, with what to type. Otherwise ""."""
    if host != LOOPBACK:
        return ""
    hint = own_address_hint()
    return f"Only this machine reaches it. For a room, use --host ADDRESS{hint}."


def _tls(options: Options) -> ssl.SSLContext | None:
    if (options.certificate is None) != (options.key is None):
        raise RequestError("TLS needs both --certificate and --key")
    if options.certificate is None or options.key is None:
        return None
    return context(options.certificate, options.key)


def _end() -> None:
    """Make the main thread end the server. Any thread may call this."""
    main = threading.main_thread().ident
    assert main is not None
    signal.pthread_kill(main, signal.SIGTERM)


def main(argv: Sequence[str]) -> None:
    """Serve a class. The command `lab class` starts this program with its options as `argv`.

    If a `LabError` is raised, exit with the exit code of the error.
    """
    parser = argparse.ArgumentParser(prog="class", epilog="See ./run_lab.sh class --help.")
    parser.add_argument("--name", required=True)
    parser.add_argument("--host", default=LOOPBACK)
    parser.add_argument("--port", type=int)
    for each in ("--roster", "--certificate", "--key"):
        parser.add_argument(each, type=Path)
    parser.add_argument("--worksheet", action="append", default=[])
    parser.add_argument("--speed", default="1")
    parser.add_argument("--vm", action="store_true")
    parser.add_argument("--with", dest="extension_folders", action="append", default=[])
    given = vars(parser.parse_args(argv))
    with exit_on_error():
        given["speed"] = checked_speed(given["speed"]) or 1000.0
        given["worksheets"] = tuple(given.pop("worksheet"))
        folders = absolute(given.pop("extension_folders"))
        serve(Options(**given, extension_folders=folders))


# TLS
#
# Waitress has no TLS, so a proxy in the same process accepts encrypted connections and passes their
# bytes on to Waitress on 127.0.0.1. Waitress sees the proxy's port, not the browser's address; the
# proxy knows which browser belongs to each of its ports. Other programs of this machine find
# Waitress's port, too, so it accepts connections from the proxy's ports only.


PIECE = 1 << 16  # bytes
HANDSHAKE_S = 10.0
CLOSE_S = 3.0  # for the browser's part of the end of TLS
END_S = 2.0  # for the end of all connections
LAST_ROUNDS = 20  # of the event loop; fewer than five are needed to pass on waiting bytes


def context(certificate: Path, key: Path) -> ssl.SSLContext:
    """Return the TLS settings of the server. Raise `RequestError` if `certificate` or `key` cannot
    be used."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        made.load_cert_chain(certificate, key, password="")
    except (OSError, ssl.SSLError) as error:
        raise RequestError(
            f"use {certificate} with {key}: {error.strerror or error}. Give a certificate and its "
            "private key in PEM, without a password"
        ) from error
    return made


class TlsProxy(threading.Thread):
    """Accepts TLS connections on `sock`, and passes their bytes on to `port` on 127.0.0.1.

    The number of connections from one address is limited. If a browser sends nothing for `SILENT_S`
    after the TLS handshake, its connection is closed. Once it has sent something, only the server
    at `port` closes silent connections.
    """

    def __init__(self, sock: socket.socket, settings: ssl.SSLContext, port: int) -> None:
        super().__init__(name="tls", daemon=True)
        self._sock, self._settings, self._port = sock, settings, port
        self._limits = limits()
        self._open: Counter[str] = Counter()  # connections by address, from accept to close
        self._behind: dict[int, str] = {}  # the address of the browser, by the proxy's port
        self._tasks: set[asyncio.Task[None]] = set()  # the loop itself has weak references only
        self._loop = asyncio.new_event_loop()

    def address_of(self, environ: dict[str, object]) -> str:
        """Return the network address of the browser that sent a request. `environ` is the WSGI
        environment."""
        port = environ.get("REMOTE_PORT", "0")
        return self._behind.get(int(str(port)), str(environ.get("REMOTE_ADDR", "")))

    def has_port(self, port: int) -> bool:
        """Return whether a connection from `port` on 127.0.0.1 is one of this proxy."""
        return port in self._behind

    def run(self) -> None:
        """Accept and forward connections until `close` is called."""
        asyncio.set_event_loop(self._loop)
        self._sock.setblocking(False)
        self._start(self._accept())
        self._loop.run_forever()
        self._end_tasks()
        self._sock.close()
        self._loop.close()

    def close(self) -> None:
        """Pass on what the server has sent already, then end all connections and the thread."""
        asyncio.run_coroutine_threadsafe(self._finish(), self._loop)
        self.join()

    async def _finish(self) -> None:
        await _rounds()
        self._loop.stop()

    def _end_tasks(self) -> None:
        tasks = asyncio.all_tasks(self._loop)
        for each in tasks:
            each.cancel()
        if tasks:
            self._loop.run_until_complete(asyncio.wait(tasks, timeout=END_S))
            self._loop.run_until_complete(_rounds())

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _accept(self) -> None:
        while True:
            try:
                sock, (address, *_) = await self._loop.sock_accept(self._sock)
            except OSError:  # that browser has gone, or this machine lacks something now
                await asyncio.sleep(0.1)
                continue
            most = self._limits
            if self._open[address] < most.per_address and self._open.total() < most.total:
                self._open[address] += 1
                self._start(self._serve(sock, address))
            else:
                sock.close()
            await asyncio.sleep(0)  # others have their turn, however many connections wait

    async def _serve(self, sock: socket.socket, address: str) -> None:
        try:
            with suppress(OSError):  # one side has ended the connection
                await self._pass_on(*await self._handshake(sock), address)
        finally:
            self._open -= Counter([address])

    async def _handshake(
        self, sock: socket.socket
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader = asyncio.StreamReader()
        protocol = asyncio.StreamReaderProtocol(reader)
        transport, _ = await self._loop.connect_accepted_socket(
            lambda: protocol,
            sock,
            ssl=self._settings,
            ssl_handshake_timeout=HANDSHAKE_S,
            ssl_shutdown_timeout=CLOSE_S,
        )
        return reader, asyncio.StreamWriter(transport, protocol, reader, self._loop)

    async def _pass_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, address: str
    ) -> None:
        port, ends = 0, [writer]
        try:
            first = await asyncio.wait_for(reader.read(PIECE), SILENT_S)
            if not first:
                return
            sock = socket.socket()
            sock.setblocking(False)
            sock.bind((LOOPBACK, 0))  # before it connects, because the server knows it by its port
            port = sock.getsockname()[1]
            self._behind[port] = address
            inner, outer = await self._connected(sock)
            ends.append(outer)
            outer.write(first)
            await self._both(reader, outer, inner, writer)
        except asyncio.CancelledError:  # the proxy ends
            for each in ends:
                each.transport.abort()
            raise
        finally:
            self._behind.pop(port, None)
            writer.close()
            await writer.wait_closed()

    async def _connected(
        self, sock: socket.socket
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        try:
            await self._loop.sock_connect(sock, (LOOPBACK, self._port))
        except BaseException:
            sock.close()
            raise
        return await asyncio.open_connection(sock=sock)

    async def _both(
        self,
        browser: asyncio.StreamReader,
        to_server: asyncio.StreamWriter,
        server: asyncio.StreamReader,
        to_browser: asyncio.StreamWriter,
    ) -> None:
        """Copy bytes in both directions until one side ends the connection."""
        copies = {
            asyncio.ensure_future(_copy(browser, to_server)),
            asyncio.ensure_future(_copy(server, to_browser)),
        }
        _, left = await asyncio.wait(copies, return_when=asyncio.FIRST_COMPLETED)
        for each in left:
            each.cancel()
        to_server.close()


async def _rounds() -> None:
    """Let the event loop do what waits now, and what follows from it."""
    for _ in range(LAST_ROUNDS):
        await asyncio.sleep(0)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while piece := await reader.read(PIECE):
            writer.write(piece)
            await writer.drain()
