"""The cause of a change: the strategy's orders first, then what the change did directly."""

from __future__ import annotations

import pytest
from test_reasons import AFTER, BEFORE, link, path, scene, subflow

from lab.frame import ApSample, Frame, UserSample
from lab.results.explain import decisions as decisions
from lab.results.explain import direct as direct
from lab.results.explain import links as links
from lab.results.explain.why import cause

LOSS = "link.path1.loss"
FLIP = {"t": 10.0, "kind": "flip", "ok": True, "target": LOSS, "value": 0.05}
SPANS = (BEFORE, AFTER)


def two_paths(*events, after=0.2, held_kb=10.0, backup=True):
    """ue1 gets 9 Mb/s over each of two paths; after 10 s, its first subflow carries `after`."""

    def frame(t):
        late = t > 10
        first = subflow(after if late else 9.0, cwnd=3 if late else 60)
        first = first.__class__(**(vars(first) | {"backup": late and backup}))
        users = {"ue1": UserSample(first.mbps + 9.0, held_back_kb=held_kb if late else 10.0)}
        links = {"path1": link(first.mbps), "path2": link(9.4)}
        return Frame(t, {}, links, users, {"ue1-1/1": first, "ue1-1/2": subflow(9.0)})

    return scene(
        "two_paths",
        frame,
        path(0.0, "ue1-1/1", "s1", "p1"),
        path(0.0, "ue1-1/2", "s1", "p2"),
        *events,
    )


def order(t, subject, action="backup", **more):
    row = {"t": t, "kind": "decision", "strategy": "loss_aware", "subflow": subject}
    return row | {"action": action, "reason": "loss 5.000% of 235 packets"} | more


def test_the_cause_is_the_order_with_the_reason_of_the_strategy_and_the_rates():
    found = two_paths(FLIP, order(10.5, "ue1-1/1"))
    text = (
        "At 10.5 s loss_aware made ue1-1/1 backup, to carry data only while no other subflow can "
        '("loss 5.000% of 235 packets"): it carried 0.2 instead of 9 Mb/s.'
    )
    assert decisions.reasons(found, BEFORE, AFTER) == [text]
    assert cause(found, LOSS, 0.05, SPANS) == text


@pytest.mark.parametrize(
    "orders",
    [
        [],
        [order(9.5, "ue1-1/1")],  # before the change
        [order(20.5, "ue1-1/1")],  # after the interval
        [order(10.5, "ue1-1/1", "keep")],
        [order(10.5, "ue1-1/1"), order(11.0, "ue1-1/1", "normal")],  # taken back
    ],
)
def test_an_order_that_does_not_stand_in_the_interval_is_no_cause(orders):
    assert decisions.reasons(two_paths(FLIP, *orders), BEFORE, AFTER) == []


def test_an_order_without_an_effect_is_no_cause():
    found = two_paths(FLIP, order(10.5, "ue1-1/1"), after=8.9)
    assert decisions.reasons(found, BEFORE, AFTER) == []


def test_orders_of_the_emulation_name_connections_by_token():
    events = [
        each | {"connection": "3f2a91c0"} if each["kind"] == "subflow" else each
        for each in two_paths().events
    ]
    found = two_paths(FLIP, order(10.5, "3f2a91c0/1"))
    found = found.__class__(found.scenario, found.frames, [*events, *found.events[2:]])
    (text,) = decisions.reasons(found, BEFORE, AFTER)
    assert "made ue1-1/1 backup" in text


def test_without_an_order_a_loss_is_explained_by_the_window_of_the_subflow_that_crosses_it():
    found = two_paths(FLIP, backup=False)
    assert cause(found, LOSS, 0.05, SPANS) == (
        "ue1-1/1 crosses path1, which now loses 5 % of its packets, and carried 0.2 instead of "
        "9 Mb/s. After each lost packet a sender reduces its congestion window: that of ue1-1/1 "
        "was 3 instead of 60 packets."
    )
    assert direct.reasons(two_paths(after=8.9), LOSS, 0.05, *SPANS) == []
    assert direct.reasons(found, "link.path2.loss", 0.05, *SPANS) == []


@pytest.mark.parametrize("limit", [0.2, 3.0])
def test_a_link_with_a_new_rate_is_a_cause_if_it_is_full(limit):
    rate = FLIP | {"target": "link.path1.rate_mbps", "value": limit}
    text = cause(two_paths(rate, backup=False), rate["target"], limit, SPANS)
    assert ("which is full: 0.2 of 0.2 Mb/s of frames" in text) == (limit == 0.2)
    assert bool(text) == (limit == 0.2)


@pytest.mark.parametrize(("held_kb", "is_full"), [(3590.0, False), (3610.0, True)])
def test_a_receive_buffer_that_is_full_of_waiting_data_is_a_cause(held_kb, is_full):
    found = direct.buffer_full(two_paths(held_kb=held_kb), BEFORE, AFTER)
    assert bool(found) == is_full
    assert not is_full or "the receive buffer of ue1 (4000 kB) was full" in found[0]


def test_a_demand_is_told_with_what_the_user_got():
    found = two_paths(after=0.2)
    (text,) = direct.reasons(found, "user.ue1.demand_mbps", 9, *SPANS)
    assert text == "ue1 asks for 9 Mb/s now, and got 9.2 instead of 18 Mb/s."
    assert direct.reasons(found, "user.ue1.demand_mbps", 9, BEFORE, BEFORE) == []
    assert direct.reasons(found, "user.ue2.demand_mbps", 9, *SPANS) == []  # it got nothing


@pytest.mark.parametrize(
    ("value", "limit"), [(2.0, "a limit of 2 Mb/s"), (None, "no limit")], ids=["set", "removed"]
)
def test_a_limit_of_tier_1_is_told_with_what_both_tiers_carried(value, limit):
    def frame(t):
        return Frame(t, {"wifi1": ApSample(2.0, 5.0) if t > 10 else ApSample(7.0, 0.1)})

    found, target = scene("testbed_wifi_lte", frame), "cell.wifi1.tier1_mbps"
    (text,) = direct.reasons(found, target, value, *SPANS)
    assert text == (
        f"Tier 1 of wifi1 has {limit} now and carried 2 instead of 7 Mb/s; Tier 2 there carried 5 "
        "instead of 0.1 Mb/s."
    )
    assert direct.reasons(found, target, value, BEFORE, BEFORE) == []
    assert direct.reasons(found, "cell.lte1.tier1_mbps", value, *SPANS) == []


def test_only_subflows_whose_path_changed_got_another_path():
    names = ["ue1-1/1", "ue1-1/2", "ue1-1/3"]

    def frame(t):
        users = {"ue1": UserSample(27.0 if t > 10 else 9.0)}
        return Frame(t, user=users, sf={name: subflow(9.0 if t > 10 else 3.0) for name in names})

    orders = [order(12.0, name, "route") for name in names]
    begun = [path(0.0, name, "s1", "p1") for name in names]
    found = scene("two_paths", frame, *begun, *orders, path(12.0, names[0], "s1", "p2"))
    assert decisions.reasons(found, BEFORE, AFTER) == []  # one moved, and `links` tells it
    moved = [path(12.0, name, "s1", "p2") for name in names[1:]]
    found = scene("two_paths", frame, *begun, *orders, *moved)
    (text,) = decisions.reasons(found, BEFORE, AFTER)
    assert "gave 2 subflows another path;" in text


def test_packets_beyond_a_cut_link_do_not_keep_a_subflow_from_having_stopped():
    def frame(t):  # what was queued behind the link arrives for two seconds
        first = 9.0 if t <= 10 else 3.0 if t <= 12 else 0.0
        return Frame(t, sf={"ue1-1/1": subflow(first), "ue1-1/2": subflow(9.0)})

    begun = path(0.0, "ue1-1/1", "s1", "p1"), path(0.0, "ue1-1/2", "s1", "p2")
    assert links.stopped(scene("two_paths", frame, *begun), "link.path1.up", False, *SPANS) == [
        "ue1-1/1 crossed path1 and carries nothing since it was cut."
    ]
