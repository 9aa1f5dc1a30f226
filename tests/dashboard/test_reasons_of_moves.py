"""Who moved a subflow and when, what a pacing rate does, and what a delay does not explain."""

from __future__ import annotations

from dataclasses import replace

from test_reasons import AFTER, BEFORE, FLIP, METER, cells, collision, path, scene, subflow

from dashboard import view
from lab.frame import Frame, UserSample
from lab.metrics import Watched
from lab.results.explain import delays as delays
from lab.results.explain import links as links
from lab.results.flips import flip_words
from lab.scenario import loading


def test_a_limit_that_stays_has_the_reason_of_the_strategy():
    later = METER | {"t": 18.0, "reason": "MAC occupancy 1.00 >= 0.85"}
    found = scene("testbed_wifi_lte", cells, FLIP, METER, later)
    texts = delays.orders(found, "strategy", BEFORE, AFTER)
    assert texts[-1] == "At 18.0 s the strategy said of wifi1: MAC occupancy 1.00 >= 0.85."


def test_pacing_rates_and_the_order_of_a_move_are_named():
    moved = path(12.0, "ue2-1/1", "e2", "a1", "c2", "b1")
    order = {"t": 12.0, "kind": "decision", "subflow": "ue2-1/1"}
    expect = order | {"action": "expect", "expected_mbps": 10.0}
    found = collision(FLIP, order | {"action": "route"}, expect, moved)
    assert "at 12.0 s, as the strategy ordered." in links.reasons(found, BEFORE, AFTER)[0]
    others = path(12.0, "ue2-1/2", "e2", "a2", "c3", "b2")
    texts = links.reasons(collision(FLIP, moved, others), BEFORE, AFTER)
    assert texts[1] == (
        "ue2-1/2 (from up4 and down4 to up3 and down3) moved, too, but shared no full link before."
    )
    assert "1 subflows" not in delays.orders(found, "strategy", BEFORE, AFTER)[1]
    assert "pacing rate of 10 Mb/s" in delays.orders(found, "strategy", BEFORE, AFTER)[1]
    multipath = found.scenario.multipath.model_copy(update={"expected_by": "window"})
    by_window = found.scenario.model_copy(update={"multipath": multipath})
    texts = delays.orders(replace(found, scenario=by_window), "strategy", BEFORE, AFTER)
    assert "pacing" not in " ".join(texts)


def test_the_emulation_names_the_moved_subflow_and_its_order_by_token():
    token = {"connection": "77aa10ff"}
    known = [each | token for each in collision().events if each["connection"] == "ue2-1"]
    moved = path(12.0, "ue2-1/1", "e2", "a1", "c2", "b1") | token
    route = {"t": 12.0, "kind": "decision", "subflow": "77aa10ff/1", "action": "route"}
    found = collision()
    others = [each for each in found.events if each["connection"] != "ue2-1"]
    found = replace(found, events=[*others, *known, route, moved])
    assert links.reasons(found, BEFORE, AFTER)[0] == (
        "ue2-1/1 moved from up1 and down1 to up2 and down2 at 12.0 s, as the strategy ordered."
    )


def test_of_many_subflows_that_moved_from_links_they_did_not_share_only_the_names_are_told():
    moved = path(12.0, "ue2-1/1", "e2", "a1", "c2", "b1")
    others = [
        path(12.0, "ue2-1/2", "e2", "a2", "c3", "b2"),
        path(12.0, "ue1-1/2", "e1", "a2", "c4", "b2"),
    ]
    assert links.reasons(collision(moved, *others), BEFORE, AFTER)[1] == (
        "ue1-1/2 and ue2-1/2 moved, too, but shared no full link before."
    )


def test_a_subflow_that_moves_because_its_link_is_down_moves_without_an_order():
    down = {"t": 10.0, "kind": "flip", "ok": True, "target": "link.up1.up", "value": False}
    moved = path(10.1, "ue2-1/1", "e2", "a1", "c2", "b1")
    found = collision(FLIP, down, moved, {"t": 12.0, "kind": "decision", "action": "expect"})
    (text,) = links.reasons(found, BEFORE, AFTER)[:1]
    assert text.endswith("at 10.1 s, without an order of the strategy, because up1 was down.")
    order = delays.orders(found, "link.up1.up", BEFORE, AFTER)[0]
    assert order.endswith("at 12.0 s, and changed no path.")


def test_a_number_that_returns_has_no_half_time_and_released_data_is_named():
    def frame(t):
        read = 10.0 if t <= 10 else 2.0 if t <= 11 else 22.0 if t <= 11.5 else 5.0
        return Frame(t, user={"mp": UserSample(read)}, sf={"mp-1/1": subflow(min(read, 10.0))})

    found, mp = scene("shared_pipe", frame), Watched("user", "mp", "mbps")
    assert delays.half_time(found, mp, BEFORE, AFTER) is None
    (text,) = delays.waits(found, "cc", mp, "lia", (BEFORE, AFTER))
    assert text.startswith("At 11.5 s mp read 22 Mb/s while its subflows carried 10:")


def test_subflows_of_a_connection_that_share_a_path_are_noticed():
    def begun(number, *nodes):
        return path(0.0, f"mp-1/{number}", *nodes)

    assert view.shares_path([begun(1, "s1", "p1"), begun(2, "s1", "p1")])
    assert not view.shares_path([begun(1, "s1", "p1"), begun(2, "s1", "p2")])
    assert not view.shares_path([begun(1, "s1", "p1"), path(0.0, "sp-1/1", "s1", "p1")])


def test_the_page_explains_each_congestion_control_of_the_run():
    scenario = loading.load("shared_pipe")
    flip = {"t": 5.0, "kind": "flip", "ok": True, "target": "cc", "value": "balia"}
    found = view.settings_over_time(scenario, [flip])["ccs"]
    assert [each["name"] for each in found] == ["lia", "balia", "reno"]  # sp uses reno
    assert found[0]["help"].startswith("coupled: linked increases")


def test_links_of_a_tree_are_named_by_core_and_pod_wherever_the_scenario_has_one():
    for name, core, pod in (("fat_tree", 4, 1), ("campus", 2, 3)):
        cut = f"c{core}-a{pod}x{(core + 1) // 2}"
        found = scene(name, lambda t: Frame(t, {}, {}, {}, {}))
        assert found.link_name(cut) == f"{cut} (core {core} to pod {pod})"
        assert found.named([cut, "a2x1-e2x2"]).endswith(" and a2x1-e2x2 (within pod 2)")
    plain = scene("collision_between", lambda t: Frame(t, {}, {}, {}, {}))
    assert plain.named(["up1", "up2"]) == "up1 and up2"


def test_a_cut_link_of_a_tree_is_named_by_core_and_pod():
    def frame(t):
        mbps = 0.0 if t > 10 else 5.0
        return Frame(t, {}, {}, {"ue1": UserSample(mbps)}, {"ue1-1/1": subflow(mbps)})

    crossed = ["e1x1", "a1x2", "c4", "a3x2", "e3x1"]
    found = scene("fat_tree", frame, path(1, "ue1-1/1", *crossed))
    said = links.stopped(found, "link.c4-a1x2.up", False, BEFORE, AFTER)
    assert said == [
        "ue1-1/1 crossed c4-a1x2 (core 4 to pod 1) and carries nothing since it was cut."
    ]
    flip = {"target": "link.c4-a1x2.up", "value": False}
    assert flip_words(flip, found.link_name) == "link c4-a1x2 (core 4 to pod 1) was cut"


def test_the_words_for_a_link_are_no_part_of_the_digest_of_a_network():
    network = loading.load("fat_tree").network
    bare = replace(network, links=tuple(replace(each, words="") for each in network.links))
    slower = replace(network, links=(replace(network.links[0], rate_bps=1), *network.links[1:]))
    assert bare != network
    assert bare.sha256() == network.sha256() != slower.sha256()
