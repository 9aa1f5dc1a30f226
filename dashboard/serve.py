"""Serve the dashboard on this machine and print its URL.

Ctrl-C ends the dashboard and the runs that it started.
"""

from __future__ import annotations

import argparse
import os
import re
import secrets
import signal
import socket
import sys
import threading
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import click
from flask import Flask

from dashboard import create_app
from dashboard.errors import Problem
from dashboard.runs import Launcher, StartRequest
from lab import extensions, plain_file, sudo
from lab.errors import LabError, MachineLacks
from lab.run.recorder import RUNS

HOST = "127.0.0.1"
FIRST_PORT, PORTS = 8080, 50
KEY = re.compile(r"[\w-]{32,}", re.ASCII)
THREADS = 128
DEMO = StartRequest(
    scenario="testbed_wifi_lte",  # its first suggestion switches meter_throttling on
    engine="sim",
    speed=1.0,
    duration_s=300.0,
)


def listen(port: int | None) -> socket.socket:
    """Return a listening socket on `port`; with None, on 8080 or the next free port.

    Raise `MachineLacks` if the port is taken, or if none of the tried ports is free.
    """
    for each in [port] if port else range(FIRST_PORT, FIRST_PORT + PORTS):
        try:
            return listen_on(socket.AF_INET, (HOST, each))
        except OSError as error:
            if port:
                raise MachineLacks(
                    f"listen on port {port}: {error.strerror}. Choose another with --port"
                ) from error
    raise MachineLacks(
        f"listen on a port from {FIRST_PORT} on: {PORTS} ports are taken. Choose one with --port"
    )


def listen_on(family: int, address: Any) -> socket.socket:
    """Return a socket of an address family that listens on `address`. Raise `OSError` if it cannot
    have this address."""
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen(1024)
    except OSError:
        sock.close()
        raise
    return sock


def key(path: Path) -> str:
    """Return the key in the file `path`; if there is none, create the file with a new key.

    Programs send this key to read and change runs. The key stays the same when the dashboard
    restarts. A file that another user owns or can read, or with other content, is replaced.
    """
    try:
        kept = plain_file.read(path, most_bytes=1000).decode(errors="replace").strip()
        stat = path.stat()
    except OSError:
        return _new_key(path)
    private = stat.st_uid in (os.geteuid(), *(sudo.caller() or ())[:1]) and not stat.st_mode & 0o077
    return kept if private and KEY.fullmatch(kept) else _new_key(path)


def server(app: Flask, sock: socket.socket, threads: int = THREADS, scheme: str = "http") -> Any:
    """Return a Waitress server for the app on the socket `sock`. `scheme` begins the URLs that
    browsers use."""
    from waitress.parser import HTTPRequestParser
    from waitress.server import create_server

    HTTPRequestParser.path = ""  # waitress 3.0.2 logs it, also of a request that has none
    return create_server(
        app,
        sockets=[sock],
        threads=threads,
        url_scheme=scheme,
        asyncore_use_poll=True,
        connection_limit=1000,
        channel_request_lookahead=1,
        ident=None,
        clear_untrusted_proxy_headers=True,
    )


def run_until_signal(waitress: Any) -> None:
    """Run a Waitress server in a thread. From now on, Ctrl-C and SIGTERM raise `KeyboardInterrupt`
    in the main thread."""
    for number in (signal.SIGINT, signal.SIGTERM):  # a background shell may ignore SIGINT
        signal.signal(number, _interrupt)
    threading.Thread(target=waitress.run, name="serve", daemon=True).start()


def serve(
    port: int | None,
    browser: bool,
    demo: bool,
    runs: Path = RUNS,
    extension_folders: Sequence[str] = (),
) -> None:
    """Serve until Ctrl-C or SIGTERM, then stop the runs that the dashboard started.

    If `browser`, open a browser if there is a display. If `demo`, start a demo run and print the
    URL of its page. `runs` is the folder of all run folders. `extension_folders` are the folders
    given by `--with`.
    """
    extensions.add_from_environment()
    for each in extension_folders:
        extensions.add(Path(each))
    sock = listen(port)
    address = f"http://{HOST}:{sock.getsockname()[1]}"
    ticket = secrets.token_urlsafe(16)

    def next_ticket() -> str:
        made = secrets.token_urlsafe(16)
        click.echo(
            f"\nA browser has used this link. For another browser:\n\n  {address}/?token={made}\n"
        )
        return made

    app = create_app(
        {
            "RUNS": runs,
            "KEY": key(runs.parent / "dashboard.key"),
            "TICKET": ticket,
            "NEXT_TICKET": next_ticket,
            "EXTENSION_FOLDERS": tuple(str(Path(each).resolve()) for each in extension_folders),
        }
    )
    launcher: Launcher = app.extensions["launcher"]
    waitress = server(app, sock)
    run_until_signal(waitress)
    try:
        page = _demo(launcher) if demo else "/"
        url = f"{address}{page}?token={ticket}"
        click.echo(f"\n  {url}\n\nCtrl-C ends the dashboard and the runs it started.")
        if browser and _has_display():
            threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
        signal.pause()
    except KeyboardInterrupt:
        click.echo("\nending ...", err=True)
    finally:
        app.extensions["batches"].stop_all()
        launcher.stop_all()
        waitress.close()


def main(argv: Sequence[str]) -> None:
    """Start the dashboard with the arguments that the command `lab up` passes on."""
    parser = argparse.ArgumentParser(prog="dashboard", epilog="See ./run_lab.sh up --help.")
    parser.add_argument("--port", type=int)
    parser.add_argument("--no-browser", action="store_true")
    parser.add_argument("--no-demo", action="store_true")
    parser.add_argument("--with", dest="extension_folders", action="append", default=[])
    given = parser.parse_args(argv)
    try:
        serve(
            given.port,
            not given.no_browser,
            not given.no_demo,
            extension_folders=given.extension_folders,
        )
    except LabError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(error.exit_code)


def _demo(launcher: Launcher) -> str:
    """Start the demo run and return the path of its page in the URL.

    If the run cannot start, print the reason and return "/".
    """
    try:
        return f"/runs/{launcher.start(DEMO)}"
    except (LabError, Problem) as error:
        click.echo(f"the demo run did not start: {error}", err=True)
        return "/"


def _new_key(path: Path) -> str:
    made, beside = secrets.token_urlsafe(24), path.with_name(f".{path.name}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with plain_file.create(beside, 0o600) as file:
            file.write(made)
        beside.replace(path)
    except OSError as error:
        raise LabError(
            f"write {path}: {error.strerror}. Make the folder writable, or free space"
        ) from error
    return made


def _has_display() -> bool:
    return sys.platform in ("darwin", "win32") or bool(
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
