"""Allow access only to browsers and programs that have the key, and changes only to pages of this
server.

The key is a secret in the file data/dashboard.key. A request is checked as follows:

1) The host name in the request must be one of TRUSTED_HOSTS (against DNS rebinding).
2) A request that changes anything must come from a page of this server or from a program, and must
   be JSON (against pages of other sites).
3) Every request must contain the key, as `Authorization: Bearer KEY` or as a cookie, because other
   users of this machine reach the server, too. Without a key are the addresses in OPEN, which show
   nothing of runs. A browser gets the cookie in exchange for a ticket, a random word that works
   once. The URL that the dashboard prints contains the ticket.
"""

from __future__ import annotations

import re
import secrets
from typing import NoReturn
from urllib.parse import urlsplit

from flask import Flask, Response, current_app, g, jsonify, redirect, request
from werkzeug.exceptions import SecurityError
from werkzeug.wrappers import Response as AnyResponse

from dashboard.errors import Problem
from lab.errors import show

SAFE = ("GET", "HEAD", "OPTIONS")
OPEN = ("/healthz", "/openapi.json", "/static/", "/plotly/")
PAGE = re.compile(r"(/[\w.-]+)*/?", re.ASCII)  # the path of a page: never the name of a host
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
        "object-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def protect(app: Flask) -> None:
    """Check every request to the app, and set security headers in every response."""

    @app.before_request
    def _check() -> AnyResponse | None:
        if refused := refuse_other_hosts():
            return refused
        if request.args.get("token") is not None and request.method == "GET":
            return _exchange(request.args["token"])
        g.may_change = _has_key()
        if request.method not in SAFE:
            check_same_site()
            if not g.may_change:
                _refuse_without_key()
            check_json()
        elif not g.may_change and not request.path.startswith(OPEN):
            _refuse_without_key()
        return None

    app.after_request(with_headers)


def with_headers(response: Response) -> Response:
    """Set the security headers of a response, and return it."""
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    if "Cache-Control" not in response.headers:
        response.headers["Cache-Control"] = "no-store"
    return response


def _exchange(token: str) -> AnyResponse:
    """Redirect to the same page; if `token` is the current ticket, also set the key as a cookie.

    A new ticket then replaces the current one.
    """
    ticket = current_app.config["TICKET"]
    response = redirect(request.path if PAGE.fullmatch(request.path) else "/")
    if ticket and secrets.compare_digest(token.encode(), ticket.encode()):
        current_app.config["TICKET"] = current_app.config["NEXT_TICKET"]()
        response.set_cookie(
            g.cookie,
            current_app.config["KEY"],
            httponly=True,
            samesite="Strict",
            max_age=90 * 86_400,
        )
    return response


def refuse_other_hosts() -> Response | None:
    """Return None for a request to a host name that is trusted, and else the answer to it.

    Set `g.cookie`, with which the names of this server's cookies begin. It contains the port,
    because browsers send a cookie to all ports of a host.
    """
    try:
        host = request.host  # this refuses names that are not trusted
        g.cookie = f"lab_{urlsplit('//' + host).port or 80}"
    except (SecurityError, ValueError):
        return _refused_host()
    return None


def _has_key() -> bool:
    key: str = current_app.config["KEY"]
    header = request.headers.get("Authorization", "").removeprefix("Bearer ").strip()
    sent = header or request.cookies.get(g.cookie, "")
    return not key or secrets.compare_digest(sent.encode(), key.encode())


def check_same_site() -> None:
    """Refuse a request that changes something if a page of another site sent it."""
    origin = request.headers.get("Origin")
    if origin is not None and origin.partition("://")[2] != request.host:
        raise Problem(
            403,
            f"{request.method} from {show(origin)}: only pages of this server may change anything. "
            f"Open {request.host_url}",
        )
    if request.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
        raise Problem(
            403,
            f"{request.method} from another site: only pages of this server may change anything",
        )


def check_json() -> None:
    """Refuse a request whose body is not JSON. Forms of other sites cannot send JSON."""
    if request.content_length and not request.is_json:
        raise Problem(400, "the request is not JSON: send Content-Type: application/json")


def _refuse_without_key() -> NoReturn:
    raise Problem(
        403,
        f"{request.method} {request.path[:80]}: this browser or program has no key. Open the "
        "link that ./run_lab.sh printed last (each link works in one browser), or send "
        "'Authorization: Bearer KEY' with the key in data/dashboard.key",
    )


def _refused_host() -> Response:
    """Return the answer to a request for another host name. No page can be shown: its links would
    need the host name."""
    names = ", ".join(current_app.config["TRUSTED_HOSTS"])
    response = jsonify({"error": f"this server does not have the host name sent: use {names}"})
    response.status_code = 400
    return response
