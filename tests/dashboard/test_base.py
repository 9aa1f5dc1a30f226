"""The checks that no application can leave out, whatever it admits."""

from __future__ import annotations

import socket

import pytest
from flask import g, redirect, request

from dashboard.base import application, guarding, serving
from dashboard.base.guarding import Access, cookie_name

FORM = {"data": "a=b", "content_type": "application/x-www-form-urlencoded"}


def exchange(secret):
    response = redirect(request.path)
    guarding.set_cookie(response, cookie_name("guest"), secret, 1, "Lax", secure=True)
    return response


def identify():
    g.name = request.cookies.get(cookie_name("guest"), "nobody")


@pytest.fixture(params=[True, False], ids=["json first", "json last"])
def client(request, tmp_path):
    """Return a client of an app that admits everybody."""
    app = application.new("dashboard", tmp_path, {}, {"TESTING": True})
    guarding.protect(app, Access("word", exchange, identify, lambda: None, request.param))
    app.add_url_rule("/api/it", "it", lambda: {"name": g.name}, methods=["GET", "POST"])
    return app.test_client()


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ({"json": {}, "headers": {"Host": "evil.example"}}, 400),
        ({"json": {}, "headers": {"Origin": "http://evil.example"}}, 403),
        ({"json": {}, "headers": {"Sec-Fetch-Site": "cross-site"}}, 403),
        (FORM, 400),
        ({"json": {}}, 200),
        ({"json": {}, "query_string": "word=x"}, 200),  # only GET exchanges
    ],
)
def test_what_changes_anything_is_checked_before_the_app_sees_it(client, asked, status):
    answer = client.post("/api/it", **asked)
    assert answer.status_code == status
    assert answer.headers["X-Frame-Options"] == "DENY"
    assert answer.headers["Cache-Control"] == "no-store"


def test_a_foreign_host_name_gets_no_cookie(client):
    answer = client.get("/api/it?word=x", headers={"Host": "evil.example"})
    assert (answer.status_code, answer.headers.get("Set-Cookie")) == (400, None)


def test_a_secret_becomes_a_cookie_of_this_port(client):
    answer = client.get("/api/it?word=x", base_url="https://localhost:8123")
    assert (answer.status_code, answer.headers["Location"]) == (302, "/api/it")
    parts = answer.headers["Set-Cookie"].split("; ")
    assert parts[0] == "lab_8123_guest=x"
    assert {"HttpOnly", "Secure", "SameSite=Lax", "Max-Age=86400"} < set(parts)
    assert client.get("/api/it", base_url="https://localhost:8123").json == {"name": "x"}
    assert client.get("/api/it").json == {"name": "nobody"}  # its cookies have another name


@pytest.mark.parametrize("json_first", [True, False])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_what_the_app_does_not_admit_is_refused(tmp_path, json_first, method):
    app = application.new("dashboard", tmp_path, {}, {"TESTING": True})
    access = Access("word", exchange, identify, lambda: guarding.refuse("not you"), json_first)
    guarding.protect(app, access)
    app.add_url_rule("/api/it", "it", lambda: {}, methods=["GET", "POST"])
    answer = app.test_client().open("/api/it", method=method)
    assert answer.status_code == 403
    assert answer.json == {"error": f"{method} /api/it: not you"}


def test_connections_send_small_answers_at_once():
    """asyncio sets TCP_NODELAY only on sockets whose protocol it knows."""
    with serving.listen_on(socket.AF_INET, ("127.0.0.1", 0)) as sock:
        assert sock.proto == socket.IPPROTO_TCP
