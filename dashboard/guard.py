"""Access control of the dashboard: browsers and programs need a key.

The key is a secret in the file data/dashboard.key, because other users of this machine can reach
the server too. A program sends it as `Authorization: Bearer KEY`. A browser has it as a cookie. It
gets the cookie for a link of the dashboard, which works until the dashboard stops
(`lab.dashboard_links`). The addresses in OPEN need no key, because they show nothing about runs.
"""

from __future__ import annotations

import re
import secrets

from flask import Flask, Response, current_app, g, redirect, request
from werkzeug.wrappers import Response as AnyResponse

from dashboard.base import guarding
from dashboard.base.guarding import SAFE, Access, cookie_name
from lab import dashboard_links

OPEN = ("/healthz", "/openapi.json", "/static/", "/plotly/")
PAGE = re.compile(r"(/[\w.-]+)*/?", re.ASCII)  # the path of a page: never the name of a host


def protect(app: Flask) -> None:
    """Make the app check every request, and set security headers in every response."""
    access = Access("token", _exchange, _find_key, _admit, json_first=False)
    guarding.protect(app, access)


def _exchange(token: str) -> AnyResponse:
    """Send the browser to the same page without the token in its URL.

    If the token is of a link of this dashboard, also give the browser the key as a cookie. From
    another site's page, or from a file, a browser follows a redirect without this cookie
    (SameSite=Strict). So it then gets an empty page that opens the other one.
    """
    page = request.path if PAGE.fullmatch(request.path) else "/"
    is_foreign = request.headers.get("Sec-Fetch-Site", "none") not in ("same-origin", "none")
    response = Response(headers={"Refresh": f"0; url={page}"}) if is_foreign else redirect(page)
    if dashboard_links.is_valid(token, current_app.config["LINK_SECRET"]):
        guarding.set_cookie(response, cookie_name(), current_app.config["KEY"], 90, "Strict")
    return response


def _find_key() -> None:
    key: str = current_app.config["KEY"]
    header = request.headers.get("Authorization", "").removeprefix("Bearer ").strip()
    sent = header or request.cookies.get(cookie_name(), "")
    g.may_change = not key or secrets.compare_digest(sent.encode(), key.encode())


def _admit() -> None:
    is_open = request.method in SAFE and request.path.startswith(OPEN)
    if not g.may_change and not is_open:
        guarding.refuse(
            "this browser or program has no key. Open the link that ./run_lab.sh printed (it works "
            "until the dashboard stops), or a new one that ./run_lab.sh link prints. A program "
            "sends 'Authorization: Bearer KEY' with the key in data/dashboard.key"
        )
