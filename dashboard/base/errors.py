"""Conversion of errors to HTTP responses.

The response to an API request is JSON: `{"error": "what was tried, why it failed, what to do"}`.
The response to any other request is an HTML page.
"""

from __future__ import annotations

from flask import Flask, Response, current_app, jsonify, render_template, request
from werkzeug.exceptions import HTTPException

from lab.errors import LabError, MachineLacks, RequestError

TEXTS = {
    404: "there is nothing at this address. /openapi.json lists all addresses",
    405: "this address does not accept this method. /openapi.json lists all methods",
    413: "the request is too long",
}


class Problem(Exception):
    """Raised in a handler to answer the request with an error text and an HTTP status.

    `more` has additional fields of the JSON response.
    """

    def __init__(self, status: int, text: str, **more: str) -> None:
        super().__init__(text)
        self.status, self.text, self.more = status, text, more


def whole_number(text: str) -> int | None:
    """Return `text` as a number if it has 1 to 18 decimal digits and nothing else. Otherwise return
    None."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 18 else None


def answer(status: int, text: str, **more: str) -> Response:
    """Return an error response: JSON for an API request, otherwise an HTML page.

    `more` has additional fields of the JSON response.
    """
    if request.path.startswith("/api/") or request.path in ("/healthz", "/openapi.json"):
        response = jsonify({"error": text, **more})
    else:
        response = _page(status, text)
    response.status_code = status
    if status in (429, 503):
        response.headers["Retry-After"] = "5"
    return response


def _page(status: int, text: str) -> Response:
    """Return an error page. Return plain text if the template cannot be loaded.

    That happens, for instance, if no file descriptors are left.
    """
    try:
        page = current_app.config.get("ERROR_PAGE", "error.html")
        return Response(render_template(page, status=status, text=text))
    except (OSError, ImportError):
        return Response(text, mimetype="text/plain")


def register(app: Flask) -> None:
    """Make the app convert exceptions of its handlers to error responses."""

    @app.errorhandler(Problem)
    def _problem(error: Problem) -> Response:
        return answer(error.status, error.text, **error.more)

    @app.errorhandler(LabError)
    def _lab(error: LabError) -> Response:
        match error:
            case RequestError():
                status = 422
            case MachineLacks():
                status = 409
            case _:
                status = 503
        return answer(status, str(error))

    @app.errorhandler(OSError)
    def _shortage(error: OSError) -> Response:
        return answer(503, f"answer this request: {error.strerror or error}. Try again")

    @app.errorhandler(MemoryError)
    def _memory(_: MemoryError) -> Response:
        return answer(503, "answer this request: this machine has no memory left. Try again")

    @app.errorhandler(HTTPException)
    def _http(error: HTTPException) -> Response:
        code = error.code or 500
        return answer(code, TEXTS.get(code, error.description or error.name))
