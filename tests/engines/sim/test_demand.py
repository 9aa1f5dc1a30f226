"""`expected_throughput/improved` reserves no rate for users who hardly send."""

from __future__ import annotations

import pytest

from lab.scenario import loading


def network(strategy, sends, rate_mbps, seed):
    """One bulk user with two subflows, and others on the same link who send a little."""
    users = [f"ue{n}" for n in range(1, sends + 2)]
    data = {
        "name": "shared",
        "title": "Shared",
        "seed": seed,
        "topology": {
            "kind": "shared_bottleneck",
            "rate_mbps": rate_mbps,
            "delay_ms": 10,
            "users": [{"id": user, "subflows": 2} for user in users],
        },
        "strategy": {"name": strategy},
        "traffic": [
            {"user": "ue1"},
            *({"user": user, "kind": "rate", "rate_mbps": 0.1} for user in users[1:]),
        ],
    }
    return loading.from_data(data, "shared.yaml")


@pytest.mark.parametrize(("others", "rate_mbps", "seed"), [(7, 20, 1), (3, 12, 5), (10, 40, 9)])
def test_a_bulk_user_gets_what_the_others_leave(simulation_of, others, rate_mbps, seed):
    def rates(strategy):
        run = simulation_of(network(strategy, others, rate_mbps, seed))
        run.run(6)
        frames = run.run(6)
        return run.mbps(frames), run.mbps(frames, "ue2")

    plain, (bulk, other) = rates("none"), rates("expected_throughput/improved")
    assert bulk >= 0.93 * plain[0]
    assert other == pytest.approx(0.1, rel=0.1)
    reserved, _ = rates("expected_throughput")
    assert reserved < 1.2 * rate_mbps / (others + 1)


def test_who_begins_to_send_has_a_fair_share_within_some_seconds(simulation_of):
    run = simulation_of(network("expected_throughput/improved", 1, 20, 3))
    run.run(8)
    run.flip("user.ue2.demand_mbps", 20)
    run.run(6)
    frames = run.run(5)
    assert run.mbps(frames, "ue2") == pytest.approx(run.mbps(frames), rel=0.15)
