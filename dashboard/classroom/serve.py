"""Serve a class on this machine or on a local network, and print the links.

Ctrl-C ends the server and its runs; the same command continues the class.
"""

from __future__ import annotations

import argparse
import errno
import signal
import socket
import ssl
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import segno
from filelock import FileLock, Timeout

from dashboard.classroom import create_app, instructor_api
from dashboard.classroom.tls import TlsDoor, context
from dashboard.serve import FIRST_PORT, PORTS, listen_on, run_until_signal, server
from lab import extensions
from lab.classroom import folder, roster
from lab.classroom.folder import CLASSES, ClassFolder
from lab.classroom.room import Room
from lab.errors import LabError, MachineLacks, RequestError
from lab.run.pace import checked_speed
from lab.worksheets import loading

LOOPBACK = "127.0.0.1"
ALL_INTERFACES = ("0.0.0.0", "::", "")  # noqa: S104 - they are refused
THREADS = 320
SENT_WITHIN_S = 5.0  # by a server that ends


@dataclass(frozen=True)
class Wanted:
    """Hold what the command line says about a class."""

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
    """Return a socket that listens on an address of this machine; with `port` None, on 8080 or the
    next free port.

    Raise `RequestError` if `host` is no single address, and `MachineLacks` if no port is free.
    """
    if host in ALL_INTERFACES:
        raise RequestError(
            f"--host {host}: that is every network of this machine. Give the address of one"
            f"{own_address_hint()}"
        )
    for each in [port] if port else range(FIRST_PORT, FIRST_PORT + PORTS):
        try:
            family, _, _, _, address = socket.getaddrinfo(host, each, type=socket.SOCK_STREAM)[0]
        except OSError as error:
            raise RequestError(f"--host {host}: {error.strerror or error}") from error
        try:
            return listen_on(family, address)
        except OSError as error:
            if port or error.errno != errno.EADDRINUSE:
                raise MachineLacks(
                    f"listen on {host}, port {each}: {error.strerror}{own_address_hint()}"
                ) from error
    raise MachineLacks(f"listen on {host}: {PORTS} ports are taken. Choose one with --port")


def own_address_hint() -> str:
    """Return `, such as --host ADDRESS` with this machine's address in its network, or nothing."""
    found = own_address()
    return f", such as --host {found}" if found else ""


def own_address() -> str | None:
    """Return the address with which this machine speaks to other networks; None without one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect(("192.0.2.1", 9))  # chooses an address and sends nothing
            found = str(sock.getsockname()[0])
        except OSError:
            return None
    return None if found.startswith("127.") else found


def opened(wanted: Wanted, classes: Path = CLASSES) -> ClassFolder:
    """Return the class of this name; make its folder if it is new."""
    if wanted.name in folder.names(classes):
        if wanted.worksheets or wanted.roster:
            raise RequestError(
                f"class '{wanted.name}' has begun: leave out --worksheet and --roster to continue "
                "it, or choose another --name"
            )
        return folder.find(wanted.name, classes)
    listed = roster.from_csv(wanted.roster) if wanted.roster else None
    return folder.make(wanted.name, wanted.worksheets or loading.names(), listed, classes)


def serve(wanted: Wanted, classes: Path = CLASSES) -> None:
    """Serve a class until Ctrl-C, SIGTERM, or until the instructor deletes it."""
    extensions.add_from_environment()
    for each in wanted.extension_folders:
        extensions.add(Path(each))
    settings = _tls(wanted)
    with listen(wanted.host, wanted.port) as sock:
        found = opened(wanted, classes)
        try:
            with FileLock(found.path / folder.LOCK, timeout=0):
                _serve(wanted, Room(found), sock, settings)
        except Timeout as error:
            text = f"class '{wanted.name}' is served already: end that first"
            raise RequestError(text) from error


def _serve(
    wanted: Wanted, room: Room, sock: socket.socket, settings: ssl.SSLContext | None
) -> None:
    port = sock.getsockname()[1]
    host = f"[{wanted.host}]" if ":" in wanted.host else wanted.host
    link = f"{'https' if settings else 'http'}://{host}:{port}"
    config = {
        "LINK": link,
        "SPEED": wanted.speed,
        "VM": wanted.vm,
        "EXTENSION_FOLDERS": wanted.extension_folders,
        "SECURE": bool(settings),
        "TRUSTED_HOSTS": [host, *(["localhost"] if host == LOOPBACK else [])],
        "END": _end,
    }
    door = None
    if settings:
        inner = listen(LOOPBACK, None)
        door = TlsDoor(sock, settings, inner.getsockname()[1])
        config["ADDRESS_OF"] = door.address_of
        sock = inner
    app = create_app(room, config)
    waitress = server(app, sock, THREADS, "https" if settings else "http")
    run_until_signal(waitress)
    conductor = app.extensions["conductor"]
    conductor.start()
    if door:
        door.start()
    try:
        _print_links(room, link, wanted)
        signal.pause()
    except KeyboardInterrupt:
        click.echo("\nending ...", err=True)
    finally:
        conductor.stop()
        send_the_rest(waitress)
        if door:
            door.close()
        waitress.close()
        room.close()


def send_the_rest(waitress: Any) -> None:
    """Wait until all answers that were given to a Waitress server have been sent, at most
    `SENT_WITHIN_S`."""
    ends = time.monotonic() + SENT_WITHIN_S
    while any(each.total_outbufs_len for each in list(waitress.active_channels.values())):
        if time.monotonic() > ends:
            return
        time.sleep(0.01)


def _print_links(room: Room, link: str, wanted: Wanted) -> None:
    join = link + instructor_api.join_path(room)
    click.echo(f"\nClass {room.folder.name}. Students open\n\n  {join}\n")
    if sys.stdout.isatty():
        segno.make(join).terminal(compact=True)
    click.echo(f"or {link} with the code {room.folder.settings.code}.\n")
    click.echo(
        f"Your own link, for nobody else:\n\n  {link}{instructor_api.instructor_path(room)}\n"
    )
    click.echo(f"For the projector:\n\n  {link}{instructor_api.projector_path(room)}\n")
    if wanted.host == LOOPBACK:
        hint = own_address_hint()
        click.echo(f"Only this machine reaches it. For a room, use --host ADDRESS{hint}.")
    elif not wanted.certificate:
        click.echo("Plain HTTP: others in this network can read along. See --certificate.")
    click.echo("Ctrl-C ends the server. The same command continues the class.")


def _tls(wanted: Wanted) -> ssl.SSLContext | None:
    if (wanted.certificate is None) != (wanted.key is None):
        raise RequestError("TLS needs both --certificate and --key")
    if wanted.certificate is None or wanted.key is None:
        return None
    return context(wanted.certificate, wanted.key)


def _end() -> None:
    """End the server from any of its threads."""
    main = threading.main_thread().ident
    assert main is not None
    signal.pthread_kill(main, signal.SIGTERM)


def main(argv: Sequence[str]) -> None:
    """Serve a class with the arguments that the command `lab class` passes on."""
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
    try:
        given["speed"] = checked_speed(given["speed"]) or 1000.0
        given["worksheets"] = tuple(given.pop("worksheet"))
        paths = given.pop("extension_folders")
        folders = tuple(str(Path(each).resolve()) for each in paths)
        serve(Wanted(**given, extension_folders=folders))
    except LabError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(error.exit_code)
