"""Checks of requests and security headers of responses, the same for both applications.

What differs between them is in `Access`. A request is checked as follows:

1) The host name in the request must be one of TRUSTED_HOSTS (against DNS rebinding).
2) A secret from a link that the server printed is exchanged for a cookie, and the browser is sent
   on to the page without the secret.
3) A request that changes anything must come from a page of this server or from a program, and must
   be JSON (against pages of other sites).
4) The application must admit the request.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NoReturn
from urllib.parse import urlsplit

from flask import Flask, Response, current_app, g, jsonify, request
from werkzeug.exceptions import SecurityError
from werkzeug.wrappers import Response as AnyResponse

from dashboard.base.errors import Problem
from lab.errors import show

SAFE = ("GET", "HEAD", "OPTIONS")
DAY_S = 86_400
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


@dataclass(frozen=True)
class Access:
    """How an application decides who may do what.

    `exchange` answers a GET request that has the query parameter `parameter`, a secret from a link.
    For every other request, `identify` finds out who sent it and keeps that in `flask.g`. Then
    `admit` answers or refuses what this sender may not do, and returns None to let it pass. If
    `json_first`, a body that is not JSON is refused before `admit` is called, else after.
    """

    parameter: str
    exchange: Callable[[str], AnyResponse]
    identify: Callable[[], None]
    admit: Callable[[], AnyResponse | None]
    json_first: bool


def protect(app: Flask, access: Access) -> None:
    """Check every request to the app, and set security headers in every response."""

    @app.before_request
    def _check() -> AnyResponse | None:
        if refused := _refuse_other_hosts():
            return refused
        secret = request.args.get(access.parameter)
        if secret is not None and request.method == "GET":
            return access.exchange(secret)
        access.identify()
        if request.method in SAFE:
            return access.admit()
        _check_same_site()
        if access.json_first:
            _check_json()
            return access.admit()
        answer = access.admit()
        _check_json()
        return answer

    app.after_request(_with_headers)


def refuse(text: str) -> NoReturn:
    """Answer the request with status 403. `text` says why, and what to do."""
    raise Problem(403, f"{request.method} {request.path[:80]}: {text}")


def cookie_name(role: str = "") -> str:
    """Return the name of this server's cookie for a role.

    It contains the port, because browsers send a cookie to all ports of a host.
    """
    return f"{g.cookie}_{role}" if role else str(g.cookie)


def set_cookie(
    response: AnyResponse,
    name: str,
    value: str,
    days: int,
    samesite: Literal["Strict", "Lax"],
    secure: bool = False,
) -> None:
    """Give the browser a secret as a cookie that scripts cannot read.

    With `secure`, for servers with TLS, the browser sends it through TLS only.
    """
    response.set_cookie(
        name, value, httponly=True, samesite=samesite, secure=secure, max_age=days * DAY_S
    )


def _refuse_other_hosts() -> Response | None:
    """Return an error response if the host name of the request is not trusted, else None.

    Set `g.cookie`, the beginning of the names of this server's cookies.
    """
    try:
        host = request.host  # this refuses names that are not trusted
        g.cookie = f"lab_{urlsplit('//' + host).port or 80}"
    except (SecurityError, ValueError):
        return _refused_host()
    return None


def _refused_host() -> Response:
    """Return the response to a request for a host name that is not trusted.

    It is JSON, because the links of a page would need the host name.
    """
    names = ", ".join(current_app.config["TRUSTED_HOSTS"])
    response = jsonify({"error": f"this server does not have the host name sent: use {names}"})
    response.status_code = 400
    return response


def _check_same_site() -> None:
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


def _check_json() -> None:
    """Refuse a body that is not JSON. Forms of other sites cannot send JSON."""
    if request.content_length and not request.is_json:
        raise Problem(400, "the request is not JSON: send Content-Type: application/json")


def _with_headers(response: Response) -> Response:
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    if "Cache-Control" not in response.headers:
        response.headers["Cache-Control"] = "no-store"
    return response
