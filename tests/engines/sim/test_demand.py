"""`expected_throughput/improved` reserves no rate for users who hardly send."""

from __future__ import annotations

import pytest


@pytest.fixture
def beside(shared):
    """Simulate a bulk user, ue1, and others on the same link who send 0.1 Mb/s. All have two
    subflows."""

    def make(strategy, others, mbps, seed):
        quiet = [f"ue{n}" for n in range(2, others + 2)]
        return shared(
            [{"id": user, "subflows": 2} for user in ("ue1", *quiet)],
            [
                {"user": "ue1"},
                *({"user": user, "kind": "rate", "rate_mbps": 0.1} for user in quiet),
            ],
            mbps,
            seed=seed,
            strategy={"name": strategy},
        )

    return make


@pytest.mark.parametrize(("others", "mbps", "seed"), [(7, 20, 1), (3, 12, 5), (10, 40, 9)])
def test_a_bulk_user_gets_what_the_others_leave(beside, others, mbps, seed):
    def rates(strategy):
        run = beside(strategy, others, mbps, seed)
        run.run(6)
        frames = run.run(6)
        return run.mbps(frames), run.mbps(frames, "ue2")

    plain, _ = rates("none")
    bulk, other = rates("expected_throughput/improved")
    assert bulk >= 0.93 * plain
    assert other == pytest.approx(0.1, rel=0.1)
    reserved, _ = rates("expected_throughput")
    assert reserved < 1.2 * mbps / (others + 1)


def test_who_begins_to_send_has_a_fair_share_within_some_seconds(beside):
    run = beside("expected_throughput/improved", 1, 20, 3)
    run.run(8)
    run.flip("user.ue2.demand_mbps", 20)
    run.run(6)
    frames = run.run(5)
    assert run.mbps(frames, "ue2") == pytest.approx(run.mbps(frames), rel=0.15)
