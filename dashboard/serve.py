"""The program that serves the dashboard on this machine and prints its URL.

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

import click

from dashboard.app import create_app
from dashboard.base.errors import Problem
from dashboard.base.serving import (
    FIRST_PORT,
    LOOPBACK,
    PORTS,
    absolute,
    add_extensions,
    exit_on_error,
    listen_on,
    ports,
    run_until_signal,
    server,
)
from dashboard.runs import Launcher, StartRequest
from lab import dashboard_links, plain_file, sudo
from lab.errors import LabError, MachineLacks
from lab.run.recorder import RUNS

KEY = re.compile(r"[\w-]{32,}", re.ASCII)
DEMO = StartRequest(
    scenario="testbed_wifi_lte",  # its first suggestion switches meter_throttling on
    engine="sim",
    speed=1.0,
    duration_s=300.0,
)


def listen(port: int | None) -> socket.socket:
    """Return a listening socket on `port`. If it is None, use 8080 or the next free port.

    Raise `MachineLacks` if `port` is taken, or if all tried ports are taken.
    """
    for each in ports(port):
        try:
            return listen_on(socket.AF_INET, (LOOPBACK, each))
        except OSError as error:
            if port:
                raise MachineLacks(
                    f"listen on port {port}: {error.strerror}. Choose another with --port"
                ) from error
    raise MachineLacks(
        f"listen on a port from {FIRST_PORT} on: {PORTS} ports are taken. Choose one with --port"
    )


def key(path: Path) -> str:
    """Return the secret key in the file `path`. If the file does not exist, write it with a new
    key.

    Programs need the key to read and change runs. The key stays the same when the dashboard
    restarts. The file is replaced if it belongs to somebody else, if others may open it, or if it
    does not contain a key.
    """
    try:
        kept = plain_file.read(path, most_bytes=1000).decode(errors="replace").strip()
        stat = path.stat()
    except OSError:
        return _new_key(path)
    private = stat.st_uid in (os.geteuid(), *(sudo.caller() or ())[:1]) and not stat.st_mode & 0o077
    return kept if private and KEY.fullmatch(kept) else _new_key(path)


def serve(
    port: int | None,
    browser: bool,
    demo: bool,
    runs: Path = RUNS,
    extension_folders: Sequence[str] = (),
) -> None:
    """Serve the dashboard until Ctrl-C or SIGTERM, then stop the runs that it started.

    If `browser` and there is a display, open a browser. If `demo`, start a demo run and print the
    URL of its page. `runs` is the folder that contains the run folders. `extension_folders` have
    the user's own strategies and so on.
    """
    add_extensions(extension_folders)
    sock = listen(port)
    address = f"http://{LOOPBACK}:{sock.getsockname()[1]}"
    with dashboard_links.opened(runs.parent, address) as secret:
        app = create_app(
            {
                "RUNS": runs,
                "KEY": key(runs.parent / "dashboard.key"),
                "LINK_SECRET": secret,
                "EXTENSION_FOLDERS": absolute(extension_folders),
            }
        )
        waitress = server(app, sock)
        run_until_signal(waitress)
        try:
            page = _demo(app.extensions["launcher"]) if demo else "/"
            url = dashboard_links.link(address, secret, page)
            click.echo(
                f"\n  {url}\n\nThe link works in every browser of this machine until the dashboard "
                "stops.\nCtrl-C ends the dashboard and the runs it started."
            )
            if browser and _has_display():
                shown = dashboard_links.page(runs.parent, url)
                threading.Thread(target=webbrowser.open, args=(shown,), daemon=True).start()
            signal.pause()
        except KeyboardInterrupt:
            click.echo("\nending ...", err=True)
        finally:
            app.extensions["batches"].stop_all()
            app.extensions["launcher"].stop_all()
            waitress.close()


def main(argv: Sequence[str]) -> None:
    """Serve the dashboard. The command `lab up` starts this program with its options as `argv`."""
    parser = argparse.ArgumentParser(prog="dashboard", epilog="See ./run_lab.sh up --help.")
    parser.add_argument("--port", type=int)
    parser.add_argument("--no-browser", action="store_true")
    parser.add_argument("--no-demo", action="store_true")
    parser.add_argument("--with", dest="extension_folders", action="append", default=[])
    given = parser.parse_args(argv)
    with exit_on_error():
        serve(
            given.port,
            not given.no_browser,
            not given.no_demo,
            extension_folders=given.extension_folders,
        )


def _demo(launcher: Launcher) -> str:
    """Start the demo run. Return the URL path of the page of the run.

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
