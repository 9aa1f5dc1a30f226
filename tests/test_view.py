"""What terminal and pages say about the verdict on Multipath TCP and the unit of rates."""

from __future__ import annotations

import pytest

from lab.results import labels


@pytest.mark.parametrize(
    ("mptcp", "text"),
    [
        (
            {"verified": True, "joins": 2, "fallbacks": 0},
            "Multipath TCP verified: 2 extra subflows, no fallback to plain TCP",
        ),
        (
            {"verified": False, "joins": 0, "fallbacks": 1, "why": "ue2-1 is plain TCP"},
            "Multipath TCP NOT verified: no extra subflow, 1 fallback to plain TCP "
            "(ue2-1 is plain TCP)",
        ),
        ({}, "Multipath TCP NOT verified: no extra subflow, no fallback to plain TCP"),
    ],
)
def test_the_multipath_verdict_in_words(mptcp, text):
    assert labels.describe(mptcp) == text


def test_a_scaled_run_says_what_is_scaled_and_what_is_not():
    assert labels.note(1) == labels.note(None) == labels.scale_label(1) == ""
    text = labels.note(0.25)
    assert "Rates on the wire are scaled by 0.25" in text
    assert "queueing delay is 4 times as long" in text
    assert labels.scale_label(0.25) == "rate scale 0.25"
    assert labels.scale_label(None, schema=1) == "wire rates"
    assert labels.scale_label(0.25, schema=2) == "rate scale 0.25, handshakes without packets"
    for schema in (1, 2):
        assert "cannot be compared" in labels.note(None, schema)


def test_slower_clocks_are_told_and_real_time_is_not():
    assert labels.clocks_label(1) == labels.clocks_note(None) == labels.clocks_note(1) == ""
    assert labels.clocks_label(2.5) == "clocks 2.5 times slower"
    assert "A second of the run takes 8 s" in labels.clocks_note(8)
