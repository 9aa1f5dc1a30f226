"""Serving a class: where it listens, TLS, and a server that was killed."""

from __future__ import annotations

import http.client
import json
import resource
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace

import pytest
from class_clients import do, work_off
from class_fakes import command
from filelock import FileLock

from dashboard.base.serving import Limits, limits, server
from dashboard.classroom import serve
from dashboard.classroom.app import create_app
from dashboard.classroom.serve import TlsProxy, context
from lab.classroom import folder
from lab.classroom.door import Newcomer
from lab.classroom.lesson import Place
from lab.classroom.room import Room
from lab.errors import LabError, RequestError
from lab.run import process


@pytest.mark.parametrize(
    "host",
    [
        *("0.0.0.0", "::", "", "0", "0x0", "0.0", "000.000.0.0"),
        *("::0", "0:0:0:0:0:0:0:0", "::ffff:0.0.0.0", "::ffff:0:0"),
    ],
)
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
        port = sock.getsockname()[1]
        with pytest.raises(LabError, match=f"listen on 127.0.0.1, port {port}: .*--host"):
            serve.listen("127.0.0.1", port)
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


@contextmanager
def served_by_tls(app, certificate):
    """Serve a class by TLS; yield the port and the proxy."""
    inner, outer = serve.listen("127.0.0.1", None), serve.listen("127.0.0.1", None)
    port = outer.getsockname()[1]
    door = TlsProxy(outer, context(*certificate), inner.getsockname()[1])
    app.config["ADDRESS_OF"] = door.address_of
    waitress = server(app, inner, 8, "https", door.has_port)
    threading.Thread(target=waitress.run, daemon=True).start()
    door.start()
    try:
        yield port, door
    finally:
        door.close()
        waitress.close()


def test_over_tls_pages_and_streams_arrive_and_addresses_are_known(app, certificate):
    seen = []
    with served_by_tls(app, certificate) as (port, door):

        def address_of(environ):
            seen.append(door._behind.get(int(environ["REMOTE_PORT"])))
            return door.address_of(environ)

        app.config["ADDRESS_OF"] = address_of
        trust = ssl.create_default_context(cafile=certificate[0])
        client = http.client.HTTPSConnection("localhost", port, timeout=60, context=trust)
        code = app.extensions["room"].folder.settings.code
        body = json.dumps({"code": code, "people": [{"name": "Ada"}]})
        headers = {"Content-Type": "application/json", "Origin": f"https://localhost:{port}"}
        client.request("POST", "/api/class/join", body, headers)
        answer = client.getresponse()
        assert (answer.status, json.loads(answer.read())) == (201, {"seat": "s1"})
        assert set(seen) == {"127.0.0.1"}
        cookie = answer.getheader("Set-Cookie").partition(";")[0]
        client.request("GET", "/api/class/stream", headers={"Cookie": cookie})
        stream = client.getresponse()
        lines = [stream.readline() for _ in range(4)]
        assert lines[2] == b"event: seat\n"
        client.close()


SILENT = 350


@contextmanager
def silent_connections(port):
    """More connections than one address may have, which send nothing; yield those accepted."""
    with ExitStack() as stack:
        made = [
            stack.enter_context(socket.create_connection(("127.0.0.1", port), 10))
            for _ in range(SILENT)
        ]
        for each in made:
            each.setblocking(False)
        until(lambda: sum(map(is_open, made)) <= 300)  # the others have been closed
        time.sleep(0.2)
        yield [each for each in made if is_open(each)]


def is_open(sock):
    try:
        return sock.recv(1) != b""
    except BlockingIOError:
        return True
    except ConnectionError:
        return False


def health(client):
    client.request("GET", "/healthz")
    answer = client.getresponse()
    answer.read()
    client.close()
    return answer.status


def test_silent_connections_from_one_address_do_not_stop_others(app):
    sock = serve.listen("127.0.0.1", None)
    port = sock.getsockname()[1]
    waitress = server(app, sock, 8)
    threading.Thread(target=waitress.run, daemon=True).start()
    try:
        with silent_connections(port) as accepted:
            assert len(accepted) == 300
            other = ("127.0.0.2", 0)
            client = http.client.HTTPConnection("127.0.0.1", port, 5, source_address=other)
            assert health(client) == 200
            for each in waitress.active_channels.values():
                each.last_activity -= 21  # as if they had been silent so long
            waitress.next_channel_cleanup = 0
            until(lambda: not any(is_open(each) for each in accepted))
        assert health(http.client.HTTPConnection("127.0.0.1", port, 5)) == 200
    finally:
        waitress.close()


def test_silent_connections_by_tls_do_not_stop_others_and_are_closed(app, certificate, monkeypatch):
    monkeypatch.setattr(serve, "SILENT_S", 0.5)
    trust = ssl.create_default_context(cafile=certificate[0])
    with served_by_tls(app, certificate) as (port, door):
        client = http.client.HTTPSConnection(
            "localhost", port, timeout=5, source_address=("127.0.0.2", 0), context=trust
        )
        with silent_connections(port) as accepted:
            assert len(accepted) == 300
            assert health(client) == 200
        until(lambda: not door._open)
        mute = trust.wrap_socket(
            socket.create_connection(("127.0.0.1", port), 5), server_hostname="localhost"
        )
        assert mute.recv(1) == b""  # it was closed
        mute.close()
        for _ in range(3):
            assert health(client) == 200
        until(lambda: not door._open)
        assert not door._behind


def test_behind_tls_nobody_else_on_this_machine_reaches_the_server(app, certificate):
    with served_by_tls(app, certificate) as (port, door):
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", door._port), 5) as other:
                other.sendall(b"GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n")
                assert until_closed(other) == b""
        trust = ssl.create_default_context(cafile=certificate[0])
        client = http.client.HTTPSConnection("localhost", port, timeout=20, context=trust)
        assert health(client) == 200


def until_closed(sock):
    try:
        return sock.recv(1)
    except ConnectionError:
        return b""


@pytest.mark.parametrize(
    ("soft", "hard", "raised", "found"),
    [
        (1024, 2**20, [(9500, 2**20)], Limits(3000, 300)),
        (256, 1024, [(1024, 1024)], Limits(174, 87)),
        (1024, resource.RLIM_INFINITY, [(9500, resource.RLIM_INFINITY)], Limits(3000, 300)),
        (20000, 20000, [], Limits(3000, 300)),
    ],
)
def test_the_limit_of_connections_fits_below_that_of_files(monkeypatch, soft, hard, raised, found):
    made = []
    monkeypatch.setattr(resource, "getrlimit", lambda which: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda which, both: made.append(both))
    assert limits() == found
    assert made == raised


def until(condition, seconds=10):
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.05)


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


def test_a_suspended_run_of_an_earlier_server_is_asked_to_stop_and_gives_its_place_free(
    room, class_folder, clock, finished_run, monkeypatch
):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    run = begun(room, finished_run, "folder", *FINISHED[:-1])
    folder = room.run_folder(run)
    (folder / "inbox").mkdir()
    mine = {"pid": child.pid, "pid_started": process.started(child.pid)}
    manifest = json.loads((folder / "manifest.json").read_text()) | mine
    (folder / "manifest.json").write_text(json.dumps(manifest))
    child.send_signal(signal.SIGSTOP)
    for name in ("dashboard.classroom.conductor.STARTS_WITHIN_S", "lab.run.stopping.ENDS_WITHIN_S"):
        monkeypatch.setattr(name, 0.0)
    monkeypatch.setattr("lab.run.stopping.ANSWERS_WITHIN_S", 0.2)
    monkeypatch.setattr("lab.classroom.queue.longest_s", lambda request, speed: 0.0)
    again = Room(class_folder, clock)
    app = create_app(again, {"COMMAND": command()})
    try:
        work_off(app)
        assert again.state.runs[run].status == "cut"
        assert child.wait(10) in (-signal.SIGINT, -signal.SIGKILL)
    finally:
        child.kill()
        child.wait()
        app.extensions["conductor"].stop()
        again.close()


def test_a_run_that_cannot_start_says_why(app, ada, monkeypatch):
    monkeypatch.delenv("FAKE_RUN")
    do(ada, "answers/guess", value=12)
    do(ada, "runs/both")
    work_off(app)
    run = app.extensions["room"].state.runs["s1-small-both-1"]
    assert (run.status, "FAKE_RUN" in run.error) == ("failed", True)


class Channel:
    """A connection of waitress that has sent a response after it was asked `turns` times."""

    def __init__(self, turns):
        self.turns = turns

    @property
    def total_outbufs_len(self):
        self.turns -= 1
        return max(0, self.turns)


def test_the_server_ends_when_all_responses_are_sent_or_after_a_while(monkeypatch):
    channels = {1: Channel(0), 2: Channel(5), 3: Channel(0)}
    serve.send_the_rest(SimpleNamespace(active_channels=channels))
    assert channels[2].turns == 0
    monkeypatch.setattr(serve, "SENT_WITHIN_S", 0.05)
    endless = {1: SimpleNamespace(total_outbufs_len=9)}
    begun = time.monotonic()
    serve.send_the_rest(SimpleNamespace(active_channels=endless))
    assert time.monotonic() - begun >= 0.05


def test_what_was_chosen_reaches_the_server(class_folder, tmp_path, monkeypatch):
    class Reached(Exception):
        pass

    def create_app(room, config):
        raise Reached(room.folder.settings.name, config)

    monkeypatch.setattr(serve, "create_app", create_app)
    options = serve.Options("test", port=None, speed=2.5, vm=True)
    with pytest.raises(Reached) as caught:
        serve.serve(options, tmp_path / "classes")
    name, config = caught.value.args
    assert name == "test"
    assert (config["SPEED"], config["VM"], config["SECURE"]) == (2.5, True, False)
    assert config["LINK"].startswith("http://127.0.0.1:")
    assert config["TRUSTED_HOSTS"] == ["127.0.0.1", "localhost"]


@pytest.mark.parametrize(
    ("argv", "options"),
    [
        (["--name", "a"], serve.Options("a")),
        (
            ["--name", "a", "--speed", "2.5", "--vm", "--port", "9", "--worksheet", "b"],
            serve.Options("a", port=9, worksheets=("b",), speed=2.5, vm=True),
        ),
    ],
)
def test_the_program_of_a_class_serves_what_its_arguments_say(argv, options, monkeypatch):
    served = []
    monkeypatch.setattr(serve, "serve", served.append)
    serve.main(argv)
    assert served == [options]


def test_a_restarted_server_goes_on_with_a_run_that_could_not_be_requested_now(
    room, seat, monkeypatch
):
    room.answer(Place(seat, "small", "guess"), 12)
    run = room.request_run(Place(seat, "small", "both"), {}, lambda _: None)
    room.run_folder(run.id).mkdir(parents=True)

    def refused(*_):
        raise LabError("the engine is not there")

    monkeypatch.setattr("lab.classroom.queue.run_request", refused)
    app = create_app(room, {"TESTING": True})
    assert room.state.runs[run.id].status == "running"
    app.extensions["conductor"].stop()
