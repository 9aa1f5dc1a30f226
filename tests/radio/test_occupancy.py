"""MAC occupancy: the longer backlog for WiFi, the bearers that carry Tier 1 for LTE."""

from __future__ import annotations

import pytest

from controller.tiers import tier1_mean
from lab.radio.occupancy import bearer_occupancy, occupancy, waiting_uploads, wifi_occupancy


@pytest.mark.parametrize(("packets", "expected"), [(0, 0), (4, 0.25), (16, 1), (500, 1)])
def test_a_full_ring_is_full_occupancy(packets, expected):
    assert occupancy(packets) == expected


def test_the_longer_of_downloads_and_uploads_counts_for_wifi():
    assert wifi_occupancy(4, 8) == wifi_occupancy(8, 4) == 0.5


def test_waiting_uploads_are_the_wait_in_frames():
    ms_per_frame = 1514 * 8 / 10_000  # at 10 Mb/s
    assert waiting_uploads(round(7 * ms_per_frame * 1e6), [10_000_000]) == 7
    # One frame at 10 and one at 30 Mb/s take two thirds of that on average.
    assert waiting_uploads(round(8 * ms_per_frame * 1e6), [10_000_000, 30_000_000]) == 12
    assert waiting_uploads(10**9, []) == 0


def test_the_longest_queue_of_a_bearer_counts():
    assert (bearer_occupancy([8]), bearer_occupancy([2, 12])) == (0.5, 0.75)


def test_lte_occupancy_is_the_mean_over_tier_1():
    bearers = {"ue1": 1.0, "ue2": 0.5, "ue3": 0.0}
    assert tier1_mean(bearers, {"ue1": 1, "ue2": 1, "ue3": 2}) == 0.75
    assert tier1_mean(bearers, {"ue1": 2}) == 0.25  # a user without a tier carries Tier 1
    assert tier1_mean(bearers, dict.fromkeys(bearers, 2)) == 0.5  # nobody carries Tier 1
    assert tier1_mean({}, {}) == 0
