"""A simulated run reads the same in scenario units at every rate scale."""

from __future__ import annotations

import pytest

SCALES = (1, 0.25)


def decisions(simulation) -> list[tuple]:
    """(time, reason, rates) of each decision."""
    rates = ("meter_mbps", "expected_mbps")
    return [
        (event["t"], event["reason"], *(event.get(rate) for rate in rates))
        for event in simulation.notes.events
        if event["kind"] == "decision"
    ]


def in_scenario_units(simulation, seconds: float):
    """The last frame, as the runner records it."""
    simulation.run(seconds - 0.5)
    (frame,) = simulation.engine.advance(seconds)
    return frame.in_scenario_units(simulation.scenario.rate_scale)


@pytest.mark.parametrize("name", ["two_paths", "pooling"])
def test_pacing_rates_and_their_reasons_are_the_same_at_every_rate_scale(simulated, name):
    settings = (f"rate_scale={scale}" for scale in SCALES)
    runs = [simulated(name, each, strategy="expected_throughput") for each in settings]
    frames = [in_scenario_units(each, 6) for each in runs]
    full, quarter = (decisions(each) for each in runs)
    assert [each[1:] for each in full] == [each[1:] for each in quarter]
    assert full  # a subflow is there later if the queue that its handshake crosses takes longer
    assert [each[0] for each in full] == pytest.approx([each[0] for each in quarter], abs=0.2)
    paced = [
        {name: each.expected_mbps for name, each in frame.sf.items() if each.expected_mbps}
        for frame in frames
    ]
    assert paced[0] == paced[1]
    assert paced[0]


def test_a_meter_above_the_floor_is_the_same_at_every_rate_scale(testbed):
    settings = "strategy.params.min_rate_mbps=1"
    runs = [
        testbed(f"rate_scale={scale}", settings, strategy="meter_throttling") for scale in SCALES
    ]
    meters = [
        {ap: each.meter_mbps for ap, each in in_scenario_units(run, 1).ap.items()} for run in runs
    ]
    assert meters[0] == meters[1] == {"wifi1": 1, "lte1": 1}
    assert decisions(runs[0]) == decisions(runs[1])
    assert all("floor of 1 Mb/s" in reason for _, reason, *_ in decisions(runs[0]))


@pytest.mark.parametrize("scale", [1, 0.25, 0.1])
def test_the_floor_of_a_meter_rises_where_the_wire_rate_would_be_too_low(testbed, scale):
    """The floor is the strategy's 0.1 Mb/s, but at least 0.05 Mb/s on the wire."""
    simulation = testbed(f"rate_scale={scale}", strategy="meter_throttling")
    floor_mbps = max(0.1, 0.05 / scale)
    assert in_scenario_units(simulation, 1).ap["wifi1"].meter_mbps == pytest.approx(floor_mbps)
    assert {
        (reason.split("floor of ")[1], mbps) for _, reason, mbps, _ in decisions(simulation)
    } == {(f"{floor_mbps:g} Mb/s", floor_mbps)}


@pytest.mark.parametrize("scale", SCALES)
def test_an_observation_holds_wire_rates_and_the_scale(testbed, scale):
    simulation = testbed(f"rate_scale={scale}")
    simulation.run(1)
    observation = simulation.engine.observer.observe(
        simulation.network.now_ns, {}, dict.fromkeys(("wifi1", "lte1"))
    )
    assert observation.rate_scale == scale
    rates = {(each.user, each.ap): each.rate_bps for each in observation.associations}
    assert rates["ue1", "wifi1"] == 42_000_000 * scale
