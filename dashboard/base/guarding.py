"""Checks of requests and security headers of responses, for the dashboard and for the server of a
class.

1) The host name in the request must be one of TRUSTED_HOSTS (against DNS rebinding).
2) If the URL contains a secret from a link that the server printed, the browser gets a cookie for
   it. It is then redirected to the same page without the secret.
3) A request that changes anything must be JSON, and must not come from a page of another site.
4) The sender must be allowed to do what the request asks (`Access`).
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
    """The part of access control that differs between the dashboard and the server of a class.

    `exchange` answers a GET request with the query parameter `parameter`, which is a secret from a
    link. For all other requests, `identify` stores in `flask.g` who sent the request. Then `admit`
    refuses the request, or returns None to let it pass. If `json_first`, a body that is not JSON is
    refused before `admit` is called, otherwise after.
    """

    parameter: str
    exchange: Callable[[str], AnyResponse]
    identify: Callable[[], None]
    admit: Callable[[], AnyResponse | None]
    json_first: bool


def protect(app: Flask, access: Access) -> None:
    """Make the app check every request, and set security headers in every response."""

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
    """Raise a `Problem` with status 403. `text` says why the request is refused, and what to do."""
    raise Problem(403, f"{request.method} {request.path[:80]}: {text}")


def cookie_name(role: str = "") -> str:
    """Return the name of the cookie for a role, such as "instructor".

    The name contains the port of the server, because browsers send a cookie to all ports of a host.
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
    """Store a secret in the browser as a cookie that scripts cannot read.

    If `secure`, the browser sends the cookie only through TLS.
    """
    response.set_cookie(
        name, value, httponly=True, samesite=samesite, secure=secure, max_age=days * DAY_S
    )


def _refuse_other_hosts() -> Response | None:
    """Return an error response if the host name of the request is not trusted. Otherwise return
    None.

    Store in `g.cookie` the first part of the names of this server's cookies.
    """
    try:
        host = request.host  # this refuses names that are not trusted
        g.cookie = f"lab_{urlsplit('//' + host).port or 80}"
    except (SecurityError, ValueError):
        return _refused_host()
    return None


def _refused_host() -> Response:
    """Return the error response to a request for a host name that is not trusted.

    The response is JSON, because an HTML page would have links that contain a host name.
    """
    names = ", ".join(current_app.config["TRUSTED_HOSTS"])
    response = jsonify({"error": f"this server does not have the host name sent: use {names}"})
    response.status_code = 400
    return response


def _check_same_site() -> None:
    """Raise a `Problem` with status 403 if a page of another site sent this request."""
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
    """Raise a `Problem` with status 400 if the request has a body that is not JSON.

    HTML forms of other sites cannot send JSON.
    """
    if request.content_length and not request.is_json:
        raise Problem(400, "the request is not JSON: send Content-Type: application/json")


def _with_headers(response: Response) -> Response:
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    if "Cache-Control" not in response.headers:
        response.headers["Cache-Control"] = "no-store"
    return response
