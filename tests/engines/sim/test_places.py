"""Users that are put somewhere during a run: rates, access points, paths and interfaces."""

from __future__ import annotations

import pytest

from lab.engines.sim.routes import DOWN
from lab.errors import RequestError
from lab.radio.mobility import distance_m
from lab.radio.stations import station
from lab.scenario import loading, targets
from lab.scenario.loading import Overrides

pytestmark = pytest.mark.whole
WIFI = ("wifi1", "wifi2", "wifi3")


def stations_of(simulation, user):
    return {ap: each for (ap, who), each in simulation.engine.cells.stations.items() if who == user}


def user_with(simulation, *, multipath, kind):
    """A user with this kind of radio, and no other unless it is multipath."""
    topology = simulation.network.tables.topology
    return next(
        node.id
        for node in topology.nodes
        if node.kind == "user"
        and (node.id in topology.multipath) == multipath
        and any((ap in WIFI) == (kind == "wifi") for ap in stations_of(simulation, node.id))
    )


@pytest.mark.parametrize(("seed", "place"), [(2, [150, 52]), (7, [97.5, 148]), (11, [0, 0])])
def test_rates_and_the_access_point_follow_from_the_place(simulated, seed, place):
    simulation = simulated("thirty_users", "topology.users=6", f"seed={seed}")
    user = user_with(simulation, multipath=True, kind="wifi")
    simulation.run(1)
    simulation.flip(f"user.{user}.position", place)
    (frame,) = simulation.run(0.5)
    assert [frame["user"][user][axis] for axis in ("x_m", "y_m")] == place
    topology, places = simulation.network.tables.topology, simulation.engine.movement.places
    nearest = min(WIFI, key=lambda ap: distance_m(place, places[ap]))
    found = stations_of(simulation, user)
    assert set(found) == {nearest, "lte1"}
    for cell in topology.cells:
        if cell.ap in found:
            expected = station(user, cell.radio, distance_m(place, places[cell.ap]))
            assert found[cell.ap] == expected
    subflows = [row for row in frame["sf"].values() if row["user"] == user]
    assert {row["ap"] for row in subflows} == {nearest, "lte1"}


def test_a_user_that_comes_near_gets_more_and_far_away_less(simulated):
    simulation = simulated("thirty_users", "topology.users=3", "topology.multipath_percent=0")
    user = user_with(simulation, multipath=False, kind="wifi")
    got = []
    for place in ([0, 200], [100, 149], [0, 200]):
        simulation.flip(f"user.{user}.position", place)
        simulation.run(2)
        got.append(simulation.mbps(simulation.run(4), user))
    assert got[1] > 2 * max(got[0], got[2])


def test_the_place_of_the_start_undoes_it(simulated):
    simulation = simulated("thirty_users", "topology.users=5")
    before = dict(simulation.engine.cells.stations)
    start = {row.name: row.value for row in targets.targets(simulation.scenario).values()}
    for user in ("ue1", "ue4"):
        simulation.flip(f"user.{user}.position", [150, 20])
    assert simulation.engine.cells.stations != before
    for user in ("ue1", "ue4"):
        simulation.flip(f"user.{user}.position", start[f"user.{user}.position"])
    assert simulation.engine.cells.stations == before


def test_a_user_that_walks_stands_where_it_was_put_until_it_walks_again(simulated):
    settings = ("topology.users=4", "mobility.speed_min_mps=8", "mobility.speed_max_mps=9")
    undisturbed = simulated("moving_users", *settings).run(8)[-1]["user"]
    simulation = simulated("moving_users", *settings)
    simulation.run(2)
    simulation.flip("user.ue2.position", [30, 60])
    frames = simulation.run(3)
    assert {(each["user"]["ue2"]["x_m"], each["user"]["ue2"]["y_m"]) for each in frames} == {
        (30, 60)
    }
    assert len({each["user"]["ue1"]["x_m"] for each in frames}) == len(frames)
    simulation.flip("user.ue2.position", None)
    frame = simulation.run(3)[-1]
    for user in ("ue1", "ue2"):
        for axis in ("x_m", "y_m"):
            assert frame["user"][user][axis] == undisturbed[user][axis]


def test_an_interface_that_is_off_stays_off_and_comes_back_at_the_new_access_point(simulated):
    simulation = simulated("thirty_users", "topology.users=6")
    user = user_with(simulation, multipath=True, kind="wifi")
    (old,) = set(stations_of(simulation, user)) - {"lte1"}
    new = "wifi3" if old != "wifi3" else "wifi2"
    simulation.run(2)
    simulation.flip(f"iface.{user}.wlan0.up", False)
    simulation.flip(f"user.{user}.position", list(simulation.engine.movement.places[new]))
    hop = simulation.network.tables.stations[new, user, DOWN]
    assert hop.is_up == 0
    frames = simulation.run(3)[2:]
    assert not any(row["mbps"] for row in rows(frames, user, new) + rows(frames, user, old))
    assert simulation.mbps(frames, user) > 0
    simulation.flip(f"iface.{user}.wlan0.up", True)
    assert hop.is_up == 1
    simulation.run(2)
    carried = [row["mbps"] for row in rows(simulation.run(3), user, new)]
    assert sum(carried) / len(carried) > 1


def test_a_backup_interface_stays_one_at_the_new_access_point(simulated):
    simulation = simulated("thirty_users", "topology.users=6")
    user = user_with(simulation, multipath=True, kind="wifi")
    simulation.run(1)
    simulation.flip(f"endpoint.{user}.wlan0", "backup")
    simulation.run(1)
    for place, ap in (([150, 50], "wifi3"), ([50, 50], "wifi2")):
        simulation.flip(f"user.{user}.position", place)
        (row,) = rows(simulation.run(1)[1:], user, ap)
        assert row["backup"] is True
    simulation.flip(f"endpoint.{user}.wlan0", "subflow")
    (row,) = rows(simulation.run(1.5)[2:], user, "wifi2")
    assert row["backup"] is False


def rows(frames, user, ap):
    return [
        row
        for each in frames
        for row in each["sf"].values()
        if (row["user"], row["ap"]) == (user, ap)
    ]


def test_events_are_checked_with_the_access_point_that_a_user_has_by_then():
    def check(*changes):
        events = ", ".join(
            f"{{at_s: {at_s}, target: {name}, value: {value}}}" for at_s, name, value in changes
        )
        settings = (f"events=[{events}]", "topology.users=5", "topology.multipath_percent=100")
        return loading.load("thirty_users", Overrides(settings=settings))

    moved = (1, "user.ue1.position", [151, 49])  # to wifi3
    for time_s, name in ((2, "cell.wifi3.ue1.rate_mbps"), (0.5, "cell.wifi1.ue1.rate_mbps")):
        assert len(check(moved, (time_s, name, 3)).events) == 2
    for time_s, name in ((0.5, "cell.wifi3.ue1.rate_mbps"), (2, "cell.wifi1.ue1.rate_mbps")):
        with pytest.raises(RequestError, match=f"'{name}' is unknown"):
            check(moved, (time_s, name, 3))
    with pytest.raises(RequestError, match=r"events\[2\]: user.ue1.position: y is 201 m, outside"):
        check(moved, (3, "user.ue1.position", [151, 201]))
