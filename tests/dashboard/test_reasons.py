"""The page says why a change had its effect, by general rules on samples and events."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lab.frame import ApSample, Frame, LinkSample, SubflowSample, UserSample
from lab.metrics import Watched
from lab.results.explain import air as air
from lab.results.explain import delays as delays
from lab.results.explain import links as links
from lab.results.explain import shares as shares
from lab.results.explain import split as split
from lab.results.explain.scene import Scene, listed
from lab.results.explain.why import limits, why
from lab.results.stretches import Span
from lab.scenario import loading
from lab.scenario.loading import Overrides

BEFORE, AFTER = Span(0, 10), Span(10, 20)
TOGETHER = Watched("user", "*", "mbps")


def subflow(mbps, cwnd=10, rtt_ms=50.0):
    return SubflowSample(mbps, cwnd, rtt_ms, 1, False, None, 0.0)


def link(mbps):
    return LinkSample(mbps, 0.0, 0, 0.0)


def scene(name, frame, *events, settings=()):
    frames = [frame(n / 2) for n in range(1, 41)]
    return Scene(loading.load(name, Overrides(settings=settings)), frames, events)


def path(t, name, *switches):
    connection, _, number = name.rpartition("/")
    user = connection.partition("-")[0]
    row = {"t": t, "kind": "subflow", "connection": connection, "subflow": int(number)}
    return row | {"user": user, "path": list(switches)}


def collision(*events):
    """Both first subflows share up1 and down1 for 10 s; then that of ue2 has up2 and down2."""

    def frame(t):
        apart = t > 10
        used = {"up1": 9.8, "down1": 9.8, "up2": 9.7 * apart, "down2": 9.7 * apart}
        used |= {"up3": 9.5, "down3": 9.5, "up4": 9.5, "down4": 9.5, "in11": 4.9, "in21": 4.9}
        rates = {"ue1-1/1": 9.4 if apart else 5.0, "ue2-1/1": 9.3 if apart else 4.4}
        rates |= {"ue1-1/2": 9.1, "ue2-1/2": 9.1}
        users = {"ue1": UserSample(rates["ue1-1/1"] + 9.1), "ue2": UserSample(18.0)}
        subflows = {name: subflow(mbps) for name, mbps in rates.items()}
        return Frame(t, {}, {name: link(mbps) for name, mbps in used.items()}, users, subflows)

    return scene(
        "collision_between",
        frame,
        path(0.1, "ue1-1/1", "e1", "a1", "c1", "b1"),
        path(0.1, "ue1-1/2", "e1", "a2", "c3", "b2"),
        path(0.1, "ue2-1/1", "e2", "a1", "c1", "b1"),
        path(0.1, "ue2-1/2", "e2", "a2", "c4", "b2"),
        *events,
    )


def test_a_collision_names_its_links_its_subflows_and_the_idle_path():
    (text,) = limits(collision(), BEFORE)
    assert text == (
        "up1 and down1 are full (9.8 of 10 Mb/s of frames) and shared by ue1-1/1 (payload 5 Mb/s) "
        "and ue2-1/1 (payload 4.4 Mb/s). "
        "Meanwhile up2 and down2, on another path that is as short, carry nothing."
    )


def test_a_link_that_is_down_is_no_other_path():
    down = {"t": 1.0, "kind": "flip", "ok": True, "target": "link.up2.up", "value": False}
    (text,) = limits(collision(down), BEFORE)
    assert "Meanwhile" not in text


def test_a_link_that_is_not_full_or_that_one_connection_uses_alone_is_not_named():
    other = path(0.2, "ue2-1/1", "e2", "a1", "c2", "b1")
    assert limits(collision(other), BEFORE) == []
    halved = collision()
    frames = [
        Frame(each.t, {}, {"up1": link(5.0), "down1": link(5.0)}, each.user, each.sf)
        for each in halved.frames
    ]
    assert limits(Scene(halved.scenario, frames, halved.events), BEFORE) == []


def test_a_subflow_that_moves_leaves_its_link_to_the_other_one():
    found = collision(path(12.0, "ue2-1/1", "e2", "a1", "c2", "b1"))
    assert links.reasons(found, BEFORE, AFTER) == [
        "ue2-1/1 moved from up1 and down1 to up2 and down2 at 12.0 s.",
        "Before, up1 and down1 (10 Mb/s) were full and shared by ue1-1/1 and ue2-1/1; now ue1-1/1 "
        "has them alone.",
    ]
    backwards = links.reasons(found, AFTER, BEFORE)
    assert "Now up1 and down1 (10 Mb/s) are full and shared by ue1-1/1 and ue2-1/1." in backwards


def pipe(t):
    mp = 9.0 if t <= 10 else 12.6
    rates = {"mp-1/1": mp / 2, "mp-1/2": mp / 2, "sp-1/1": 18.9 - mp}
    users = {"mp": UserSample(mp), "sp": UserSample(18.9 - mp)}
    subflows = {name: subflow(mbps) for name, mbps in rates.items()}
    return Frame(t, {}, {"bottleneck": link(19.8)}, users, subflows)


def test_uncoupled_subflows_take_shares_of_their_own():
    found = scene("shared_pipe", pipe)
    (text,) = shares.reasons(found, "lia", "reno", BEFORE, AFTER)
    assert (
        "equal shares per connection would be mp 50 % and sp 50 % of bottleneck; measured: mp 48 % "
        "and sp 52 %."
    ) in text
    assert text.endswith(
        "per subflow would be mp 67 % and sp 33 % of bottleneck; measured: mp 67 % and sp 33 %."
    )
    (back,) = shares.reasons(found, "cubic", "olia", BEFORE, AFTER)
    assert back.index("mp 67 %") < back.index("mp 50 %")
    assert shares.reasons(found, "reno", "cubic", BEFORE, AFTER) == []


def test_a_new_rate_of_a_link_counts_from_its_change_on():
    flip = {"t": 10.0, "kind": "flip", "ok": True, "target": "link.bottleneck.rate_mbps"}
    frames = [
        Frame(t, {}, {"bottleneck": link(19.8 if t <= 10 else 9.9)}, pipe(t).user, pipe(t).sf)
        for t in (n / 2 for n in range(1, 41))
    ]
    found = Scene(loading.load("shared_pipe"), frames, (flip | {"value": 10.0},))
    assert limits(found, BEFORE)[0].startswith("bottleneck is full (19.8 of 20 Mb/s of frames)")
    (text,) = split.reasons(found, BEFORE, AFTER)
    assert text == (
        "bottleneck is full before and after: 19.8 of 20 Mb/s of frames, then 9.9 of 10 Mb/s of "
        "frames, for all together. Of its payload, mp had 48 % and sp had 52 % before, and mp had "
        "67 % and sp had 33 % after. The measurements do not show why the shares moved. Shares of a "
        "few TCP flows vary by themselves: before, mp had between 48 % and 48 % over 5 s."
    )
    assert split.reasons(found, BEFORE, AFTER, True)[0].endswith("33 % after.")


def test_damaged_events_give_no_reasons():
    wrong = {"t": 1.0, "kind": "subflow", "connection": "ue1-1"}
    found = scene("shared_pipe", pipe, wrong)
    assert limits(found, BEFORE) == why(found, "cc", "reno", TOGETHER, (BEFORE, AFTER)) == []


def test_a_full_link_is_divided_anew_and_carries_no_more():
    found = why(scene("shared_pipe", pipe), "cc", "reno", TOGETHER, (BEFORE, AFTER))
    assert found[0] == (
        "bottleneck is full before and after (20 Mb/s), so what one user gains there, another one "
        "loses."
    )
    assert len(found) == 2


def cells(t, ue3=8.0):
    late = t > 10
    rates = {"ue1-1/1": 17.0 if late else 9.0, "ue2-1/1": 17.0 if late else 9.0}
    rates |= {"ue3-1/2": 1.0 if late else ue3, "ue2-1/2": 3.0, "ue3-1/1": 20.0, "ue4-1/1": 20.0}
    aps = {"wifi1": ApSample(mac_occupancy=1.0, meter_mbps=0.1 * (t - 11) if t > 12 else None)}
    held = 300.0 if t <= 10 else 20.0
    users = {f"ue{n}": UserSample(10.0, held_back_kb=held) for n in (1, 2, 3, 4)}
    users["ue1"] = UserSample(rates["ue1-1/1"] if t > 14 or not late else 9.0)
    subflows = {
        name: SubflowSample(
            mbps, 40 if t > 12 else 20, 100.0, 1, False, None, 0.0, name[:3], _ap(name)
        )
        for name, mbps in rates.items()
    }
    return Frame(t, aps, {}, users, subflows)


def _ap(name):
    at_home = {"ue1": "wifi1", "ue2": "wifi1", "ue3": "lte1", "ue4": "lte1"}[name[:3]]
    if name.endswith("/1"):
        return at_home
    return {"wifi1": "lte1", "lte1": "wifi1"}[at_home]


def test_air_that_a_slow_station_leaves_carries_more_for_others():
    found = scene("testbed_wifi_lte", cells)
    (text,) = air.reasons(found, "strategy", BEFORE, AFTER)
    assert text.startswith("ue3 used 42 % of the air of wifi1 before, for 8 Mb/s, and 5 % after")
    assert "Alone it would get 19.1 Mb/s there, ue1 and ue2 up to 42: the same air" in text
    assert "carries 2.2 times as much for a faster station" in text
    assert text.endswith("All stations of wifi1 together got 35 instead of 26 Mb/s.")
    (shown,) = [each for each in air.air(found, BEFORE) if "wifi1" in each]
    assert shown == (
        "Air of wifi1: ue3 42 % for 8 Mb/s (alone 19.1 Mb/s), ue1 21 % for 9 Mb/s (alone 42 Mb/s), "
        "ue2 21 % for 9 Mb/s (alone 42 Mb/s)."
    )


def test_the_air_follows_a_changed_rate_of_a_station():
    slower = {"t": 1.0, "kind": "flip", "ok": True, "target": "cell.wifi1.ue3.rate_mbps"}
    found = scene("testbed_wifi_lte", lambda t: cells(t, 3.0), slower | {"value": 6.0})
    assert "ue3 50 % for 3" in air.air(found, BEFORE)[0]


def test_a_station_that_hardly_uses_the_air_does_not_slow_down_others():
    found = scene("testbed_wifi_lte", lambda t: replace(cells(20.0, 1.0), t=t))
    (text,) = air.reasons(found, "cell.wifi1.ue3.rate_mbps", BEFORE, AFTER)
    assert text.startswith("ue3 uses only 5 % of the air of wifi1, for 1 Mb/s")
    assert air.reasons(found, "cell.lte1.ue3.rate_mbps", BEFORE, AFTER) == []


def test_air_that_moves_between_equal_stations_explains_no_total():
    def frame(t):
        rates = {"ue1-1/1": 30.0 if t > 10 else 8.0, "ue2-1/1": 8.0 if t > 10 else 30.0}
        return Frame(t, sf={name: subflow(mbps) for name, mbps in rates.items()})

    (text,) = air.reasons(scene("testbed_wifi_lte", frame), "cc", BEFORE, AFTER)
    assert "ue1 used 19 % of the air of wifi1 before" in text
    assert "faster" not in text


def test_many_stations_are_counted():
    users = [f"ue{n}" for n in range(1, 8)]
    rows = ", ".join(f"{{id: {user}, near: wifi, wifi_mbps: 42}}" for user in users)
    found = scene(
        "testbed_wifi_lte",
        lambda t: Frame(t, sf={f"{user}-1/1": subflow(6.0) for user in users}),
        settings=(
            f"topology.users=[{rows}]",
            "topology.multipath=[]",
            "traffic=[{user: all, kind: bulk}]",
        ),
    )
    (text,) = air.air(found, BEFORE)
    assert text.startswith("Air of wifi1: 7 stations share it. Most of it uses ue1 14 % for 6 Mb/s")


def test_an_empty_cell_and_moving_users_have_no_reasons():
    found = scene("testbed_wifi_lte", lambda t: Frame(t, sf={"ue1-1/1": subflow(2.0)}))
    assert air.reasons(found, "strategy", BEFORE, AFTER) == air.air(found, BEFORE) == []
    moving = Scene(loading.load("moving_users"), found.frames, ())
    assert air.air(moving, BEFORE) == []


STRATEGY = {"name": "meter_throttling", "params": {"interval_s": 2.0}}
FLIP = {"t": 10.0, "kind": "flip", "ok": True, "target": "strategy", "value": STRATEGY}
KEEP = {"t": 11.0, "kind": "decision", "ap": "lte1", "action": "keep"}
METER = {"t": 12.0, "kind": "decision", "ap": "wifi1", "action": "meter", "meter_mbps": 0.1}
METER |= {"strategy": "meter_throttling", "reason": "Tier 2 was not limited"}


def test_the_delay_of_a_decision_its_limit_and_the_growth_of_windows_are_named():
    found = scene("testbed_wifi_lte", cells, FLIP, KEEP, METER)
    subject = Watched("user", "ue1", "mbps")
    texts = why(found, "strategy", STRATEGY, subject, (BEFORE, AFTER))
    assert texts[0] == (
        "meter_throttling decides every 2 s: its first order after the change came 2.0 s later, at "
        "12.0 s."
    )
    assert texts[1] == (
        "Tier 2 of wifi1 was not limited before; its limit was 0.15 Mb/s at 12.5 s, 0.9 Mb/s at "
        "20.0 s."
    )
    assert "Half of the change of ue1, throughput, was there 4.5 s after it." in texts
    assert (
        "The window of ue1-1/1 grew from 20 to 36 packets. reno adds at most one packet in a round "
        "trip of 100 ms, and that takes 1.6 s."
    ) in texts
    assert "receive buffer of ue1" not in "".join(texts)  # ue1 has one path
    together = why(found, "strategy", STRATEGY, TOGETHER, (BEFORE, AFTER))
    assert together[-1].startswith("300 kB had to wait in the receive buffer of ue3 for earlier")
    assert delays.orders(found, "user.ue1.demand_mbps", AFTER, AFTER) == []


def test_another_interval_is_named_and_another_strategy_starts_anew():
    faster = {"t": 10.5, "kind": "flip", "ok": True, "target": "strategy.interval_s", "value": 0.5}
    found = scene("testbed_wifi_lte", cells, FLIP, faster, METER)
    (text,) = delays.orders(found, "strategy.interval_s", Span(10, 10.5), Span(10.5, 12.2))[:1]
    assert text.startswith("meter_throttling decides every 0.5 s")


@pytest.mark.parametrize("level", [10.0, 10.5])
def test_a_small_change_has_no_half(level):
    found = scene(
        "shared_pipe", lambda t: Frame(t, user={"mp": UserSample(10.0 if t <= 10 else level)})
    )
    assert delays.half_time(found, Watched("user", "mp", "mbps"), BEFORE, AFTER) is None


def test_names_are_listed_for_people():
    assert [listed([]), listed(["a"]), listed(["a", "b"])] == ["", "a", "a and b"]
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert listed(list("abcdef")) == "a, b, c, d and 2 more"


def test_a_part_of_a_run_has_the_same_means():
    found = scene("shared_pipe", pipe)
    part, span = found.within(4.0, 12.0), Span(4.0, 11.0)
    assert len(part.frames) == 17
    assert part.user_mbps("mp", span) == found.user_mbps("mp", span)
