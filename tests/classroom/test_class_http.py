"""A class over raw HTTP: who may read and change what."""

from __future__ import annotations

import json

import pytest
from class_clients import a_run, do, join, projector_of, work_off


def test_a_student_predicts_runs_checks_and_answers(app, ada):
    assert "Predict first" in do(ada, "runs/both").json["error"]
    run = a_run(app, ada)
    step = do(ada, "checks/enough").json["step"]
    assert (step["state"], step["tries"], step["hint"]) == ("failed", 1, None)
    assert [each["text"] for each in step["figures"]] == ["result(throughput_mbps)"]
    right = do(ada, "answers/cause", value="two").json
    assert right["saved"] is True
    assert (right["step"]["state"], right["step"]["why"]) == (
        "passed",
        "the-reason-of-the-question",
    )
    sheet = ada.get("/api/class/worksheets/small").json
    assert sheet["points"] == 3
    runs = next(each for each in sheet["steps"] if each.get("id") == "both")["runs"]
    assert [(each["id"], each["status"], each["place"]) for each in runs] == [
        (run, "complete", None)
    ]
    lines = app.extensions["room"].folder.journal.read_text().splitlines()
    ended = [json.loads(line) for line in lines if '"ended"' in line]
    assert len(ended[0]["digest"]) == 64


def test_a_student_reads_what_is_asked_and_measured_in_plain_words(app, ada):
    def step(name):
        sheet = ada.get("/api/class/worksheets/small").json
        return next(each for each in sheet["steps"] if each.get("id") == name)

    assert step("both")["labels"] == {
        "topology.paths.1.delay_ms": "delay of path 1 (ms)",
        "multipath.server_enabled": "Multipath TCP at the server",
        "link.path1.loss": "loss of link path1",
    }
    asked = step("enough")
    assert (asked["ask"], asked["looks_at"]) == ("the-question-of-the-check", [2])
    early = do(ada, "checks/enough").json["step"]
    assert early["problem"] == "step 2 has no complete run yet: make it first"
    a_run(app, ada)
    (figure,) = do(ada, "checks/enough").json["step"]["figures"]
    assert (figure["label"], figure["unit"]) == ("all users: throughput, whole run", "Mb/s")


def test_nobody_reads_or_changes_anothers_seat_or_runs(app, ada, bo):
    run = a_run(app, ada)
    for part in ("", "/stream", "/frames", "/charts", "/changes", "/samples", "/network"):
        assert ada.get(f"/api/class/runs/{run}{part}").status_code == 200, part
        answer = bo.get(f"/api/class/runs/{run}{part}")
        assert answer.status_code == 404, part
    for body, path in (({}, "stop"), ({"target": "link.path1.loss", "value": 0}, "flips")):
        assert bo.post(f"/api/class/runs/{run}/{path}", json=body).status_code == 404
    assert bo.get("/api/class/worksheets/small").status_code == 409
    assert run.encode() not in bo.get("/api/class/download").data
    assert bo.get("/api/class/seat").json["people"] == ["Bo"]


def test_the_instructor_may_change_and_stop_the_run_of_a_student(app, ada, instructor):
    run = a_run(app, ada)
    assert instructor.post(f"/api/class/runs/{run}/stop", json={}).status_code == 202
    body = {"target": "link.path1.loss", "value": 0}
    answer = instructor.post(f"/api/class/runs/{run}/flips", json=body)
    assert "not going on" in answer.json["error"]  # it has ended: nothing else is wrong


def test_the_addresses_of_the_instructor_are_closed_to_all_others(app, ada):
    for path in (
        *("class", "stream", "texts", "seats/s1/worksheets/small"),
        *("look", "freeze", "extend", "grades", "wipe", "seats/s1/readmit"),
        *("seats/s1/free", "seats/free-empty"),
        "worksheets/small/runs/shown",
    ):
        for client in (ada, app.test_client(), projector_of(app)):
            for answer in (
                client.get(f"/api/instructor/{path}"),
                client.post(f"/api/instructor/{path}", json={}),
            ):
                assert answer.status_code == 403, (path, answer.status_code)


METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
FOR_ALL = {"/", "/healthz", "/api/class", "/api/class/join", "/api/class/return"}
FILES = {"/static/<path:filename>", "/plotly/<wanted>.js"}


def test_every_address_is_closed_to_those_who_are_not_meant(app, ada):
    """The addresses are those of the app, so a new one is tried, too."""
    projector, stranger, tried = projector_of(app), app.test_client(), 0
    for rule in app.url_map.iter_rules():
        path = rule.build(dict.fromkeys(rule.arguments, "x"))[1]
        part = path.removeprefix("/api").split("/")[1]
        closed_to = [] if rule.rule in FOR_ALL | FILES else [stranger]
        closed_to += [projector, ada] if part == "instructor" else []
        closed_to += [ada] if part == "projector" else []
        for client in closed_to:
            for method in METHODS:
                answer = client.open(path, method=method, json={})
                sent_away = (answer.status_code, answer.headers.get("Location")) == (302, "/")
                assert answer.status_code == 403 or sent_away, (method, path, answer.status_code)
                tried += 1
    assert tried > 300


def test_without_a_seat_nothing_is_read(app):
    for path in ("seat", "stream", "worksheets/small", "download", "runs/x", "network/two_paths"):
        assert app.test_client().get(f"/api/class/{path}").status_code == 403, path


def test_the_ordinary_interface_is_closed(app, ada, instructor):
    for client in (ada, instructor):
        assert client.post("/api/runs", json={"scenario": "two_paths"}).status_code == 404
        for path in ("/api/runs", "/api/scenarios", "/openapi.json", "/runs", "/compare"):
            assert client.get(path).status_code == 404, path


def test_a_projector_only_watches(app, ada, instructor):
    run, projector = a_run(app, ada), projector_of(app)
    assert projector.get("/api/projector").json["look"] is None
    assert projector.get(f"/api/class/runs/{run}").status_code == 404
    assert instructor.post("/api/instructor/look", json={"run": run}).status_code == 200
    assert projector.get("/api/projector").json["look"] == {"run": run}
    assert projector.get(f"/api/class/runs/{run}").json["targets"] == []
    own = ada.get(f"/api/class/runs/{run}").json["targets"]
    assert [each["name"] for each in own] == ["link.path1.loss"]
    for path, body in (
        (f"runs/{run}/stop", {}),
        (f"runs/{run}/flips", {"target": "link.path1.loss", "value": 0}),
        ("worksheets/small/open", {}),
    ):
        assert projector.post(f"/api/class/{path}", json=body).status_code == 403, path


def test_look_here_shares_a_run_and_nothing_lets_it_be_changed(app, ada, bo, instructor):
    run = a_run(app, ada)
    instructor.post("/api/instructor/look", json={"run": run})
    assert bo.get("/api/class/seat").json["look"] == {"run": run}
    assert bo.get(f"/api/class/runs/{run}/charts").status_code == 200
    assert bo.post(f"/api/class/runs/{run}/stop", json={}).status_code == 403
    instructor.post("/api/instructor/look", json={})
    assert bo.get(f"/api/class/runs/{run}/charts").status_code == 404


def test_a_run_of_the_instructor_is_seen_and_changed_by_no_student(app, ada, instructor):
    answer = instructor.post("/api/instructor/worksheets/small/runs/shown", json={"engine": "sim"})
    assert answer.status_code == 202, answer.json
    run = answer.json["run"]["id"]
    assert ada.post(f"/api/class/runs/{run}/stop", json={}).status_code == 403
    work_off(app)
    assert ada.get(f"/api/class/runs/{run}").status_code == 200
    body = {"target": "link.path1.loss", "value": 0}
    assert ada.post(f"/api/class/runs/{run}/flips", json=body).status_code == 403
    for client in (ada, projector_of(app)):
        shown = client.get(f"/api/class/runs/{run}").json
        assert (shown["targets"], shown["controls"]) == ([], [])
    assert projector_of(app).post(f"/api/class/runs/{run}/stop", json={}).status_code == 403


def test_quotas_hold_over_raw_http(app, ada):
    do(ada, "answers/guess", value=12)
    statuses = [do(ada, "runs/both").status_code for _ in range(5)]
    assert statuses == [202, 202, 202, 429, 429]
    places = [
        each["place"]
        for step in ada.get("/api/class/worksheets/small").json["steps"]
        if step.get("id") == "both"
        for each in step["runs"]
    ]
    assert places == [1, 2, 3]


def test_students_choose_only_what_the_step_names(app, ada):
    do(ada, "answers/guess", value=12)
    for chosen in ({"topology.users": 500}, {"multipath.server_enabled": "x.py"}, {"cc": "x.c"}):
        assert do(ada, "runs/both", chosen=chosen).status_code == 422
    assert do(ada, "runs/both", engine="mininet").status_code == 422
    answer = ada.get('/api/class/network/two_paths?set={"topology.k":60}')
    assert answer.status_code == 422
    assert ada.get("/api/class/network/fat_tree").status_code == 404


def test_too_many_requests_of_one_seat_are_refused_and_others_go_on(app, ada, bo):
    answers = [do(ada, "answers/nothing", value=1).status_code for _ in range(245)]
    assert answers[-1] == 429
    assert bo.post("/api/class/worksheets/small/open", json={}).status_code == 200


def test_pages_of_one_seat_are_limited(app, ada):
    streams = [ada.get("/api/class/stream", buffered=False) for _ in range(4)]
    answer = ada.get("/api/class/stream")
    assert answer.status_code == 429
    assert "Retry-After" in answer.headers
    streams.pop().close()
    with ada.get("/api/class/stream", buffered=False) as answer:
        assert answer.status_code == 200
    for each in streams:
        each.close()


def test_one_address_leaves_pages_to_others_and_all_students_to_the_instructor(app, instructor):
    def streams(address, name):
        client = join(app, name, address=address)
        for _ in range(8):
            opened.append(client.get("/api/class/stream", buffered=False))
        return sum(each.status_code == 200 for each in opened[-8:])

    opened = []
    assert sum(streams("10.0.0.1", f"Eve {n}") for n in range(36)) == 36 * 4
    assert sum(streams("10.0.0.1", f"Eve {n}") for n in range(36, 42)) == 160 - 36 * 4
    assert streams("10.0.0.2", "Ada") == 4
    assert sum(streams("10.0.0.3", f"Eva {n}") for n in range(30)) == 256 - 160 - 4
    for client, path in ((instructor, "instructor"), (projector_of(app), "projector")):
        opened += [client.get(f"/api/{path}/stream", buffered=False) for _ in range(8)]
    assert [each.status_code for each in opened[-16:]] == [200] * 16
    for each in opened:
        each.close()
    assert streams("10.0.0.3", "Bo") == 4
    for each in opened:
        each.close()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 400),
        ({"Origin": "http://evil.example"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Content-Type": "text/plain"}, 400),
    ],
)
def test_other_sites_change_nothing(app, ada, headers, status):
    body = json.dumps({"value": "two"})
    given = {"Content-Type": "application/json"} | headers
    answer = ada.post("/api/class/worksheets/small/answers/cause", data=body, headers=given)
    assert answer.status_code == status
    assert not app.extensions["room"].lesson.seat("s1").work["small"].steps


def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(app):
    client = app.test_client()
    code = app.extensions["room"].folder.settings.code
    answer = client.post("/api/class/join", json={"code": code, "people": [{"name": "Ada"}]})
    cookie = answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    app.config["SECURE"] = True
    answer = client.post("/api/class/join", json={"code": code, "people": [{"name": "Bo"}]})
    assert "Secure" in answer.headers["Set-Cookie"]


def test_a_wrong_key_opens_nothing(app):
    client = app.test_client()
    settings = app.extensions["room"].folder.settings
    for path in (
        "/instructor?key=",
        "/instructor?key=x",
        f"/instructor?key={settings.projector_key}",
        f"/seat?key={settings.instructor_key}",
    ):
        answer = client.get(path)
        assert answer.status_code == 403, path
        assert "Set-Cookie" not in answer.headers


def test_an_attacker_locks_out_nobody_behind_the_same_address(app):
    room, slept = app.extensions["room"], []
    room.door._sleep = slept.append
    code = room.folder.settings.code
    join(app, "Ada", "1234")

    def send(path, **body):
        return app.test_client().post(f"/api/class/{path}", json=body).status_code

    bad = [send("join", code="WRONGX", people=[{"name": "Eve"}]) for _ in range(400)]
    assert bad == [403] * 10 + [429] * 390
    bad = [send("return", code=code, name="Ada", pin=f"00{n}") for n in range(10, 60)]
    assert bad == [403] * 5 + [429] * 45
    assert slept == [3.0] * 45
    assert send("join", code=code, people=[{"name": "Bo", "pin": "1234"}]) == 201
    assert send("return", code=code, name="Ada", pin="1234") == 200
    assert send("return", code=code, name="Bo", pin="1234") == 200
    assert len(slept) == 46


def test_the_instructor_frees_a_seat_and_all_without_work(app, ada, bo, instructor):
    do(ada, "answers/guess", value=12)
    with ada.get("/api/class/stream", buffered=False) as stream:
        next(stream.response)
        assert instructor.post("/api/instructor/seats/s1/free", json={}).status_code == 200
        assert list(stream.response) == []
    for client, path in ((ada, "s1"), (bo, "free-empty")):
        assert client.post(f"/api/instructor/seats/{path}/free", json={}).status_code == 403
    assert ada.get("/api/class/seat").status_code == 403
    assert ada.get("/seat").headers["Location"] == "/"
    assert instructor.post("/api/instructor/seats/s1/free", json={}).status_code == 409
    assert instructor.post("/api/instructor/seats/s9/free", json={}).status_code == 404
    freed = instructor.post("/api/instructor/seats/free-empty", json={})
    assert freed.json == {"freed": ["s2"]}
    assert bo.get("/api/class/seat").status_code == 403
    (row,) = instructor.get("/api/instructor/class").json["grid"]["seats"]
    assert (row["seat"], row["left"], row["has_work"]) == ("s1", True, True)
    assert "Ada" in instructor.get("/instructor/grades.csv").text
    assert join(app, "Ada").get("/api/class/seat").json["seat"] == "s3"


def test_odd_bodies_are_refused(app):
    for body in (
        {},
        {"code": 1, "people": []},
        {"code": "A", "people": [{"name": "x", "pin": "1", "more": 1}]},
        {"code": "A", "people": [{"name": "x"}] * 31},
    ):
        assert app.test_client().post("/api/class/join", json=body).status_code == 422, body


def test_the_instructor_sees_the_grid_and_stops_time(app, ada, instructor):
    a_run(app, ada)
    do(ada, "answers/cause", value="one")
    grid = instructor.get("/api/instructor/class").json["grid"]
    cells = grid["seats"][0]["cells"]["small"]
    assert [cells[each] for each in ("guess", "both", "cause", "words")] == [
        *("passed", "passed", "failed", "open")
    ]
    instructor.post("/api/instructor/freeze", json={"frozen": True})
    assert do(ada, "answers/cause", value="two").status_code == 409
    instructor.post("/api/instructor/freeze", json={"frozen": False})
    assert do(ada, "answers/words", value="<script>").status_code == 200
    text = instructor.get("/api/instructor/texts").json[0]
    assert text["answer"] == "<script>"
    grade = {"seat": "s1", "worksheet": "small", "step": "words", "points": 3}
    assert instructor.post("/api/instructor/grades", json=grade).status_code == 200
    assert ada.get("/api/class/worksheets/small").json["points"] == 4


def test_the_instructor_wipes_everything_by_name(app, ada, instructor):
    folder, ended = app.extensions["room"].folder.path, []
    app.config["END"] = lambda: ended.append(True)
    assert instructor.post("/api/instructor/wipe", json={"name": "other"}).status_code == 422
    assert folder.exists()
    answer = instructor.post("/api/instructor/wipe", json={"name": "test"})
    assert (answer.status_code, folder.exists(), ended) == (200, False, [])
    answer.close()  # as a server does when it has the whole answer
    assert ended


def test_the_emulation_needs_root_or_a_virtual_machine(app, ada, instructor, monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    answer = instructor.post("/api/instructor/worksheets/small/runs/shown", json={})
    assert answer.status_code == 409
    assert "--vm" in answer.json["error"]
    assert not app.extensions["room"].state.runs


def test_the_instructor_stops_a_run_for_all(app, instructor):
    begun = instructor.post(
        "/api/instructor/worksheets/small/runs/shown", json={"engine": "sim"}
    ).json["run"]
    assert instructor.post(f"/api/class/runs/{begun['id']}/stop", json={}).status_code == 202
    (row,) = instructor.get("/api/instructor/class").json["grid"]["shared"]
    assert row["status"] == "interrupted"


def test_the_space_of_a_seat_is_limited(app, ada, monkeypatch):
    a_run(app, ada)
    monkeypatch.setattr("lab.classroom.rules.MOST_BYTES", 100)
    answer = do(ada, "runs/both")
    assert answer.status_code == 429
    assert "fill the space" in answer.json["error"]


def test_a_try_that_must_wait_says_how_long(ada):
    for _ in range(3):
        assert do(ada, "answers/cause", value="one").status_code == 200
    answer = do(ada, "answers/cause", value="two")
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "15")


def test_a_worksheet_is_opened_without_anything_else(bo):
    assert do(bo, "open", minutes=500).status_code == 422
    assert bo.get("/api/class/worksheets/small").status_code == 409
    assert do(bo, "open").status_code == 200
