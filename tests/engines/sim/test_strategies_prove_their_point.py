"""What each strategy is for, on five seeds each, beside the figures of its paper."""

from __future__ import annotations

from statistics import fmean

import pytest

from lab.run import metrics
from lab.scenario import loading as scenario
from lab.scenario.overrides import Overrides

from .conftest import Simulation

pytestmark = pytest.mark.whole

SEEDS = range(1, 6)
GOODPUT = 1420 / 1514  # of a frame


def simulation(name: str, strategy: str, seed: int) -> Simulation:
    return Simulation(scenario.load(name, Overrides(strategy=strategy, seed=seed)))


def cores(run: Simulation) -> list[str]:
    """The core switch that each subflow crosses."""
    ways = [subflow.path for subflow in run.engine.observer.active_subflows().values()]
    return [next(name for name in way if name.startswith("c")) for way in ways]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("name", "mbps", "subflows"), [("collision_within", 20, 2), ("collision_between", 20, 4)]
)
class TestNoCollision:
    """S-MPTCP, Tables 9 and 10: 18.862 of 20 and 37.716 of 40 Mb/s, the goodput of all frames; here at the scenario's rates."""

    def test_of_paths(self, name, mbps, subflows, seed):
        run = simulation(name, "expected_throughput", seed)
        run.run(3)
        assert len(set(cores(run))) == len(cores(run)) == subflows

    def test_so_all_the_network_is_used(self, name, mbps, subflows, seed):
        run = simulation(name, "expected_throughput", seed)
        run.run(5)
        total = sum(user["mbps"] for frame in run.run(10) for user in frame["user"].values()) / 20
        assert total == pytest.approx(mbps * GOODPUT, rel=0.01)


@pytest.mark.parametrize("strategy", ["expected_throughput", "disjoint"])
@pytest.mark.parametrize("name", ["collision_within", "collision_between", "fat_tree"])
def test_a_strategy_that_is_flipped_away_leaves_nothing_behind(name, strategy):
    plain, chosen = simulation(name, "none", 1), simulation(name, strategy, 1)
    for run in (plain, chosen):
        run.run(2)
    before = ways(chosen)
    chosen.flip("strategy", "none")
    chosen.run(2)
    assert before != ways(plain) or strategy == "disjoint"
    assert ways(chosen) == ways(plain)
    assert not any(
        each["expected_mbps"] or each["backup"] for each in chosen.run(1)[-1]["sf"].values()
    )


def ways(run: Simulation) -> dict[tuple[str, int], tuple[str, ...]]:
    return {key: subflow.path for key, subflow in run.engine.observer.active_subflows().items()}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_core_link_that_breaks_moves_one_subflow_and_the_connection_goes_on(seed):
    """fat_tree(4): the subflows cross different core switches, before and after."""
    alone = Overrides(
        strategy="expected_throughput", seed=seed, settings=("traffic=[{user: ue1, kind: bulk}]",)
    )
    run = Simulation(scenario.load("fat_tree", alone))
    run.run(4)
    moves, stays = ways(run).values()
    run.flip(f"link.{moves[2]}-{moves[1]}.up", False)
    run.run(5)  # after some three what waited for the lost segments has been read
    moved, still = ways(run).values()
    assert still == stays
    assert moved != moves
    assert moved[2] != still[2]
    assert run.mbps(run.run(5)) == pytest.approx(5 * GOODPUT, rel=0.02)


def test_eight_connections_go_on_when_a_core_link_breaks():
    run = simulation("fat_tree", "expected_throughput", 1)
    run.run(4)
    run.flip("link.c1-a1x1.up", False)
    run.run(3)
    frames = run.run(5)
    assert all(run.mbps(frames, f"ue{n}") > 0.8 * 2.5 * 7 / 8 * GOODPUT for n in range(1, 9))


def test_by_hash_some_seeds_collide():
    met = [len(cores(run)) - len(set(cores(run))) for run in map(started_by_hash, SEEDS)]
    assert 0 < sum(met) < len(met) * 2


def started_by_hash(seed: int) -> Simulation:
    run = simulation("collision_between", "none", seed)
    run.run(1)
    return run


def shares(strategy: str, seed: int) -> list[float]:
    """Mb/s of the three connections of Figure 1 from 20 to 40 s; the last came at 10 s."""
    run = simulation("pooling", strategy, seed)
    frames = [frame for frame in run.run(40) if frame["t"] > 20]
    return [
        fmean(frame["user"][user]["mbps"] for frame in frames) for user in ("ue1", "ue2", "ue3")
    ]


@pytest.mark.parametrize("seed", SEEDS)
def test_pooling_is_fair(seed):
    """S-MPTCP, Table 7: a standard deviation of 0.018 Mb/s where plain MPTCP has 2.8 to 3.5, at the same total."""
    even, plain = shares("expected_throughput", seed), shares("none", seed)
    scale = scenario.load("pooling").rate_scale
    assert metrics.sd(even) < 0.02 * scale
    assert 10 * metrics.sd(even) < metrics.sd(plain)
    assert metrics.jain(even) > 0.9999 > metrics.jain(plain)
    assert sum(even) >= 0.99 * 36 * scale * GOODPUT


def test_pooling_is_even_three_seconds_after_the_last_arrival():
    """Table 7: 2.0 s. Each second's mean of each connection within a tenth of its final one."""
    run = simulation("pooling", "expected_throughput", 1)
    frames = [frame for frame in run.run(30) if frame["t"] > 13]
    for user in ("ue1", "ue2", "ue3"):
        rates = [frame["user"][user]["mbps"] for frame in frames]
        seconds = [fmean(rates[n : n + 2]) for n in range(len(rates) - 1)]
        assert all(each == pytest.approx(seconds[-1], rel=0.1) for each in seconds)


def while_a_path_loses(strategy: str, seed: int) -> float:
    """Mb/s of dynamic_loss with its 30 s of loss, and 10 s before and after."""
    run = simulation("dynamic_loss", strategy, seed)
    frames = run.run(10)
    run.flip("link.path1.loss", 0.05)
    frames += run.run(30)
    run.flip("link.path1.loss", 0)
    frames += run.run(10)
    return run.mbps(frames)


@pytest.mark.parametrize("seed", SEEDS)
def test_leaving_a_path_that_loses_pays(seed):
    """MPTCP-LA, Figure 5: MPTCP-LA above MPTCP (no figures in the text)."""
    assert while_a_path_loses("loss_aware", seed) > 1.05 * while_a_path_loses("none", seed)


def few_or_all(strategy: str, seed: int) -> dict[str, float]:
    run = simulation("fifteen_paths", strategy, seed)
    mbps = run.mbps(run.run(60))
    (connection,) = run.report()["connections"]
    forecasts = [each for each in run.notes.events if each.get("action") == "forecast"]
    return {"mbps": mbps, "late": connection["out_of_order_fraction"], "forecasts": forecasts}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_few_of_fifteen_paths_carry_more_in_better_order(seed):
    """DTMC selection, Figures 5 and 6: above full mesh from four paths on, and far fewer segments out of order."""
    few, all_of_them = few_or_all("subflow_selection", seed), few_or_all("none", seed)
    assert few["mbps"] > 1.1 * all_of_them["mbps"]
    assert few["late"] < 0.85 * all_of_them["late"]
    assert all(
        each["forecast_mbps"] and each["forecast_buffer_kb"] is not None
        for each in few["forecasts"]
    )
    measured = [each["measured_mbps"] for each in few["forecasts"][1:]]
    assert len(measured) >= 25
    assert all(measured)
