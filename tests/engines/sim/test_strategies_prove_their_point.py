"""The benefit of each strategy on five seeds, against the figures of its paper."""

from __future__ import annotations

from statistics import fmean

import pytest

from lab import summaries
from lab.scenario import loading as scenario
from lab.scenario.loading import Overrides

from .conftest import Simulation

pytestmark = pytest.mark.whole

SEEDS = range(1, 6)
GOODPUT = 1420 / 1514  # payload in a frame


def simulation(name: str, strategy: str, seed: int) -> Simulation:
    return Simulation(scenario.load(name, Overrides(strategy=strategy, seed=seed)))


def cores(run: Simulation) -> list[str]:
    """Core switch of each subflow."""
    return [next(name for name in path if name.startswith("c")) for path in paths(run).values()]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("name", "mbps", "subflows"), [("collision_within", 20, 2), ("collision_between", 40, 4)]
)
class TestCollisionsAreAvoided:
    """S-MPTCP, Tables 9 and 10: 18.862 of 20 and 37.716 of 40 Mb/s, which is the goodput of full
    use."""

    def test_each_subflow_has_a_core_switch_of_its_own(self, name, mbps, subflows, seed):
        run = simulation(name, "expected_throughput", seed)
        run.run(3)
        assert len(set(cores(run))) == len(cores(run)) == subflows

    def test_goodput_is_that_of_the_whole_capacity(self, name, mbps, subflows, seed):
        run = simulation(name, "expected_throughput", seed)
        run.run(5)
        total = sum(user["mbps"] for frame in run.run(10) for user in frame["user"].values()) / 20
        assert total == pytest.approx(mbps * GOODPUT, rel=0.01)


@pytest.mark.parametrize("strategy", ["expected_throughput", "disjoint"])
@pytest.mark.parametrize("name", ["collision_within", "collision_between", "fat_tree"])
def test_a_replaced_strategy_leaves_nothing_behind(name, strategy):
    plain, chosen = simulation(name, "none", 1), simulation(name, strategy, 1)
    for run in (plain, chosen):
        run.run(2)
    before = paths(chosen)
    chosen.flip("strategy", "none")
    chosen.run(2)
    assert before != paths(plain) or strategy == "disjoint"
    assert paths(chosen) == paths(plain)
    assert not any(
        each["expected_mbps"] or each["backup"] for each in chosen.run(1)[-1]["sf"].values()
    )


def paths(run: Simulation) -> dict[tuple[str, int], tuple[str, ...]]:
    return {key: subflow.path for key, subflow in run.engine.observer.active_subflows().items()}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_broken_core_link_moves_one_subflow_and_the_connection_continues(seed):
    """In a fat tree with k = 4 the subflows use different core switches, before and after the
    break. The network first moves the subflow to a path chosen by hash. If the other subflow uses
    it, the strategy moves one of them away."""
    alone = Overrides(
        strategy="expected_throughput", seed=seed, settings=("traffic=[{user: ue1, kind: bulk}]",)
    )
    run = Simulation(scenario.load("fat_tree", alone))
    run.run(4)
    broken, intact = paths(run).values()
    run.flip(f"link.{broken[2]}-{broken[1]}.up", False)
    run.run(5)  # after about 3 s the data behind the lost segments have been read
    after = set(paths(run).values())
    assert intact in after
    assert broken not in after
    assert len({path[2] for path in after}) == 2
    assert run.mbps(run.run(5)) == pytest.approx(20 * GOODPUT, rel=0.02)


def test_eight_connections_continue_when_a_core_link_breaks():
    run = simulation("fat_tree", "expected_throughput", 1)
    run.run(4)
    run.flip("link.c1-a1x1.up", False)
    run.run(3)
    frames = run.run(5)
    assert all(run.mbps(frames, f"ue{n}") > 0.8 * 10 * 7 / 8 * GOODPUT for n in range(1, 9))


def test_hashed_paths_collide_for_some_seeds():
    collisions = [len(cores(run)) - len(set(cores(run))) for run in map(started_by_hash, SEEDS)]
    assert 0 < sum(collisions) < len(collisions) * 2


def started_by_hash(seed: int) -> Simulation:
    run = simulation("collision_between", "none", seed)
    run.run(1)
    return run


def shares(strategy: str, seed: int) -> list[float]:
    """Mb/s of the three connections of Figure 1 from 20 to 40 s; the last one starts at 10 s."""
    run = simulation("pooling", strategy, seed)
    frames = [frame for frame in run.run(40) if frame["t"] > 20]
    return [
        fmean(frame["user"][user]["mbps"] for frame in frames) for user in ("ue1", "ue2", "ue3")
    ]


@pytest.mark.parametrize("seed", SEEDS)
def test_expected_throughput_makes_pooling_fair(seed):
    """S-MPTCP, Table 7: the standard deviation is 0.018 Mb/s, that of plain MPTCP 2.8 to 3.5, at
    the same total."""
    even, plain = shares("expected_throughput", seed), shares("none", seed)
    scale = scenario.load("pooling").rate_scale
    assert summaries.sd(even) < 0.02 * scale
    assert 10 * summaries.sd(even) < summaries.sd(plain)
    assert summaries.jain(even) > 0.9999 > summaries.jain(plain)
    assert sum(even) >= 0.99 * 36 * scale * GOODPUT


def test_pooling_is_even_three_seconds_after_the_last_arrival():
    """Table 7 has 2.0 s. Here each second's mean is within a tenth of the final one."""
    run = simulation("pooling", "expected_throughput", 1)
    frames = [frame for frame in run.run(30) if frame["t"] > 13]
    for user in ("ue1", "ue2", "ue3"):
        rates = [frame["user"][user]["mbps"] for frame in frames]
        seconds = [fmean(rates[n : n + 2]) for n in range(len(rates) - 1)]
        assert all(each == pytest.approx(seconds[-1], rel=0.1) for each in seconds)


def mbps_with_a_lossy_period(strategy: str, seed: int) -> float:
    """Mean of dynamic_loss: 30 s of loss, and 10 s before and after it."""
    run = simulation("dynamic_loss", strategy, seed)
    frames = run.run(10)
    run.flip("link.path1.loss", 0.05)
    frames += run.run(30)
    run.flip("link.path1.loss", 0)
    frames += run.run(10)
    return run.mbps(frames)


@pytest.mark.parametrize("seed", SEEDS)
def test_loss_aware_carries_more_than_plain_mptcp(seed):
    """MPTCP-LA, Figure 5: MPTCP-LA is above MPTCP; the text gives no figures."""
    assert mbps_with_a_lossy_period("loss_aware", seed) > 1.03 * mbps_with_a_lossy_period(
        "none", seed
    )


def outcome(strategy: str, seed: int) -> dict[str, float]:
    run = simulation("fifteen_paths", strategy, seed)
    mbps = run.mbps(run.run(60))
    (connection,) = run.report()["connections"]
    forecasts = [each for each in run.notes.events if each.get("action") == "forecast"]
    return {
        "mbps": mbps,
        "out_of_order": connection["out_of_order_fraction"],
        "forecasts": forecasts,
    }


@pytest.mark.parametrize("seed", SEEDS)
def test_a_few_of_fifteen_paths_carry_more_with_less_disorder(seed):
    """DTMC selection, Figures 5 and 6: from four paths on more throughput than full mesh, and far
    fewer segments out of order."""
    few, every = outcome("subflow_selection", seed), outcome("none", seed)
    assert few["mbps"] > 1.1 * every["mbps"]
    assert few["out_of_order"] < 0.85 * every["out_of_order"]
    assert all(
        each["forecast_mbps"] and each["forecast_buffer_kb"] is not None
        for each in few["forecasts"]
    )
    measured = [each["measured_mbps"] for each in few["forecasts"][1:]]
    assert len(measured) >= 25
    assert all(measured)
