"""Users that walk along recorded places: files, wrong ones, and where users are in a run."""

from __future__ import annotations

import pytest

from lab.engines import registry
from lab.errors import RequestError
from lab.radio.mobility import Replay
from lab.run.engine import Options
from lab.run.reading import read_events, read_frames
from lab.run.recorder import Recorder
from lab.run.runner import run
from lab.scenario.loading import Overrides, experiment, load, with_seed

SCENARIO = """
name: walk
title: Users walk along given places
topology: {kind: wireless_set, users: 4, area_m: 100}
traffic: [{user: all, kind: rate, rate_mbps: 0.2}]
mobility: {kind: trace, walks: walks.csv}
duration_s: 8
"""
WALKS = "t_s,user,x_m,y_m\n1,ue1,25,25\n5,ue1,75,25\n2,ue2,50,75\n"


@pytest.fixture
def walk(tmp_path):
    (tmp_path / "walk.yaml").write_text(SCENARIO)

    def made(walks=WALKS, *settings):
        (tmp_path / "walks.csv").write_text(walks)
        return load(str(tmp_path / "walk.yaml"), Overrides(settings=settings))

    return made


@pytest.mark.parametrize(
    ("t_s", "place"), [(0, (10, 0)), (2, (10, 0)), (3, (20, 5)), (4, (30, 10)), (99, (30, 10))]
)
def test_places_between_two_points_are_on_a_line(t_s, place):
    assert Replay("ue1", ((2, 10, 0), (4, 30, 10))).at(t_s) == place


def test_users_are_where_their_walks_say_and_the_others_stay(walk, tmp_path):
    scenario = walk()
    engine = registry.create("sim", Options(0.0))
    folder = tmp_path / "run"
    folder.mkdir()
    run(scenario, engine, Recorder(folder, scenario, "sim"))
    frames = read_frames(folder)
    for frame in frames:
        x_m = 25 + 50 * min(1, max(0, frame.t - 1) / 4)
        assert frame.user["ue1"].x_m == pytest.approx(x_m, abs=50 / 4 * 0.51)  # steps of 0.5 s
        assert (frame.user["ue2"].x_m, frame.user["ue2"].y_m) == (50, 75)
    assert frames[-1].user["ue1"].x_m == 75
    assert len({(frame.user["ue3"].x_m, frame.user["ue3"].y_m) for frame in frames}) == 1
    moved = [each for each in read_events(folder) if each["kind"] == "handover"]
    assert [(each["user"], each["from"], each["to"]) for each in moved] == [
        ("ue1", "wifi2", "wifi3")
    ]


def test_a_run_begins_with_the_radio_rates_of_the_first_places(walk):
    def rate_bps(place):
        stations = walk(f"t_s,user,x_m,y_m\n7,ue1,{place}\n").network.cell("wifi2").stations
        return next((each.rate_bps for each in stations if each.user == "ue1"), None)

    near, far = rate_bps("25,25"), rate_bps("45,1")
    assert near > far
    assert rate_bps("75,25") is None  # there, wifi3 is nearer


def test_another_seed_keeps_the_walks(walk):
    scenario = walk()
    (first,) = [node for node in with_seed(scenario, 9).network.nodes if node.id == "ue1"]
    assert first.place_m == (25, 25)


def test_the_places_are_part_of_the_experiment(walk):
    digests = {experiment(walk(text), "sim") for text in (WALKS, WALKS.replace("75,25", "75,26"))}
    assert len(digests) == 2


@pytest.mark.parametrize(
    ("walks", "settings", "wrong"),
    [
        ("t,user\n", (), "begin with the header t_s,user,x_m,y_m"),
        ("t_s,user,x_m,y_m\n1,ue1,2\n", (), "row 2: 1,ue1,2 is no time, user and place"),
        ("t_s,user,x_m,y_m\n1,ue1,2,x\n", (), "row 2: 1,ue1,2,x is no time"),
        ("t_s,user,x_m,y_m\n1,ue1,2,nan\n", (), "mobility.walks.ue1"),
        ("t_s,user,x_m,y_m\n-1,ue1,2,2\n", (), "mobility.walks.ue1"),
        (WALKS.replace("ue2", "ue9"), (), "user 'ue9' is unknown"),
        (WALKS.replace("75,25", "75,101"), (), "outside of the area of 100 m"),
        (WALKS.replace("5,ue1", "1,ue1"), (), "write each user's times in order"),
        ("t_s,user,x_m,y_m\n", (), "walks has the users' places"),
        (WALKS, ("mobility.kind=random_waypoint",), "belong together"),
        (WALKS, ("mobility.pause_s=2",), "has no speeds and pauses"),
        (WALKS, ("mobility.walks=walks.txt",), "'walks.txt' is no CSV file"),
        (WALKS, ("mobility.walks=../walks.csv",), "walks.csv"),
    ],
)
def test_wrong_walks_are_refused(walk, walks, settings, wrong):
    with pytest.raises(RequestError) as refused:
        walk(walks, *settings)
    assert wrong in str(refused.value)


def test_a_network_without_places_refuses_walks():
    with pytest.raises(RequestError, match="gives nobody a position"):
        load(
            "two_paths", Overrides(settings=("mobility={kind: trace, walks: {ue1: [[0, 1, 1]]}}",))
        )
