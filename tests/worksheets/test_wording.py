"""Keys and figures in plain words, as students read them."""

from __future__ import annotations

import re

import pytest

from lab.scenario import schema
from lab.worksheets import loading, wording
from lab.worksheets.language import Count, Measured, Sampled, Time, parts, spelled
from lab.worksheets.marking import looked_at
from lab.worksheets.schema import Check


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("topology.paths.1.delay_ms", "delay of path 1 (ms)"),
        ("topology.rate_mbps", "rate (Mb/s)"),
        ("topology.multipath", "users with Multipath TCP"),
        ("traffic.2.rate_mbps", "rate of traffic 2 (Mb/s)"),
        ("multipath.receive_buffer_kb", "receive buffer (kB)"),
        ("strategy.name", "strategy"),
        ("strategy.params.cth", "cth of the strategy"),
        ("strategy.interval_s", "interval of the strategy (s)"),
        ("link.path1.loss", "loss of link path1"),
        ("user.ue1.demand_mbps", "demand of ue1 (Mb/s)"),
        ("cell.wifi1.ue3.rate_mbps", "rate of ue3 at wifi1 (Mb/s)"),
        ("cc", "congestion control"),
        ("duration_s", "duration (s)"),
    ],
)
def test_a_setting_or_target_in_words(key, words):
    assert str(wording.setting(key)) == words


@pytest.mark.parametrize(
    ("text", "words", "unit"),
    [
        (
            "mean(ap.wifi1.tier2_mbps, 40..60)",
            "mean Tier 2 throughput at wifi1, 40 to 60 s",
            "Mb/s",
        ),
        ("max(link.up1.backlog, 0..5)", "highest queue on link up1, 0 to 5 s", "packets"),
        ("min(sf.ue1-1/2.rtt_ms, 1..2)", "lowest RTT of subflow ue1-1/2, 1 to 2 s", "ms"),
        (
            "result(throughput_mbps) of plain",
            "all users: throughput, whole run, step 3",
            "Mb/s",
        ),
        ("result(users.ue1.throughput_mbps)", "throughput of ue1, whole run", "Mb/s"),
        ("result(aps.wifi1.tier1_mbps)", "Tier 1 throughput at wifi1, whole run", "Mb/s"),
        ("result(mptcp.joins)", "subflows that joined, whole run", ""),
        (
            "time(event(decision) of plain)",
            "time of the first decision of the controller, step 3",
            "s",
        ),
        (
            "count(event(flip, target=link.path1.loss, value=0.1))",
            "number of events: change of loss of link path1 to 0.1",
            "",
        ),
        ("count(event(handover, user=ue1))", "number of events: handover (user ue1)", ""),
        ("a text of an older version", "a text of an older version", ""),
    ],
)
def test_a_figure_in_words(text, words, unit):
    assert wording.figure(text, {"plain": 3}) == wording.Label(words, unit)


RAW = re.compile(r"\b\w+[_.]\w+")  # such as tier2_mbps or user.mbps


def raw(text):
    """Return the keys in a text. The names of strategies are no keys: students choose them."""
    return set(RAW.findall(text)) - set(schema.strategies())


@pytest.mark.parametrize("name", loading.names())
def test_no_shipped_worksheet_shows_a_raw_key(name):
    worksheet = loading.load(name)
    for run in worksheet.runs.values():
        for key in (*run.settings, *run.choose, *run.flips):
            assert not raw(str(wording.setting(key)))
    for task in worksheet.tasks:
        tree, _ = looked_at(task)
        for leaf in parts(tree) if tree else ():
            if isinstance(leaf, Sampled | Measured | Time | Count):
                assert not raw(str(wording.figure(spelled(leaf), worksheet.numbers)))
        assert not raw(task.ask if isinstance(task, Check) else "")
