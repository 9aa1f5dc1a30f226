"""Access: hosts, origins, keys, names of folders, headers."""

from __future__ import annotations

import pytest
from flask import Flask

from dashboard import create_app

KEY = "the-key"
START = {"scenario": "nope"}


@pytest.fixture
def locked(runs) -> Flask:
    return create_app(
        {
            "RUNS": runs,
            "KEY": KEY,
            "TICKET": "ticket",
            "NEXT_TICKET": lambda: "another",
            "TESTING": True,
        }
    )


def test_without_the_key_the_server_is_view_only(locked):
    client = locked.test_client()
    assert client.get("/api/runs").status_code == 200
    for answer in (
        client.post("/api/runs", json=START),
        client.delete("/api/runs/plain"),
        client.patch("/api/runs/plain", json={}),
    ):
        assert answer.status_code == 403
        assert "data/dashboard.key" in answer.json["error"]
    assert (
        client.post("/api/runs", json=START, headers={"Authorization": f"Bearer {KEY}"}).status_code
        == 422
    )


def test_notes_are_shown_in_view_only_mode(locked):
    client = locked.test_client()
    assert "Notes" not in client.get("/runs/plain").text  # the run has none
    annotation = {"note": "a good one", "tags": ["class"]}
    assert (
        client.patch(
            "/api/runs/plain", json=annotation, headers={"Authorization": f"Bearer {KEY}"}
        ).status_code
        == 200
    )
    text = client.get("/runs/plain").text
    assert "a good one" in text
    assert '<span class="tag">class</span>' in text
    assert "note-form" not in text


def test_a_ticket_is_exchanged_for_the_key_once(locked):
    client, second = locked.test_client(), locked.test_client()
    answer = client.get("/runs?token=ticket")
    assert (answer.status_code, answer.headers["Location"]) == (302, "/runs")
    cookie = answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert client.post("/api/runs", json=START).status_code == 422
    assert "Set-Cookie" not in second.get("/runs?token=ticket").headers
    assert second.post("/api/runs", json=START).status_code == 403
    assert "View only" in second.get("/").text
    assert (
        "Set-Cookie" in second.get("/?token=another").headers
    )  # the terminal has printed it meanwhile
    assert second.post("/api/runs", json=START).status_code == 422


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


def test_a_foreign_host_name_is_refused(client):
    assert client.get("/api/runs", headers={"Host": "evil.example"}).status_code == 400


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
