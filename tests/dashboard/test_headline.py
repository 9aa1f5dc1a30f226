"""The headline of a finished run says what each change did and why, or that no cause is known."""

from __future__ import annotations

import pytest
from test_reasons import AFTER, BEFORE, collision, path, scene

from dashboard.headline import NO_CAUSE, headline
from dashboard.reasons import delays, links, shares
from dashboard.reasons.why import cause
from lab.results.flips import flip_words
from lab.results.stretches import Span
from lab.run.frame import Frame, SubflowSample, UserSample

RATE = "link.bottleneck.rate_mbps"
CUT = {"t": 10.0, "kind": "flip", "ok": True, "target": "link.path1.up", "value": False}


def part(start, name, together, ue1, changes=()):
    means = [["all users", "Mb/s", together], ["ue1", "Mb/s", ue1], ["Tier 2", "Mb/s", 90.0]]
    return {"from": start, "name": name, "n": list(changes), "means": means}


def change(n, why="", clear=True):
    return {"n": n, "is_clear": clear, "cause": why, "watch": "ue1: throughput"}


def test_each_change_has_its_rates_and_its_cause():
    parts = [part(0, "before any change", 20.0, 8.0), part(9, "after link x was cut", 10, 2, [1])]
    text = headline(parts, [change(1, "ue1-1/1 crossed x.")])
    assert text == (
        "From 9.0 s on (link x was cut): all users got 10 instead of 20 Mb/s (\u221250 %). The greatest change: "
        "ue1 got 2 instead of 8 Mb/s (\u221275 %). Why: ue1-1/1 crossed x."
    )
    assert headline(parts, [change(1)]).endswith(NO_CAUSE)
    unclear = headline(parts, [change(1, clear=False)])
    assert "No clear change of ue1, throughput" in unclear
    assert "Why" not in unclear


def test_a_run_without_changes_has_no_headline_and_many_changes_are_counted():
    parts = [part(0, "before any change", 20.0, 8.0)]
    assert headline(parts, []) == ""
    parts += [part(n, f"after {n}", 20.0 - n * n, 8.0, [n]) for n in range(1, 6)]
    lines = headline(parts, [change(n) for n in range(1, 6)]).split("\n")
    assert [line[:9] for line in lines] == ["From 3.0 ", "From 4.0 ", "From 5.0 ", "2 other c"]


@pytest.mark.parametrize(
    ("target", "old", "value", "words"),
    [
        ("link.up1.up", True, False, "link up1 was cut"),
        ("link.up1.up", False, True, "link up1 was repaired"),
        ("link.a.rate_mbps", 20, 10, "rate of link a: 10 Mb/s instead of 20"),
        ("strategy.cth", 0.85, 0.3, "setting cth of the strategy: 0.3 instead of 0.85"),
        ("user.mp.demand_mbps", None, 2, "mp asks for 2 Mb/s instead of unlimited"),
        ("other", 1, 2, "other: 1 -> 2"),
    ],
)
def test_a_change_has_plain_words(target, old, value, words):
    assert flip_words({"target": target, "old": old, "value": value}) == words


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


def waiting(slow_mbps):
    def frame(t):
        rates = {"ue3-1/1": 20.0, "ue3-1/2": slow_mbps if t > 10 else 9.0}
        flows = {
            name: SubflowSample(mbps, 9, 50.0, 1, False, None, 0) for name, mbps in rates.items()
        }
        return Frame(
            t, {}, {}, {"ue3": UserSample(20.0, held_back_kb=900.0 if t > 10 else 90.0)}, flows
        )

    first = {"ap": "lte1", "tier": 1}
    events = [path(0.1, f"ue3-1/{n}", "s1", ap) | first for n, ap in ((1, "lte1"), (2, "wifi1"))]
    return scene("testbed_wifi_lte", frame, *events)


def test_data_that_waits_for_a_slow_subflow_is_explained_only_if_one_is_slow():
    texts = delays.held_back(waiting(0.1), BEFORE, Span(10, 20))
    assert texts[0].startswith("90 kB had to wait in the receive buffer of ue3")
    assert texts[1].startswith("ue3-1/2 carried only 0.1 Mb/s beside 20 on ue3-1/1. Data is read")
    texts = delays.held_back(waiting(8.0), BEFORE, AFTER)
    assert texts[1:] == ["The samples do not show which data was missing."]


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
