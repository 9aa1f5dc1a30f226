"""Users that are moved during a run, on the page: values, undoing, words and reasons."""

from __future__ import annotations

import pytest
from conftest import until
from test_reasons import AFTER, BEFORE

from dashboard import events
from lab.frame import Frame, UserSample
from lab.metrics import Watched
from lab.results.explain.scene import Scene
from lab.results.explain.why import why
from lab.results.flips import flip_text, flip_words
from lab.scenario import loading
from lab.scenario.loading import Overrides

USERS = {"topology.users": 3, "topology.multipath_percent": 100}


@pytest.fixture
def started(client):
    def start(scenario="thirty_users", **settings):
        body = {"scenario": scenario, "engine": "sim", "speed": 1, "duration_s": 600}
        answer = client.post("/api/runs", json=body | {"set": USERS | settings})
        assert answer.status_code == 201, answer.json
        path = f"/api/runs/{answer.json['id']}"
        until(lambda: client.get(path).json["state"]["status"] == "running")
        return path

    return start


def values(client, path):
    return {each["name"]: each["value"] for each in client.get(path).json["targets"]}


def flip(client, path, target, value):
    answer = client.post(f"{path}/flips", json={"target": target, "value": value})
    assert answer.status_code == 202, answer.json


def test_a_flip_moves_a_user_and_undoing_moves_it_back(client, started):
    path = started()
    first = values(client, path)
    rate = next(name for name in first if name.startswith("cell.wifi") and ".ue2." in name)
    flip(client, path, rate, 3)
    new = "wifi3" if "wifi3" not in rate else "wifi2"
    flip(client, path, "user.ue2.position", [150, 50] if new == "wifi3" else [50, 50])
    now = values(client, path)
    assert rate not in now  # the user is at another access point
    flip(client, path, f"cell.{new}.ue2.rate_mbps", 2)
    undone = client.post(f"{path}/undo").json["seqs"]
    assert values(client, path) == first
    done = until(
        lambda: [
            each
            for each in client.get(f"{path}/charts").json["events"]
            if each["seq"] == undone[0] and each["state"] == "applied"
        ]
    )
    x, y = first["user.ue2.position"]
    assert done[0]["title"] == f"ue2 moved to {x:g}, {y:g} m"
    wrong = client.post(f"{path}/flips", json={"target": "user.ue2.position", "value": [1, 999]})
    assert wrong.status_code == 422
    assert "y is 999 m, outside the area: write 0 to 200" in wrong.json["error"]


def test_undoing_gives_a_moved_user_the_rate_of_an_event_again(client, started):
    name = next(
        f"cell.{cell.ap}.ue2.rate_mbps"
        for cell in loading.load(
            "thirty_users", Overrides(settings=[f"{key}={value}" for key, value in USERS.items()])
        ).network.cells
        if cell.kind == "wifi" and any(each.user == "ue2" for each in cell.stations)
    )
    path = started(events=[{"at_s": 0.5, "target": name, "value": 4}])
    until(lambda: values(client, path)[name] == 4)
    for place in ([199, 199], [1, 1]):
        flip(client, path, "user.ue2.position", place)
    assert len(client.post(f"{path}/undo").json["seqs"]) == 2
    assert values(client, path)[name] == 4
    assert client.get(path).json["is_changed"] is False


def test_a_user_that_walks_goes_on_after_undoing(client, started):
    path = started("moving_users")
    flip(client, path, "user.ue1.position", [10, 20])
    assert values(client, path)["user.ue1.position"] == [10, 20]
    client.post(f"{path}/undo")
    assert values(client, path)["user.ue1.position"] is None


def test_the_words_of_a_move():
    moved = {"target": "user.ue7.position", "old": [3.25, 4.0], "value": [12.0, 40.5]}
    assert flip_words(moved) == "ue7 moved to 12, 40.5 m"
    assert flip_text(moved) == "user.ue7.position: 3.25, 4 m -> 12, 40.5 m"
    assert flip_words(moved | {"value": None}) == "ue7 walks on"
    row = {"t": 1.0, "kind": "flip", "seq": "1", **moved}
    titles = {
        state: events.describe(row | {"state": state, "ok": state == "applied"}, 1).title
        for state in ("sent", "applied", "refused")
    }
    assert titles == {
        "sent": "move ue7 to 12, 40.5 m",
        "applied": "ue7 moved to 12, 40.5 m",
        "refused": "move ue7 to 12, 40.5 m",
    }


def test_the_reason_names_distances_and_rates():
    settings = ("topology.users=2", "topology.multipath_percent=0", "topology.wifi_near_m=900")
    scenario = loading.load("thirty_users", Overrides(settings=settings))

    def frame(t):
        far = t <= BEFORE.end_s
        place = (40.0, 50.0) if far else (149.0, 50.0)
        return Frame(t, {}, {}, {"ue2": UserSample(2.0 if far else 9.0, *place)}, {})

    event = {"t": 10.0, "kind": "flip", "ok": True, "target": "user.ue2.position"}
    event["value"] = [149, 50]
    found = Scene(scenario, [frame(n / 2) for n in range(1, 41)], [event])
    mine = Watched("user", "ue2", "mbps")
    (text,) = why(found, "user.ue2.position", [149, 50], mine, (BEFORE, AFTER))
    assert "ue2 is 1 m from wifi3 (" in text
    assert "Before, it was 10 m from wifi2 (" in text
    assert "It got 9 instead of 2 Mb/s." in text
    assert found.has_moved(20)
    assert not found.has_moved(9)
    ap = next(c.ap for c in scenario.network.cells for each in c.stations if each.user == "ue2")
    assert found.station_mbps(ap, "ue2", 9) is not None
    assert found.station_mbps(ap, "ue2", 20) is None
