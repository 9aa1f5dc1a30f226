"""Common parts of the programs that serve the dashboard or a class: extensions, ports, Waitress,
signals and exit codes."""

from __future__ import annotations

import resource
import signal
import socket
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import click
from flask import Flask

from lab import extensions
from lab.errors import LabError

LOOPBACK = "127.0.0.1"
FIRST_PORT, PORTS = 8080, 50
THREADS = 128
MOST_CONNECTIONS, MOST_PER_ADDRESS = 3000, 300
FILES_PER_CONNECTION = 3  # with TLS
OTHER_FILES = 500  # of the server: runs, journals, pipes
SILENT_S = 20  # then a connection without a request is closed
ACCEPTED_AT_ONCE = 100


def add_extensions(folders: Iterable[str]) -> None:
    """Register the user's own strategies, scenarios and so on.

    They are in the folders of the environment variable MULTIPATH_LAB_PATH and in `folders`.
    """
    extensions.add_from_environment()
    for each in folders:
        extensions.add(Path(each))


def absolute(folders: Iterable[str]) -> tuple[str, ...]:
    """Return absolute paths, because runs are started in another working directory."""
    return tuple(str(Path(each).resolve()) for each in folders)


def ports(wanted: int | None) -> Sequence[int]:
    """Return the ports to try: only `wanted`, or 8080 and the following ports if `wanted` is
    None."""
    return [wanted] if wanted else range(FIRST_PORT, FIRST_PORT + PORTS)


def listen_on(family: int, address: Any) -> socket.socket:
    """Return a socket that listens on `address`, which must have the form that `family` requires.

    Raise `OSError` if the address is not available.
    """
    # With its protocol, so that asyncio turns off Nagle's algorithm: 2 instead of 44 ms by HTTPS.
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen(1024)
    except OSError:
        sock.close()
        raise
    return sock


@dataclass(frozen=True)
class Limits:
    """The largest numbers of connections that a server accepts: in total, and from one address."""

    total: int
    per_address: int


def limits() -> Limits:
    """Return how many connections this process can accept.

    Each connection needs open files. So first raise the limit of open files of this process to what
    `MOST_CONNECTIONS` connections need, or as far as the system permits.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = MOST_CONNECTIONS * FILES_PER_CONNECTION + OTHER_FILES
    if hard != resource.RLIM_INFINITY:
        files = min(files, hard)
    if soft != resource.RLIM_INFINITY and soft < files:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    total = (files - OTHER_FILES) // FILES_PER_CONNECTION
    return Limits(total, min(MOST_PER_ADDRESS, total // 2))


def server(
    app: Flask,
    sock: socket.socket,
    threads: int = THREADS,
    scheme: str = "http",
    is_proxy: Callable[[int], bool] | None = None,
) -> Any:
    """Return a Waitress server for the app on the socket `sock`.

    `scheme` is "http" or "https", as in the URLs that browsers use. The number of connections from
    one address is limited. With `is_proxy`, a proxy limits this number instead, and connections
    from other ports than the proxy's are closed.
    """
    from waitress.parser import HTTPRequestParser
    from waitress.server import create_server

    HTTPRequestParser.path = ""  # waitress 3.0.2 logs it, also of a request that has none
    most = limits()
    made = create_server(
        app,
        sockets=[sock],
        threads=threads,
        url_scheme=scheme,
        asyncore_use_poll=True,
        connection_limit=most.total,
        channel_timeout=SILENT_S,
        cleanup_interval=SILENT_S // 4,
        channel_request_lookahead=1,
        ident=None,
        clear_untrusted_proxy_headers=True,
        # Waitress stores a body before the app sees it. The app refuses a smaller one more clearly.
        max_request_body_size=2 * app.config["MAX_CONTENT_LENGTH"],
    )
    if is_proxy is None:
        _limit_addresses(made, most.per_address)
    else:
        _accept_only(made, is_proxy)
    return made


def _limit_addresses(waitress: Any, most: int) -> None:
    """Let a Waitress server close new connections from an address that has `most` connections
    already."""
    accept = waitress.accept

    def accept_one() -> Any:
        count = Counter(each.addr[0] for each in list(waitress.active_channels.values()))
        for _ in range(ACCEPTED_AT_ONCE):
            found = accept()
            if found is None or count[found[1][0]] < most:
                return found
            found[0].close()
        return None

    waitress.accept = accept_one


def _accept_only(waitress: Any, is_proxy: Callable[[int], bool]) -> None:
    """Let a Waitress server close new connections from ports that are not the proxy's."""
    accept = waitress.accept

    def accept_one() -> Any:
        found = accept()
        if found is None or is_proxy(found[1][1]):
            return found
        found[0].close()
        return None

    waitress.accept = accept_one


def run_until_signal(waitress: Any) -> None:
    """Start a Waitress server in a thread, and return at once.

    From now on, Ctrl-C and SIGTERM raise `KeyboardInterrupt` in the main thread.
    """
    for number in (signal.SIGINT, signal.SIGTERM):  # a background shell may ignore SIGINT
        signal.signal(number, _interrupt)
    threading.Thread(target=waitress.run, name="serve", daemon=True).start()


@contextmanager
def exit_on_error() -> Iterator[None]:
    """Run the body of the `with` statement. If it raises a `LabError`, print the error and exit
    with its code."""
    try:
        yield
    except LabError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(error.exit_code)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
