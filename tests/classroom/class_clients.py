"""What a student's browser sends to a class, by HTTP."""

from __future__ import annotations

import time


def join(app, name, pin="", address="127.0.0.1"):
    client = app.test_client()
    client.environ_base["REMOTE_ADDR"] = address
    room = app.extensions["room"]
    people = [{"name": name, "pin": pin}]
    answer = client.post(
        "/api/class/join", json={"code": room.folder.settings.code, "people": people}
    )
    assert answer.status_code == 201, answer.json
    return client


def projector_of(app):
    client = app.test_client()
    client.get(f"/projector?key={app.extensions['room'].folder.settings.projector_key}")
    return client


def do(client, path, **body):
    return client.post(f"/api/class/worksheets/small/{path}", json=body)


def work_off(app):
    """Start and end all runs that wait."""
    conductor, room = app.extensions["conductor"], app.extensions["room"]
    ends = time.monotonic() + 120
    while list(room.state.unfinished()):
        assert time.monotonic() < ends
        conductor.poll()
        time.sleep(0.02)


def a_run(app, client):
    """ID of a new run of this student, which has ended."""
    assert do(client, "answers/guess", value=12).status_code == 200
    answer = do(client, "runs/both", chosen={"multipath.server_enabled": True})
    assert answer.status_code == 202, answer.json
    work_off(app)
    return answer.json["run"]["id"]
