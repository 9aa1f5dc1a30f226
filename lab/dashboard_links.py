"""Links that open the dashboard in a browser.

A running dashboard keeps its address and a secret in a file of mode 600, and holds a lock on this
file. Each link has a token of its own, signed with the secret. So every link works, in any browser,
until its dashboard stops: the next dashboard has another secret.
"""

from __future__ import annotations

import fcntl
import hmac
import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TextIO
from urllib.parse import urlsplit

from lab import plain_file
from lab.errors import LabError, RequestError

NAME = "dashboard-{}.link"  # with the port, because several dashboards can run
PAGE = "dashboard-{}.html"
MOST_BYTES = 1000


@contextmanager
def opened(folder: Path, address: str) -> Iterator[str]:
    """Yield a new secret for a dashboard at `address`, such as `http://127.0.0.1:8080`.

    Meanwhile its file is in `folder`, where `running` finds it.
    """
    secret = secrets.token_urlsafe(24)
    path = folder / NAME.format(urlsplit(address).port)
    with _created(path) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        json.dump({"address": address, "secret": secret}, file)
        file.flush()
        try:
            yield secret
        finally:
            path.unlink(missing_ok=True)
            _page(folder, address).unlink(missing_ok=True)


def page(folder: Path, link: str) -> str:
    """Write an HTML file, of mode 600, that opens a link in a browser. Return its URL.

    A browser is started with this URL, because everybody on this machine can read the arguments of
    a program. The file is removed when the dashboard stops.
    """
    path = _page(folder, link)
    with _created(path) as file:
        file.write(f'<!doctype html><meta http-equiv="refresh" content="0; url={link}">\n')
    return path.resolve().as_uri()


def link(address: str, secret: str, page: str = "/") -> str:
    """Return a new link to a page of the dashboard."""
    word = secrets.token_urlsafe(9)
    return f"{address}{page}?token={word}.{_signature(secret, word)}"


def is_valid(token: str, secret: str) -> bool:
    word, _, signature = token.rpartition(".")
    expected = _signature(secret, word)
    return bool(secret) and hmac.compare_digest(signature.encode(), expected.encode())


def running(folder: Path) -> list[str]:
    """Return a new link to each dashboard that runs now and has its file in `folder`.

    Raise `RequestError` if none does.
    """
    known = [
        json.loads(text) for path in sorted(folder.glob(NAME.format("*"))) if (text := _held(path))
    ]
    if not known:
        raise RequestError("make a link: no dashboard is running. Start one: ./run_lab.sh")
    return [link(each["address"], each["secret"]) for each in known]


def _created(path: Path) -> TextIO:
    """Return a new file of mode 600, open for writing."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return plain_file.create(path, 0o600)
    except OSError as error:
        raise LabError(
            f"write {path}: {error.strerror}. Make the folder writable, or free space"
        ) from error


def _page(folder: Path, address: str) -> Path:
    return folder / PAGE.format(urlsplit(address).port)


def _signature(secret: str, word: str) -> str:
    return hmac.new(secret.encode(), word.encode(), sha256).hexdigest()


def _held(path: Path) -> str:
    """Return the content of a file that a running dashboard holds, or "" if its dashboard was
    killed."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return ""
    except BlockingIOError:
        return plain_file.read(path, most_bytes=MOST_BYTES).decode()
    except OSError as error:
        raise plain_file.failure(path, error) from error
