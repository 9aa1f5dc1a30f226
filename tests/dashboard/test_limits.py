"""Requests and run folders with extreme content: a clear answer, never a traceback or a hang."""

from __future__ import annotations

import io
import json
import os
import socket
import threading
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from conftest import until

from dashboard import comparison, serve
from dashboard.stream import Streams
from lab.errors import LabError

DEEP = "[" * 3000
JSON = {"content_type": "application/json"}


def test_streams_that_nobody_reads_do_not_keep_their_slots(app, client):
    app.extensions["streams"] = Streams(3)
    for _ in range(10):
        assert client.head("/api/runs/plain/stream").status_code == 200
    for _ in range(10):
        client.get("/api/runs/plain/stream", buffered=False).close()
    assert client.get("/api/runs/plain/stream").status_code == 200


@pytest.mark.parametrize(
    "body",
    [DEEP, '{"scenario": "\\ud800"}', '{"seed": 1' + "0" * 400 + "}", b"\xff", "{", "[]", "1e999"],
)
def test_a_body_that_exceeds_a_limit_is_refused(client, body):
    for method, path in (("post", "/api/runs"), ("patch", "/api/runs/plain")):
        answer = getattr(client, method)(path, data=body, **JSON)
        assert answer.status_code == 400, answer.text
        assert "read the request" in answer.json["error"]


def test_charts_of_too_many_samples_are_refused(client, runs, monkeypatch):
    sizes = [(runs / each / "samples.jsonl").stat().st_size for each in ("plain", "metered")]
    for most, status in ((sum(sizes), 200), (sum(sizes) - 1, 422)):
        monkeypatch.setattr(comparison, "MOST_BYTES", most)
        answer = client.get("/api/compare/charts?runs=plain,metered")
        assert answer.status_code == status
    assert "MiB are drawn. Choose fewer runs" in answer.json["error"]


LENGTH = b"Content-Length: 100000000\r\n\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n" + b"20000\r\n" + bytes(0x20000) + b"\r\n"


@pytest.mark.parametrize("body", [LENGTH, CHUNKED + CHUNKED.partition(b"\r\n\r\n")[2] * 3])
def test_a_huge_body_is_refused_before_it_is_stored(address, body):
    """Waitress stores bodies in files, also those of people without a key."""
    host, port = address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), 20) as sender:
        with suppress(ConnectionError):  # the server has closed it before the end
            sender.sendall(b"POST /api/runs HTTP/1.1\r\nHost: localhost\r\n" + body)
        assert b" 413 " in sender.recv(200)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/runs?limit=\u00b2", 422),
        ("/api/runs?limit=" + "9" * 5000, 422),
        ("/api/runs?limit=-1", 422),
        ("/api/runs/plain/frames?since=\u00b2", 400),
        ("/api/runs/plain/frames?since=" + "9" * 19, 400),
        ("/api/runs/plain/charts?points=\u00b2", 422),
        ("/api/runs/" + "a" * 256, 404),
        ("/api/runs/" + "\u00e4" * 128, 404),
        ("/api/runs/a%0ab", 404),
        ("/runs/" + "a" * 4000, 404),
        ("/api/compare?runs=plain," + "a" * 300, 404),
    ],
)
def test_long_names_and_odd_numbers_are_refused(client, path, status):
    answer = client.get(path)
    assert answer.status_code == status
    assert len(answer.text) < 8000  # a page without the name has 6300


DAMAGE = [
    ("result.json", "{}"),
    ("result.json", '{"users": [1]}'),
    ("result.json", '{"users": {"ue1": 3}, "fairness": []}'),
    ("result.json", '{"throughput_mbps": "many", "status": 5}'),
    ("result.json", DEEP),
    ("result.json", '{"duration_s": 1' + "0" * 400 + "}"),
    ("result.json", ""),
    ("manifest.json", '{"started": 5, "scenario": []}'),
    ("manifest.json", '{"pid": 99999999999999}'),
    ("manifest.json", DEEP),
    ("manifest.json", "[]"),
    ("note.json", '{"tags": 5, "note": []}'),
    ("note.json", '{"tags": ["\\ud800"]}'),
    ("scenario.yaml", "[" * 3000),
    ("scenario.yaml", "topology: {kind: {a: 1}}"),
    ("scenario.yaml", "a: &a [*a]"),
    ("scenario.yaml manifest.json", "/dev/zero"),
    ("scenario.yaml result.json events.jsonl", "/dev/zero"),
    ("samples.jsonl", '{"t": "x"}\n{"t": 1, "ap": 3}\n' + DEEP + "\n"),
    ("samples.jsonl", '{"t": 1, "user": {"ue1": {"mbps": {"deep": []}}}}\n'),
    ("events.jsonl", '{"t": 1, "kind": 5}\nnonsense\n{"t": 2, "kind": "flip", "ok": true}\n'),
    (
        "events.jsonl",
        '{"t": 2, "kind": "flip", "ok": true, "target": "strategy", "value": 7}\n'
        '{"t": 2, "kind": "flip", "ok": true, "target": {}, "value": {"params": 3}}\n'
        '{"t": 3, "kind": "decision", "action": "route", "path": 5}\n'
        '{"t": 4, "kind": "observation", "aps": [1]}\n{"t": 5, "kind": "control", "ok": true}\n',
    ),
]


@pytest.mark.parametrize(("name", "text"), DAMAGE)
def test_a_damaged_folder_spoils_no_answer(client, runs, name, text):
    for each in name.split():
        if text == "/dev/zero":
            (runs / "plain" / each).unlink()
            (runs / "plain" / each).symlink_to(text)
        else:
            (runs / "plain" / each).write_text(text)
    listed = {run["id"]: run for run in client.get("/api/runs").json}
    assert set(listed) == {"plain", "metered"}
    if name in ("result.json", "manifest.json", "note.json") and text != "{}":
        assert f"read {name}" in listed["plain"]["error"]
    for path in ("", "/frames", "/charts", "/stream", "/export?format=csv", "/export?format=zip"):
        answer = client.get(f"/api/runs/plain{path}")
        allowed = (200, 422) if text == "/dev/zero" else (200,)  # links are not followed
        assert answer.status_code in allowed, (path, answer.text)
    for path in ("/runs/plain", "/runs"):
        assert client.get(path).status_code == 200, path
    both = "runs=plain,metered"
    for path in (f"compare?{both}", f"compare/charts?{both}", "runs/plain/export?format=json"):
        assert client.get(f"/api/{path}").status_code in (200, 409, 422), path


@pytest.mark.parametrize("separator", ["\u2028", "\x85", "\x0b", "\x1c"])
def test_only_a_newline_ends_a_line(client, runs, separator):
    line = {"t": 19, "kind": "warning", "text": f"one{separator}text"}
    with (runs / "plain" / "events.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(line, ensure_ascii=False) + "\n")
    answer = client.get("/api/runs/plain/frames")
    assert answer.status_code == 200
    assert answer.json["messages"][-1]["data"]["reason"] == f"one{separator}text"


@pytest.mark.parametrize(
    "text", [DEEP, "[]", '{"runs": {"1": {"id": "x"}}}', '{"runs": {"x": {}}}']
)
def test_a_damaged_index_is_rebuilt(client, runs, text):
    """The document of a run needs every field that lists show."""
    client.get("/api/runs")
    for copy in runs.parent.glob("index.json*"):
        if not copy.name.endswith(".lock"):
            copy.write_text(text)
    assert {run["id"] for run in client.get("/api/runs").json} == {"plain", "metered"}


@pytest.mark.parametrize("field", ["started", "run_schema", "tags", "flips", "rate_scale", "aps"])
def test_an_index_without_a_field_is_rebuilt(client, runs, field):
    listed = client.get("/api/runs").json
    for value in ({}, {field: {"x": []}}, {"schema": 1}):
        index = json.loads((runs.parent / "index.json").read_text())
        for doc in index["runs"].values():
            doc.pop(field)
            doc |= value
        (runs.parent / "index.json").write_text(json.dumps(index))
        assert client.get("/runs/plain").status_code == 200
        assert client.get("/api/runs").json == listed


def test_links_in_a_run_folder_are_not_followed(client, runs, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text('{"t": 1, "user": {"secret": {"mbps": 1}}}\n')
    for name in ("samples.jsonl", "events.jsonl", "result.json"):
        (runs / "plain" / name).unlink()
        (runs / "plain" / name).symlink_to(secret)
    for path in ("", "/frames", "/export?format=csv", "/export?format=zip", "/charts"):
        answer = client.get(f"/api/runs/plain{path}")
        assert b"secret" not in answer.data.replace(str(secret).encode(), b"")
        assert answer.status_code in (200, 422), path


def test_a_zip_is_made_piece_by_piece(client, runs):
    (runs / "plain" / "log.txt").write_bytes(os.urandom(1 << 22))
    answer = client.get("/api/runs/plain/export?format=zip", buffered=False)
    pieces = list(answer.response)
    assert max(map(len, pieces)) < 1 << 20
    with zipfile.ZipFile(io.BytesIO(b"".join(pieces))) as archive:
        assert archive.testzip() is None
        assert archive.read("plain/log.txt") == (runs / "plain" / "log.txt").read_bytes()


def test_a_request_that_cannot_be_read_has_a_path_for_the_log(app, address):
    """Waitress logs the path when the browser disconnects before the answer."""
    from waitress.adjustments import Adjustments
    from waitress.parser import HTTPRequestParser

    assert HTTPRequestParser(Adjustments()).path == ""


def test_simultaneous_deletes_are_no_error(app, runs):
    start = threading.Barrier(8)

    def delete(_number: int) -> int:
        start.wait()
        return app.test_client().delete("/api/runs/plain").status_code

    with ThreadPoolExecutor(8) as threads:
        answers = set(threads.map(delete, range(8)))
    assert answers <= {204, 404}
    assert 204 in answers
    assert not (runs / "plain").exists()


def test_too_many_open_files_are_answered_with_503_and_nothing_is_renamed(
    client, runs, monkeypatch
):
    client.get("/api/runs")
    (runs / "plain" / "note.json").write_text("{}")  # the index has to read this folder again
    opened = os.open

    def none_left(path, *args, **more):
        if str(path).endswith(".json"):
            raise OSError(24, "Too many open files")
        return opened(path, *args, **more)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", none_left)
        answer = client.get("/api/runs")
        assert answer.status_code == 503
        assert "Too many open files" in answer.json["error"]
    assert {run["id"]: run["status"] for run in client.get("/api/runs").json} == {
        "plain": "complete",
        "metered": "complete",
    }
    assert not list(runs.parent.glob("*damaged*"))


def test_an_error_needs_no_file(client, monkeypatch):
    def none_left(*_: object, **__: object) -> str:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr("dashboard.base.errors.render_template", none_left)
    answer = client.get("/runs/nothing")
    assert (answer.status_code, answer.mimetype) == (404, "text/plain")


def test_a_read_only_folder_is_served(client, runs, monkeypatch):
    def refused(*_: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "fsync", refused)
    assert {run["id"] for run in client.get("/api/runs").json} == {"plain", "metered"}
    assert client.get("/runs/plain").status_code == 200


@pytest.mark.parametrize("content", [b"\xff\xfe", b"short", b"", b"a b" * 20])
def test_a_key_file_with_other_content_is_replaced(tmp_path, content):
    path = tmp_path / "data" / "dashboard.key"
    path.parent.mkdir()
    path.write_bytes(content)
    path.chmod(0o600)
    made = serve.key(path)
    assert serve.KEY.fullmatch(made)
    assert serve.key(path) == made
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_key_that_others_can_read_is_replaced_and_a_link_is_not_followed(tmp_path):
    path, other = tmp_path / "dashboard.key", tmp_path / "other"
    made = serve.key(path)
    path.chmod(0o644)
    assert serve.key(path) != made
    path.rename(other)
    path.symlink_to(other)
    before = other.read_text()
    assert serve.key(path) != before
    assert other.read_text() == before


def test_a_key_that_cannot_be_written_is_one_clear_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(LabError, match=r"write .*dashboard\.key"):
        serve.key(tmp_path / "file" / "dashboard.key")


def test_a_reader_survives_a_lack_of_descriptors(app, client, running_run, monkeypatch):
    until(lambda: client.get(f"/api/runs/{running_run}/frames").json["messages"])
    tail = app.extensions["streams"].tail(app.config["RUNS"] / running_run)
    opened = os.open

    def none_left(path, *args, **more):
        if str(path).endswith(".jsonl"):
            raise OSError(24, "Too many open files")
        return opened(path, *args, **more)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", none_left)
        time.sleep(0.4)
    count = tail.count
    until(lambda: tail.count > count)
    assert tail.is_alive()


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "text"),
    [
        ("POST", "/api/runs", {"data": "{", "content_type": "application/json"}, 400, "Send a JSON object"),
        ("GET", "/api/nowhere", {}, 404, "lists all addresses"),
        ("PUT", "/api/runs", {"json": {}}, 405, "lists all methods"),
        ("POST", "/api/runs", {"data": b" " * 2_000_000, "content_type": "application/json"}, 413,
         "the request is too long"),
        ("POST", "/api/runs", {"data": "{}", "content_type": "text/plain"}, 400,
         "send Content-Type: application/json"),
    ],
)  # fmt: skip
def test_an_error_says_what_to_send(client, method, path, body, status, text):
    answer = client.open(path, method=method, **body)
    assert answer.status_code == status
    assert text in answer.json["error"]
