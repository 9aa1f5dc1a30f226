"""Access: hosts, origins, keys, names of folders, headers."""

from __future__ import annotations

import json

import pytest
from flask import Flask

from dashboard.app import create_app
from lab import dashboard_links

KEY = "the-key"
SECRET = "of this start of the dashboard"
START = {"scenario": "nope"}


@pytest.fixture
def locked(runs) -> Flask:
    return create_app(
        {
            "RUNS": runs,
            "KEY": KEY,
            "LINK_SECRET": SECRET,
            "TESTING": True,
        }
    )


def test_without_the_key_nothing_is_read_or_changed(locked):
    client, with_key = locked.test_client(), {"Authorization": f"Bearer {KEY}"}
    for path in ("/api/runs", "/api/runs/plain/export?format=zip", "/api/runs/plain/stream"):
        for ask in (client.get, client.head):
            assert ask(path).status_code == 403, path
    for answer in (
        client.get("/api/runs"),
        client.post("/api/runs", json=START),
        client.delete("/api/runs/plain"),
        client.patch("/api/runs/plain", json={}),
    ):
        assert answer.status_code == 403
        assert "data/dashboard.key" in answer.json["error"]
    page = client.get("/runs/plain")
    assert page.status_code == 403
    assert "Open the link that ./run_lab.sh printed" in page.text
    assert client.get("/api/runs", headers=with_key).status_code == 200
    assert client.post("/api/runs", json=START, headers=with_key).status_code == 422
    for path in ("/healthz", "/openapi.json", "/static/icon.svg"):  # they show nothing of runs
        with client.get(path) as answer:
            assert answer.status_code == 200


OPEN = {"/healthz", "/openapi.json", "/static/<path:filename>", "/plotly/<wanted>.js"}


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"])
def test_every_other_address_needs_the_key(locked, method):
    """The addresses are those of the app, so a new one is tried, too."""
    rules = {each.rule: each for each in locked.url_map.iter_rules()}
    assert rules.keys() >= OPEN
    for name, rule in rules.items():
        path = rule.build(dict.fromkeys(rule.arguments, "plain"))[1]
        answer = locked.test_client().open(path, method=method, json={})
        is_open = name in OPEN and method in ("GET", "HEAD", "OPTIONS")
        assert (answer.status_code != 403) == is_open, (path, answer.status_code)
        answer.close()


def path_of(secret: str, page: str = "/") -> str:
    return dashboard_links.link("", secret, page)


def test_a_link_works_in_every_browser(locked):
    first_link = path_of(SECRET, "/runs")
    for client in (locked.test_client(), locked.test_client()):
        answer = client.get(first_link)
        assert (answer.status_code, answer.headers["Location"]) == (302, "/runs")
        cookie = answer.headers["Set-Cookie"]
        assert "HttpOnly" in cookie
        assert "Secure" not in cookie  # over plain HTTP it would never come back
        assert "SameSite=Strict" in cookie
        assert client.post("/api/runs", json=START).status_code == 422
    second_link = path_of(SECRET)
    assert second_link.partition("token=")[2] != first_link.partition("token=")[2]
    assert "Set-Cookie" in locked.test_client().get(second_link).headers


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_link_works_on_a_page_of_another_site_or_in_a_file(locked, site):
    """There, a browser follows a redirect without the cookie."""
    client = locked.test_client()
    answer = client.get(path_of(SECRET, "/runs"), headers={"Sec-Fetch-Site": site})
    assert (answer.status_code, answer.headers["Refresh"]) == (200, "0; url=/runs")
    assert answer.data == b""
    assert client.post("/api/runs", json=START).status_code == 422


def test_the_address_bar_does_not_keep_the_token(locked):
    answer = locked.test_client().get(path_of(SECRET, "/runs/plain"))
    assert answer.headers["Location"] == "/runs/plain"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert answer.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    "path",
    [
        path_of("of an earlier start of the dashboard"),
        path_of(""),
        path_of(SECRET)[:-1],
        path_of(SECRET) + "0",
        "/?token=",
        "/?token=.",
        "/?token=%ff%00.",
        f"/?token={KEY}",
    ],
    ids=["earlier", "no secret", "cut", "longer", "empty", "no parts", "bytes", "key"],
)
def test_the_link_of_another_start_or_with_another_token_opens_nothing(locked, path):
    client = locked.test_client()
    answer = client.get(path, follow_redirects=True)
    assert answer.status_code == 403
    assert "./run_lab.sh link" in answer.text
    assert not client.get_cookie("lab_80")
    assert client.post("/api/runs", json=START).status_code == 403


def test_without_a_secret_no_token_opens_anything(runs):
    client = create_app({"RUNS": runs, "KEY": KEY, "TESTING": True}).test_client()
    assert client.get(path_of(""), follow_redirects=True).status_code == 403


def test_only_pages_of_this_server_may_change_anything(client):
    for headers in (
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
    ):
        assert client.post("/api/runs/plain/stop", headers=headers).status_code == 403
    assert (
        client.post("/api/runs", json=START, headers={"Origin": "http://localhost"}).status_code
        == 422
    )


def test_forms_and_broken_json_are_refused(client):
    assert (
        client.post(
            "/api/runs", data="scenario=x", content_type="application/x-www-form-urlencoded"
        ).status_code
        == 400
    )
    assert client.post("/api/runs", data="{", content_type="application/json").status_code == 400


@pytest.mark.parametrize("kind", ["text/plain", "multipart/form-data", "text/json", None])
@pytest.mark.parametrize(("method", "path"), [("POST", "/api/runs"), ("PATCH", "/api/runs/plain")])
def test_a_body_that_does_not_say_it_is_json_is_refused(client, kind, method, path):
    """A page of another site can send any text, but it cannot say that the text is JSON."""
    answer = client.open(path, method=method, data=json.dumps(START), content_type=kind)
    assert answer.status_code == 400
    assert "the request is not JSON" in answer.json["error"]


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1:99999", "[::1", "a b", "\u00e4"])
@pytest.mark.parametrize("path", ["/", "/api/runs", "/nowhere", "/?token=ticket"])
def test_a_foreign_host_name_is_refused(client, host, path):
    answer = client.get(path, headers={"Host": host})
    assert answer.status_code == 400
    assert "host name" in answer.json["error"]


@pytest.mark.parametrize(
    "path", ["/%09/evil.example", "//evil.example", "/%5c/evil.example", "/%0a/x"]
)
def test_a_token_redirects_to_no_other_host(locked, path):
    client = locked.test_client()
    answer = client.get(path, query_string="token=")
    assert (answer.status_code, answer.headers.get("Location")) in (
        (302, "/"),
        (308, None),
        (400, None),
    )


def test_an_origin_that_is_no_address_is_refused(client):
    for origin in ("http://[", "x", "http://localhost:1", ""):
        answer = client.post("/api/runs/plain/stop", headers={"Origin": origin})
        assert answer.status_code == 403


@pytest.mark.parametrize(
    "name", ["..", "%2e%2e", "..%2f..", "plain%2f..%2fplain", ".hidden", "plain%00"]
)
def test_no_name_leads_out_of_the_folder_of_runs(client, runs, name):
    (runs.parent / "manifest.json").write_text("{}")
    (runs / ".hidden").mkdir()
    for path in (
        f"/api/runs/{name}",
        f"/api/runs/{name}/export?format=zip",
        f"/api/runs/{name}/frames",
        f"/runs/{name}",
    ):
        assert client.get(path).status_code in (308, 404), path
    assert client.delete(f"/api/runs/{name}").status_code in (404, 405)
    assert (runs / "plain").is_dir()


def test_every_answer_carries_the_headers(client):
    for path in ("/", "/api/runs", "/nowhere"):
        headers = client.get(path).headers
        assert "default-src 'self'" in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"


def test_plotly_is_served_locally_compressed_and_cached(client):
    page = client.get("/runs/plain").text
    address = page.partition('src="/plotly/')[2].partition('"')[0]
    answer = client.get(f"/plotly/{address}", headers={"Accept-Encoding": "gzip"})
    assert answer.headers["Content-Encoding"] == "gzip"
    assert "immutable" in answer.headers["Cache-Control"]
    assert len(answer.data) < 2_000_000
    assert "http" not in "".join(part.partition(">")[0] for part in page.split("<script")[1:])
