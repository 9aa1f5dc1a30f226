"""The headline of a finished run says what each change did and why, or that no cause is known."""

from __future__ import annotations

import pytest
from test_reasons import AFTER, BEFORE, collision, path, scene

from lab.frame import Frame, SubflowSample, UserSample
from lab.results.explain import delays as delays
from lab.results.explain import held as held
from lab.results.explain import links as links
from lab.results.explain import shares as shares
from lab.results.explain.changes import NO_CAUSE, headline
from lab.results.explain.why import cause
from lab.results.flips import flip_words

RATE = "link.bottleneck.rate_mbps"
CUT = {"t": 10.0, "kind": "flip", "ok": True, "target": "link.path1.up", "value": False}


def part(start, name, together, ue1, changes=(), cause="", **more):
    means = [["all users", "Mb/s", together], ["ue1", "Mb/s", ue1], ["Tier 2", "Mb/s", 90.0]]
    times = {"from": start, "to": start + 9, "order": None}
    return times | {"name": name, "n": list(changes), "means": means, "cause": cause} | more


def change(n, clear=True, **more):
    row = {"n": n, "is_clear": clear, "watch": "ue1: throughput", "seconds": 9.0}
    return row | {"is_measured": True, "is_early": False, "is_too_late": False} | more


def test_each_change_has_its_rates_and_its_cause():
    before, crossed = part(0, "before any change", 20.0, 8.0), "ue1-1/1 crossed x."
    after = part(9, "after link x was cut", 10, 2, [1], crossed)
    assert headline([before, after], [change(1)]) == (
        "9.0 to 18.0 s (link x was cut from 9.0 s on): all users got 10 instead of 20 Mb/s "
        "(\u221210, \u221250 %). The greatest change in Mb/s: ue1 got 2 instead of 8 Mb/s (\u22126, "
        "\u221275 %). Why: ue1-1/1 crossed x."
    )
    assert headline([before, after | {"cause": ""}], [change(1)]).endswith(NO_CAUSE)
    unclear = headline([before, after], [change(1, clear=False)])
    assert "No clear change of ue1, throughput: its mean over the 9 s after is in" in unclear
    assert "Why" not in unclear
    assert "greatest" not in unclear


def test_a_part_of_another_strategy_begins_with_its_first_order():
    parts = [part(0, "before any change", 20.0, 8.0), part(9, "after x", 10, 2, [1], order=11.0)]
    text = headline(parts, [change(1)])
    assert text.startswith("11.0 to 18.0 s (x from 9.0 s on; the first order came at 11.0 s): all")


def test_all_users_whose_change_in_mbps_is_nearly_the_greatest_are_named():
    parts = [part(0, "before any change", 20.0, 8.0), part(9, "after x", 20.0, 11.0, [1])]
    for each, (ue2, ue3) in zip(parts, ((12.0, 5.0), (8.9, 6.0)), strict=True):
        each["means"] += [["ue2", "Mb/s", ue2], ["ue3", "Mb/s", ue3]]
    text = headline(parts, [change(1)])
    assert "The greatest changes in Mb/s: ue2 got 8.9 instead of 12 Mb/s (\u22123.1" in text
    assert "and ue1 got 11 instead of 8 Mb/s (+3, +38 %)." in text
    assert "ue3" not in text


@pytest.mark.parametrize("why", ["is_early", "is_too_late"])
def test_a_change_whose_effect_could_not_settle_has_no_figures(why):
    parts = [part(0, "before any change", 20.0, 8.0), part(9, "after x", 10.0, 11.0, [1], "Cause.")]
    row = change(1, clear=False, is_measured=False, sentence="ue1: too early to tell.")
    assert headline(parts, [row | {why: True}]) == (
        "9.0 to 18.0 s (x from 9.0 s on): ue1: too early to tell."
    )


def test_a_change_without_a_mean_before_it_is_not_called_unclear():
    parts = [part(0, "before any change", 20.0, 8.0), part(9, "after x", 10.0, 11.0, [1], "Cause.")]
    text = headline(parts, [change(1, clear=False, is_measured=False)])
    assert "No clear change" not in text
    assert text.endswith("Why: Cause.")


def test_a_run_without_changes_has_no_headline_and_many_changes_are_counted():
    parts = [part(0, "before any change", 20.0, 8.0)]
    assert headline(parts, []) == ""
    parts += [part(n, f"after {n}", 20.0 - n * n, 8.0, [n]) for n in range(1, 6)]
    lines = headline(parts, [change(n) for n in range(1, 6)]).split("\n")
    assert [line[:9] for line in lines] == ["3.0 to 12", "4.0 to 13", "5.0 to 14", "2 other c"]


@pytest.mark.parametrize(
    ("params", "words"),
    [({"interval_s": 5.0, "cth": 0.85}, "interval_s 5 s"), ({}, "its default settings")],
)
def test_a_strategy_that_replaces_itself_is_named_by_its_own_settings(params, words):
    value = {"name": "meter_throttling", "params": params}
    for old in ("meter_throttling", value):
        said = flip_words({"target": "strategy", "old": old, "value": value})
        assert said == f"strategy meter_throttling with {words}"
    other = flip_words({"target": "strategy", "old": "none", "value": value})
    assert other == "strategy meter_throttling instead of none"


@pytest.mark.parametrize(
    ("target", "old", "value", "words"),
    [
        ("link.up1.up", True, False, "link up1 was cut"),
        ("link.up1.up", False, True, "link up1 was repaired"),
        ("link.a.rate_mbps", 20, 10, "rate of link a: 10 Mb/s instead of 20"),
        ("link.a.up.rate_mbps", 20, 10, "rate of link a (up): 10 Mb/s instead of 20"),
        ("link.a.queue", "fifo", "codel", "queue of link a: codel instead of fifo"),
        ("link.a.queue.packets", 100, 20, "queue of link a: 20 packets instead of 100"),
        ("strategy.cth", 0.85, 0.3, "setting cth of the strategy: 0.3 instead of 0.85"),
        ("strategy.interval_s", 2, 4, "setting interval_s of the strategy: 4 s instead of 2"),
        ("link.a.queue_packets", 100, 20, "queue of link a: 20 packets instead of 100"),
        ("user.mp.demand_mbps", None, 2, "mp asks for 2 Mb/s instead of as much as it can get"),
        ("user.mp.demand_mbps", 2, None, "mp asks for as much as it can get instead of 2 Mb/s"),
        ("cell.wifi1.tier1_mbps", None, 5, "limit of Tier 1 at wifi1: 5 Mb/s instead of none"),
        ("link.a.loss", 0.015, 0, "loss of link a: 0 % instead of 1.5 %"),
        ("link.a.loss", 0.05, 0.05, "loss of link a: 5 %, as before"),
        ("cc", "lia", "olia", "congestion control olia instead of lia"),
        ("strategy", "none", {"name": "disjoint"}, "strategy disjoint instead of none"),
        ("strategy.is_on", True, False, "setting is_on of the strategy: off instead of on"),
        (
            "cell.wifi1.ue1.rate_mbps",
            20,
            2.5,
            "rate of ue1 at wifi1 when alone there: 2.5 Mb/s instead of 20",
        ),
        ("other", 1, 2, "other: 1 -> 2"),
        ("other", None, {"a": 1.0}, "other: unlimited -> {'a': 1.0}"),
    ],
)
def test_a_change_has_plain_words(target, old, value, words):
    assert flip_words({"target": target, "old": old, "value": value}) == words


def test_a_change_of_an_old_version_has_no_old_value():
    assert flip_words({"target": "link.a.rate_mbps", "value": 10}) == "rate of link a: 10 Mb/s"
    assert flip_words({"target": "other", "value": None}) == "other = unlimited"


def lost(t):
    rates = {"ue1-1/1": 0.0 if t > 10 else 9.0, "ue1-1/2": 9.0}
    subflows = {
        name: SubflowSample(mbps, 9, 50.0, 1, False, None, 0) for name, mbps in rates.items()
    }
    return Frame(t, {}, {}, {"ue1": UserSample(sum(rates.values()))}, subflows)


def test_a_subflow_that_crossed_a_cut_link_is_named():
    paths = [path(0.1, f"ue1-1/{n}", "s1", f"p{n}") for n in (1, 2)]
    run = scene("two_paths", lost, *paths, CUT)
    sentence = "ue1-1/1 crossed path1 and carries nothing since it was cut."
    assert links.stopped(run, "link.path1.up", False, BEFORE, AFTER) == [sentence]
    assert cause(run, "link.path1.up", False, (BEFORE, AFTER)) == sentence
    assert links.stopped(run, "link.path2.up", False, BEFORE, AFTER) == []
    run = collision()
    assert links.stopped(run, "link.up1.up", False, BEFORE, AFTER) == []  # they carry on elsewhere
    assert links.stopped(run, "link.up1.up", True, BEFORE, AFTER) == []


def test_the_cause_of_a_change_is_who_shares_a_link_no_more():
    text = cause(
        collision(path(11.0, "ue2-1/1", "e2", "a1", "c2", "b1")), "strategy", {}, (BEFORE, AFTER)
    )
    moved = "ue2-1/1 moved from up1 and down1 to up2 and down2 at 11.0 s. "
    assert text.startswith(f"{moved}Before, up1 and down1 (10 Mb/s) were full and shared by")


def waiting(slow_mbps, far_ms=50.0):
    def frame(t):
        rates = {"ue3-1/1": (20.0, 50.0), "ue3-1/2": (slow_mbps if t > 10 else 9.0, far_ms)}
        flows = {
            name: SubflowSample(mbps, 9, trip_ms, 1, False, None, 0)
            for name, (mbps, trip_ms) in rates.items()
        }
        return Frame(
            t, {}, {}, {"ue3": UserSample(20.0, held_back_kb=900.0 if t > 10 else 90.0)}, flows
        )

    first = {"ap": "lte1", "tier": 1}
    events = [path(0.1, f"ue3-1/{n}", "s1", ap) | first for n, ap in ((1, "lte1"), (2, "wifi1"))]
    return scene("testbed_wifi_lte", frame, *events)


def test_data_that_waits_for_a_slow_subflow_is_explained_only_if_one_is_slow():
    texts = held.held_back(waiting(0.1), "strategy", BEFORE, AFTER)
    assert texts[0].startswith("90 kB had to wait in the receive buffer of ue3")
    assert texts[1].startswith("ue3-1/2 carried only 0.1 Mb/s beside 20 on ue3-1/1. Data is read")
    assert held.held_back(waiting(8.0), "strategy", BEFORE, AFTER) == texts[:1]
    assert held.held_back(waiting(8.0, 70.0), "strategy", BEFORE, AFTER) == texts[:1]
    assert held.held_back(waiting(0.0, 400.0), "strategy", BEFORE, AFTER) == texts[:1]
    assert held.held_back(waiting(8.0, 130.0), "strategy", BEFORE, AFTER)[1] == (
        "A round trip of ue3-1/2 took 130 ms, one of ue3-1/1 50 ms. Data is read in order: what was "
        "sent on ue3-1/2 arrives late, and later data that came over ue3-1/1 waits for it."
    )


def test_data_held_back_is_named_only_for_users_that_a_change_touches():
    found = waiting(0.1)
    assert held.concerned_users(found, "cell.wifi1.ue1.rate_mbps", 10.0) == {"ue1"}
    assert held.held_back(found, "cell.wifi1.ue1.rate_mbps", BEFORE, AFTER) == []
    assert held.held_back(found, "user.ue3.demand_mbps", BEFORE, AFTER)
    assert held.concerned_users(collision(), "link.up4.up", 10.0) == {"ue2"}


def test_the_first_order_counts_only_after_a_change_of_the_strategy_and_before_the_next_one():
    order = {"t": 12.0, "kind": "decision", "action": "route"}
    flip = {"t": 11.0, "kind": "flip", "ok": True, "target": "cc", "value": "lia"}
    assert delays.first_order_s([order], "strategy", 10.0) == 12.0
    assert delays.first_order_s([order | {"action": "keep"}], "strategy", 10.0) is None
    assert delays.first_order_s([order], "link.up1.up", 10.0) is None
    assert delays.first_order_s([flip, order], "strategy.cth", 10.0) is None


def slow_link(rtt_after):
    def frame(t):
        flow = SubflowSample(9.0, 9, rtt_after if t > 10 else 80.0, 1, False, None, 0)
        return Frame(t, {}, {}, {"mp": UserSample(9.0)}, {"mp-1/1": flow})

    half = {"t": 10.0, "kind": "flip", "ok": True, "target": RATE, "value": 10}
    return scene("shared_pipe", frame, path(0.1, "mp-1/1", "s1", "p1"), half)


def test_a_slower_link_makes_round_trips_longer():
    (text,) = shares.slower(slow_link(130.0), RATE, BEFORE, AFTER)
    assert text.startswith("The round trip of mp-1/1 took 80 ms before, 130 ms after: packets that")
    assert "leave at 10 instead of 20 Mb/s" in text
    assert shares.slower(slow_link(60.0), RATE, BEFORE, AFTER) == []
    assert shares.slower(slow_link(130.0), "cc", BEFORE, AFTER) == []
