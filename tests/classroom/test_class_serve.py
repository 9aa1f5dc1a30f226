"""Serving a class: where it listens, TLS, and a server that was killed."""

from __future__ import annotations

import http.client
import json
import shutil
import ssl
import threading
import time

import pytest
from class_clients import do, work_off
from class_fakes import command
from filelock import FileLock

from dashboard.base.serving import server
from dashboard.classroom import serve
from dashboard.classroom.app import create_app
from dashboard.classroom.serve import TlsProxy, context
from lab.classroom import folder
from lab.classroom.door import Newcomer
from lab.classroom.lesson import Place
from lab.classroom.room import Room
from lab.errors import LabError, RequestError


@pytest.mark.parametrize("host", ["0.0.0.0", "::", ""])
def test_it_never_listens_on_all_networks(host):
    with pytest.raises(RequestError, match="every network"):
        serve.listen(host, None)


def test_nothing_is_made_for_a_class_that_cannot_be_served(tmp_path, sheet):
    for wanted in (
        serve.Options("new", host="0.0.0.0", worksheets=(str(sheet),)),
        serve.Options("new", worksheets=("nothing",)),
        serve.Options("new", worksheets=(str(sheet),), roster=tmp_path / "nothing.csv"),
    ):
        with pytest.raises(RequestError):
            serve.serve(wanted, tmp_path / "classes")
        assert not (tmp_path / "classes").exists()


def test_a_class_is_served_once(class_folder, tmp_path):
    with (
        FileLock(class_folder.path / folder.LOCK),
        pytest.raises(RequestError, match="served already"),
    ):
        serve.serve(serve.Options("test"), tmp_path / "classes")


def test_it_listens_on_the_loopback_unless_told_otherwise():
    assert serve.Options("x").host == "127.0.0.1"
    with serve.listen(serve.Options("x").host, None) as sock:
        assert sock.getsockname()[0] == "127.0.0.1"
        with pytest.raises(LabError, match="port"):
            serve.listen("127.0.0.1", sock.getsockname()[1])
    with pytest.raises(LabError, match=r"--host|listen"):
        serve.listen("203.0.113.77", None)


def test_the_same_command_continues_a_class(class_folder, tmp_path, sheet):
    classes = tmp_path / "classes"
    assert serve.opened(serve.Options("test"), classes).settings == class_folder.settings
    with pytest.raises(RequestError, match="has begun"):
        serve.opened(serve.Options("test", worksheets=(str(sheet),)), classes)
    made = serve.opened(serve.Options("new", worksheets=(str(sheet),)), classes)
    assert list(made.worksheets) == ["small"]


def test_tls_needs_both_files_and_usable_ones(tmp_path):
    with pytest.raises(RequestError, match="both"):
        serve._tls(serve.Options("x", certificate=tmp_path))
    (tmp_path / "x.pem").write_text("x")
    with pytest.raises(RequestError, match="PEM"):
        context(tmp_path / "x.pem", tmp_path / "x.pem")


def test_over_tls_pages_and_streams_arrive_and_addresses_are_known(app, certificate):
    inner, outer = serve.listen("127.0.0.1", None), serve.listen("127.0.0.1", None)
    port = outer.getsockname()[1]
    door = TlsProxy(outer, context(*certificate), inner.getsockname()[1])
    seen = []

    def address_of(environ):
        seen.append(door._behind.get(int(environ["REMOTE_PORT"])))
        return door.address_of(environ)

    app.config["ADDRESS_OF"] = address_of
    waitress = server(app, inner, 8, "https")
    threading.Thread(target=waitress.run, daemon=True).start()
    door.start()
    try:
        trust = ssl.create_default_context(cafile=certificate[0])
        client = http.client.HTTPSConnection("localhost", port, timeout=60, context=trust)
        code = app.extensions["room"].folder.settings.code
        body = json.dumps({"code": code, "people": [{"name": "Ada"}]})
        headers = {"Content-Type": "application/json", "Origin": f"https://localhost:{port}"}
        client.request("POST", "/api/class/join", body, headers)
        answer = client.getresponse()
        assert (answer.status, json.loads(answer.read())) == (201, {"seat": "s1"})
        assert seen == ["127.0.0.1"]
        cookie = answer.getheader("Set-Cookie").partition(";")[0]
        client.request("GET", "/api/class/stream", headers={"Cookie": cookie})
        stream = client.getresponse()
        lines = [stream.readline() for _ in range(4)]
        assert lines[2] == b"event: seat\n"
        client.close()
    finally:
        door.close()
        waitress.close()


def begun(room, finished_run, *files):
    """ID of a run of a new seat that was not over when the server was killed; its folder has
    `files`."""
    seat, _ = room.join("here", room.folder.settings.code, [Newcomer("Ada")])
    room.open(seat, "small")
    room.answer(Place(seat, "small", "guess"), 12)
    run = room.request_run(Place(seat, "small", "both"), {}, lambda run: None)
    if files:
        room.run_folder(run.id).mkdir()
    for name in files[1:]:
        shutil.copy(finished_run / name, room.run_folder(run.id) / name)
    return run.id


FINISHED = ("manifest.json", "scenario.yaml", "samples.jsonl", "events.jsonl", "result.json")


@pytest.mark.parametrize(
    ("files", "status"),
    [
        ((), "complete"),  # it was still waiting
        (("folder",), "complete"),  # it was just being started
        (("folder", *FINISHED), "complete"),
        (("folder", "manifest.json", "scenario.yaml"), "cut"),
    ],
)
def test_after_a_kill_each_run_goes_on_or_is_ended(
    room, class_folder, clock, finished_run, monkeypatch, files, status
):
    run = begun(room, finished_run, *files)
    monkeypatch.setenv("FAKE_RUN", str(finished_run))
    monkeypatch.setattr("dashboard.classroom.conductor.STARTS_WITHIN_S", 0.0)
    manifest = room.run_folder(run) / "manifest.json"
    if manifest.exists():  # its process has ended
        gone = json.loads(manifest.read_text()) | {"pid": 2**22 + 1}
        manifest.write_text(json.dumps(gone))
    again = Room(class_folder, clock)
    app = create_app(again, {"COMMAND": command()})
    work_off(app)
    assert again.state.runs[run].status == status
    app.extensions["conductor"].stop()
    again.close()


def test_a_run_that_goes_on_is_stopped_and_a_waiting_one_taken_out(
    app, ada, monkeypatch, finished_run
):
    monkeypatch.setenv("FAKE_S", "600")
    do(ada, "answers/guess", value=12)
    first, second = (do(ada, "runs/both").json["run"]["id"] for _ in range(2))
    conductor, room = app.extensions["conductor"], app.extensions["room"]
    ends = time.monotonic() + 60
    while not (room.run_folder(first) / "inbox").is_dir():
        assert time.monotonic() < ends
        conductor.poll()
    assert ada.post(f"/api/class/runs/{second}/stop", json={}).status_code == 202
    assert room.state.runs[second].status == "interrupted"
    flip = {"target": "link.path1.loss", "value": 0.02}
    answer = ada.post(f"/api/class/runs/{first}/flips", json=flip)
    assert answer.status_code == 202, answer.json
    for wrong in ({"target": "cc", "value": "reno"}, flip | {"value": {"x": 1}}):
        assert ada.post(f"/api/class/runs/{first}/flips", json=wrong).status_code == 422
    assert ada.post(f"/api/class/runs/{first}/stop", json={}).status_code == 202
    sent = [json.loads(each.read_text()) for each in (room.run_folder(first) / "inbox").iterdir()]
    assert len(sent) == 2
    assert flip in sent
    conductor.stop()
    assert room.state.runs[first].over


def test_a_run_that_hangs_is_ended(app, ada, monkeypatch):
    monkeypatch.setenv("FAKE_S", "600")
    monkeypatch.setattr("lab.classroom.queue.longest_s", lambda request, speed: 0.0)
    do(ada, "answers/guess", value=12)
    do(ada, "runs/both")
    work_off(app)
    assert app.extensions["room"].state.runs["s1-small-both-1"].status in ("cut", "failed")


def test_a_run_that_cannot_start_says_why(app, ada, monkeypatch):
    monkeypatch.delenv("FAKE_RUN")
    do(ada, "answers/guess", value=12)
    do(ada, "runs/both")
    work_off(app)
    run = app.extensions["room"].state.runs["s1-small-both-1"]
    assert (run.status, "FAKE_RUN" in run.error) == ("failed", True)
