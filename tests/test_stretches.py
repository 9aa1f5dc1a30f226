"""The changes of a run divide it into stretches."""

from __future__ import annotations

import pytest

from lab.frame import Frame, UserSample
from lab.results.stretches import Span, stretches

FRAMES = [Frame(n / 2, user={"ue1": UserSample(4.0 if n <= 20 else 8.0)}) for n in range(1, 61)]


def rate(frame):
    return frame.user["ue1"].mbps


@pytest.mark.parametrize(
    ("times", "spans"),
    [
        ([], [(0, 30)]),
        ([10.0], [(0, 10), (10, 30)]),
        ([0.0, 10.0], [(0.0, 10), (10, 30)]),
        ([10.0, 10.4, 20.0], [(0, 10), (10.4, 20), (20, 30)]),
        ([10.0, 30.0], [(0, 10), (10, 30)]),
        ([10.0, 29.9, 31.0], [(0, 10), (10, 29.9), (29.9, 30)]),
        ([0.5], [(0.5, 30)]),  # within 1 s of the start
        ([10.0, 11.0], [(0, 10), (11, 30)]),
        ([10.0, 11.1], [(0, 10), (10, 11.1), (11.1, 30)]),
        ([10.0, 10.9, 11.8], [(0, 10), (11.8, 30)]),  # each within 1 s of the one before
    ],
)
def test_changes_begin_stretches(times, spans):
    assert [(each.span.start_s, each.span.end_s) for each in stretches(times, 30.0)] == spans


def test_a_stretch_names_the_changes_that_began_it():
    found = stretches([10.0, 10.4, 20.0], 30.0)
    assert [each.begun_by for each in found] == [(), (0, 1), (2,)]
    assert [each.begun_by for each in stretches([0.0, 12.0, 30.0], 30.0)] == [(0,), (1,)]


def test_the_mean_of_a_span_holds_nothing_of_its_neighbours():
    assert Span(0, 10).mean(FRAMES, rate) == 4
    assert Span(10, 30).mean(FRAMES, rate) == 8
    assert Span(9.8, 12).mean(FRAMES, rate) == 8  # the interval that began before 9.8 is left out
    assert Span(40, 50).mean(FRAMES, rate) is None
