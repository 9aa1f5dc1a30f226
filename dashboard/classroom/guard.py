"""Access control of a class: who sent a request, and whether the request is allowed.

Every address except those in OPEN requires a role: student, instructor or projector. A role is
recognised by a cookie. A browser can have several roles: an instructor may also join as a student
to try a worksheet.
"""

from __future__ import annotations

from collections.abc import Callable

from flask import Flask, Response, current_app, g, redirect, request
from werkzeug.wrappers import Response as AnyResponse

from dashboard.base import errors, guarding
from dashboard.base.errors import Problem
from dashboard.base.guarding import SAFE, Access, cookie_name
from dashboard.classroom.requests import room
from lab.classroom import secrets
from lab.classroom.door import Attempts
from lab.classroom.lesson import Forbidden, NotNow, TooMuch, Unknown

OPEN = ("/", "/healthz", "/api/class", "/api/class/join", "/api/class/return")
OPEN_FOLDERS = ("/static/", "/plotly/")
INSTRUCTOR = ("/instructor", "/api/instructor")
PROJECTOR = ("/projector", "/api/projector")
SEAT = "seat"
CHANGES_PER_MINUTE, READS_PER_MINUTE = 240, 1200  # by one seat


def protect(app: Flask) -> None:
    """Make the app check every request, and set security headers in every response."""
    changes, reads = Attempts(CHANGES_PER_MINUTE, 60.0), Attempts(READS_PER_MINUTE, 60.0)

    def admit() -> AnyResponse | None:
        if g.seat and not request.path.startswith(OPEN_FOLDERS):
            made = reads if request.method in SAFE else changes
            made.check(g.seat)
            made.count(g.seat)
        if not _may_pass(request.path):
            return _turn_away()
        return None

    guarding.protect(app, Access("key", _exchange, _find_roles, admit, json_first=True))


def register_refusals(app: Flask) -> None:
    """Make the app convert the exceptions of `lab.classroom.lesson` to error responses."""
    for kind, status in ((Unknown, 404), (NotNow, 409), (Forbidden, 403), (TooMuch, 429)):
        app.register_error_handler(kind, _handler(status))


def set_cookie(response: AnyResponse, role: str, value: str) -> None:
    """Store the secret `value` in the browser as the cookie of a role.

    For a student, the secret is the one made when joining. For the instructor and the projector, it
    is their key.
    """
    is_secure = current_app.config["SECURE"]
    # Lax: a student who comes by a link from a chat keeps the seat
    guarding.set_cookie(response, cookie_name(role), value, 7, "Lax", is_secure)


def address() -> str:
    """Return the network address of the browser. Behind the TLS proxy, this is not the address of
    the proxy."""
    return str(current_app.config["ADDRESS_OF"](request.environ))


def _handler(status: int) -> Callable[[Exception], Response]:
    def handle(error: Exception) -> Response:
        response = errors.answer(status, str(error))
        if isinstance(error, TooMuch):
            response.headers["Retry-After"] = f"{max(1, round(error.wait_s))}"
        return response

    return handle


def _find_roles() -> None:
    settings = room().folder.settings
    g.seat = room().seat_of(request.cookies.get(cookie_name(SEAT), ""))
    g.instructor = _has("instructor", settings.instructor_key)
    g.projector = g.instructor or _has("projector", settings.projector_key)


def _has(role: str, key: str) -> bool:
    return secrets.same(request.cookies.get(cookie_name(role), ""), key)


def _may_pass(path: str) -> bool:
    if path in OPEN or path.startswith(OPEN_FOLDERS):
        return True
    if _is_in(path, INSTRUCTOR):
        return bool(g.instructor)
    if _is_in(path, PROJECTOR):
        return bool(g.projector)
    return bool(g.seat or g.projector)


def _is_in(path: str, places: tuple[str, ...]) -> bool:
    return any(path == each or path.startswith(f"{each}/") for each in places)


def _turn_away() -> AnyResponse:
    if request.method not in SAFE or request.path.startswith("/api/"):
        guarding.refuse("join the class first, or open your own link")
    return redirect("/")


def _exchange(key: str) -> AnyResponse:
    """Answer a request with a key in its URL: set a cookie, and redirect to the page without the
    key.

    Raise a `Problem` with status 403 if the key is wrong.
    """
    settings = room().folder.settings
    for role, wanted in (
        ("instructor", settings.instructor_key),
        ("projector", settings.projector_key),
    ):
        if request.path == f"/{role}" and secrets.same(key, wanted):
            response = redirect(request.path)
            set_cookie(response, role, key)
            return response
    raise Problem(403, "the key in this link is wrong: copy the whole link from the terminal")
