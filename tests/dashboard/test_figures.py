"""Charts are pure: the same rows give the same figure, and no peak is lost."""

from __future__ import annotations

from dataclasses import asdict

from hypothesis import given
from hypothesis import strategies as some

from dashboard import charts, events
from dashboard.charts import About, figures, overlay, thin
from dashboard.palette import PLACES
from lab.metrics import Chart, Drawn, Metric

FRAMES = [
    {
        "t": float(t),
        "ap": {
            "wifi1": {
                "tier1_mbps": 7.0,
                "tier2_mbps": 0.5,
                "mac_occupancy": 0.9,
                "meter_mbps": None if t < 3 else 0.2,
            }
        },
        "user": {"ue1": {"mbps": 3.0}, "ue2": {"mbps": 4.5}},
        "sf": {
            "c1/1": {"rtt_ms": 40.0, "cwnd": 12, "user": "ue2", "ap": "wifi1"},
            "c1/2": {"rtt_ms": 90.0, "cwnd": 9},
        },
    }
    for t in range(1, 6)
]


def named(found):
    return {each["name"]: each["figure"] for each in found}


def test_a_run_has_its_charts():
    found = named(figures(FRAMES, About(60.0, ("wifi1",), ("ue1", "ue2"))))
    assert set(found) >= {"tiers", "congestion", "users", "subflows"}
    tiers = found["tiers"]["data"]
    assert [trace["name"] for trace in tiers] == ["wifi1 Tier 1", "wifi1 Tier 2"]
    assert (tiers[0]["line"]["dash"], tiers[1]["line"]["dash"]) == ("solid", "dash")
    assert tiers[0]["line"]["color"] in PLACES
    assert tiers[0]["meta"]["key"] == ["ap", "wifi1", "tier1_mbps"]
    assert found["tiers"]["layout"]["xaxis"]["range"] == (0, 60.0) or found["tiers"]["layout"][
        "xaxis"
    ]["range"] == [0, 60.0]
    assert found["tiers"]["layout"]["uirevision"] == "fixed"


def test_data_held_back_is_a_chart_of_the_multipath_users():
    about = About(30.0, users=("ue1", "ue2"), multipath=("ue2",), links=("path1",))
    frames = [
        {"t": float(t), "user": {"ue1": {"mbps": 3.0}, "ue2": {"mbps": 4.5, "held_back_kb": t}}}
        for t in (1, 2)
    ]
    chart = next(each for each in figures(frames, about) if each["name"] == "held")
    (line,) = chart["figure"]["data"]
    assert (line["name"], line["y"], line["meta"]["colour"]) == ("ue2", [1, 2], 1)
    assert "did not measure" not in chart["explains"]
    for frame in frames:
        del frame["user"]["ue2"]["held_back_kb"]
    (chart,) = (each for each in figures(frames, about) if each["name"] == "held")
    assert chart["explains"].endswith("This run did not measure it.")
    assert "did not measure" not in next(
        each["explains"] for each in figures([], about) if each["name"] == "held"
    )


def test_a_chart_has_its_lines_before_the_first_sample():
    found = named(figures([], About(60.0, ("wifi1",), ("ue1",))))
    assert found["tiers"]["data"][0]["x"] == []


def test_a_missing_measurement_is_a_gap():
    found = named(figures(FRAMES, About(aps=("wifi1",))))
    limit = next(
        trace for trace in found["congestion"]["data"] if trace["meta"]["key"][2:] == ["meter_mbps"]
    )
    assert limit["y"] == [None, None, 0.2, 0.2, 0.2]


def test_only_networks_without_access_points_show_their_links(monkeypatch):
    delayed = Metric(
        of="link",
        name="delayed",
        label="delayed",
        meaning="Late.",
        drawn=Drawn(Chart("late", "Late", ("ms",))),
    )
    monkeypatch.setattr(charts, "BUILT_IN", (*charts.BUILT_IN, delayed))
    of_links = {each.drawn.chart.name for each in charts.BUILT_IN if each.of == "link"}
    assert {"links", "queues", "late"} <= of_links
    frames = [
        {
            "t": 1.0,
            "link": {"path1": {"mbps": 5.0, "backlog": 3, "loss": 0.01}},
            "user": {"ue1": {"mbps": 5.0}},
        }
    ]
    wired = named(figures(frames, About(30.0, (), ("ue1",), (), ("path1",))))
    assert of_links <= set(wired)
    radio = named(figures(frames, About(30.0, ("wifi1",), ("ue1",), (), ("path1",))))
    assert set(radio) >= {"tiers", "congestion", "users"}
    assert not of_links & set(radio)
    own = About(30.0, ("wifi1",), ("ue1",), (), ("path1",), own=(delayed,))
    assert set(named(figures(frames, own))) == {*radio, "late"}


def test_the_table_of_the_links_has_both_directions():
    link = {"mbps": 5.0, "mbps_ab": 5.0, "mbps_ba": 0.2, "backlog": 3, "loss": 0.01}
    frames = [{"t": 1.0, "link": {"path1": link}}]
    about = About(links=("path1",), ends={"path1": ("s1", "p1")})
    lines = named(figures(frames, about))["links"]["data"]
    assert [(line["name"], line["visible"]) for line in lines] == [
        ("path1", True),
        ("path1, s1 to p1", False),
        ("path1, p1 to s1", False),
    ]
    assert lines[2]["meta"]["key"] == ["link", "path1", "mbps_ba"]
    assert lines[2]["y"] == [0.2]


def test_the_threshold_follows_its_changes():
    about = About(60.0, ("wifi1",), threshold=((0.0, 0.85), (10.0, 0.5)))
    line = named(figures(FRAMES, about))["congestion"]["data"][-1]
    assert (line["x"], line["y"]) == ([0.0, 10.0, 60.0], [0.85, 0.5, 0.5])


def test_compared_runs_have_different_dashes():
    found = named(overlay(["none", "metered"], FRAMES[-1:] * 2, [FRAMES, FRAMES]))
    assert [trace["y"][0] for trace in found["total"]["data"]] == [7.5, 7.5]
    assert len({trace["line"]["dash"] for trace in found["total"]["data"]}) == 2


@given(
    some.lists(some.one_of(some.none(), some.floats(-1e6, 1e6)), max_size=300), some.integers(2, 50)
)
def test_thinning_keeps_every_peak_and_the_order(values, points):
    xs, ys = thin(list(range(len(values))), values, points)
    assert len(xs) <= max(points, 2)
    assert xs == sorted(xs)
    known = [value for value in values if value is not None]
    if known:
        kept = [value for value in ys if value is not None]
        assert (min(kept), max(kept)) == (min(known), max(known))


def test_a_change_says_who_made_it_and_when():
    change = {"t": 12.0, "kind": "flip", "ok": True, "target": "link.wifi.up", "value": False}
    assert events.describe(change, 1).title == "link wifi was cut"
    assert events.describe(change, 1).reason == "changed by you at 12.0 s"
    assert events.describe(change | {"source": "scenario"}, 1).reason == "from the scenario file"


def test_events_are_described_in_words():
    decision = {
        "t": 4.0,
        "kind": "decision",
        "ap": "wifi1",
        "action": "meter",
        "meter_mbps": 0.1,
        "reason": "because",
    }
    assert asdict(events.describe(decision, 1)) == {
        "n": 1,
        "t": 4.0,
        "kind": "decision",
        "word": "Decision",
        "title": "wifi1: limit Tier 2 to 0.1 Mb/s",
        "reason": "because",
        "ok": True,
        "mark": "tick",
        "quiet": False,
        "subject": "wifi1",
        "orders": '{"kind": "decision", "ap": "wifi1", "action": "meter", "meter_mbps": 0.1}',
        "seq": "",
        "state": "",
        "about": ("wifi1",),
        "facts": {},
    }
    later = events.describe(decision | {"t": 6.0, "reason": "still"}, 2)
    assert later.orders == events.describe(decision, 1).orders
    forecast = {"t": 1, "kind": "decision", "connection": "ue1-1", "action": "forecast"}
    first, second = (events.describe(forecast | {"active": [name]}, 2) for name in ("a", "b"))
    assert first.title == second.title
    assert first.orders != second.orders
    routed = forecast | {"subflow": "ue1-1/1", "action": "route", "path": ["s1", "p1"]}
    assert events.describe(routed, 2).title == "ue1-1/1: route over s1, p1"
    refused = events.describe(
        {"t": 1, "kind": "flip", "ok": False, "target": "cc", "value": "x", "error": "unknown"}, 2
    )
    assert (refused.mark, refused.reason) == ("none", "refused: unknown")
    assert refused.state == "refused"  # in a run of an older version
    handover = events.describe(
        {"t": 1, "kind": "handover", "user": "ue1", "from": "wifi1", "to": "wifi2"}, 3
    )
    assert (handover.mark, handover.title) == ("line", "ue1: wifi1 to wifi2")


def test_a_flip_has_one_mark_although_it_has_two_events():
    """The log shows the result of the flip, by `seq` and `state`."""
    flip = {
        "t": 3.04,
        "kind": "flip",
        "target": "strategy.cth",
        "old": 0.85,
        "value": 0.3,
        "seq": "7",
    }
    sent = events.describe(flip | {"state": "sent"}, 1)
    applied = events.describe(flip | {"t": 3.3, "state": "applied", "ok": True}, 2)
    refused = events.describe(
        flip | {"state": "refused", "ok": False, "why": "no", "error": "no"}, 2
    )
    assert [each.mark for each in (sent, applied, refused)] == ["none", "line", "none"]
    assert [each.state for each in (sent, applied, refused)] == ["sent", "applied", "refused"]
    assert {each.seq for each in (sent, applied, refused)} == {"7"}
    assert (sent.reason, refused.reason) == ("sent at 3.0 s …", "refused: no")
    assert [each.ok for each in (sent, applied, refused)] == [False, True, False]
    assert [bool(each.facts) for each in (sent, applied, refused)] == [False, True, False]
    assert events.describe(flip | {"ok": True}, 1).state == "applied"  # of an older version
