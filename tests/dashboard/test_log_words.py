"""The titles of the event log are words, not the names of targets."""

from __future__ import annotations

import pytest

from dashboard.events import describe


@pytest.mark.parametrize(
    ("target", "old", "value", "title"),
    [
        ("link.path1.rate_mbps", 10, 2.5, "rate of link path1: 2.5 Mb/s instead of 10"),
        ("user.ue1.demand_mbps", None, 4, "ue1 asks for 4 Mb/s instead of as much as it can get"),
        ("strategy", "none", "loss_aware", "strategy loss_aware instead of none"),
        ("link.path1.up", True, False, "link path1 was cut"),
    ],
)
def test_the_log_names_changes_in_words(target, old, value, title):
    event = {"t": 1.0, "kind": "flip", "target": target, "old": old, "value": value, "seq": "1"}
    assert describe(event | {"state": "applied", "ok": True}, 1).title == title


@pytest.mark.parametrize(
    ("value", "title"), [(False, "cut link path1"), (True, "repair link path1")]
)
def test_a_change_that_was_only_sent_or_refused_has_not_happened(value, title):
    event = {"t": 1.0, "kind": "flip", "target": "link.path1.up", "value": value, "seq": "1"}
    for state in ({"state": "sent"}, {"state": "refused", "ok": False, "why": "no such link"}):
        assert describe(event | state, 1).title == title
