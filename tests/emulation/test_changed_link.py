"""A link's new rate and queue act on the packets that wait, and every change is made at its time."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

import pytest
from emulation.vm_run import VmRun, mean
from machine import needs_emulation

pytestmark = needs_emulation
SCENARIO = Path(__file__).with_name("changed_link.yaml")
AT_S, LATE_S = [4.13, 6.13, 9.42, 12.3], 0.05
MBPS, SLOW_MBPS, QUEUE_PACKETS = 5, 0.1, 60
TRIES = 3


@pytest.fixture(scope="module")
def changed(emulation: None, tmp_path_factory: pytest.TempPathFactory) -> VmRun:
    """The run. An overloaded run proves nothing, so it is repeated."""
    folder = tmp_path_factory.mktemp("changed")
    for number in range(TRIES):
        run = VmRun(folder / f"run{number}", scenario=str(SCENARIO))
        if not run.finish()["overloaded"]:
            break
    return run


def path(key: str) -> Any:
    return lambda sample: sample["link"]["path1"][key]


def test_a_link_carries_its_new_rate_at_once(changed: VmRun) -> None:
    samples = changed.samples()
    assert mean(samples, path("mbps"), 2, 4) == pytest.approx(MBPS, rel=0.05)
    assert mean(samples, path("mbps"), 5, 6) == pytest.approx(SLOW_MBPS, rel=0.5)
    # the queue was full of packets, which would need 7 s at the slow rate
    assert mean(samples, path("mbps"), 7, 12) > 0.9 * MBPS


def test_a_queue_holds_as_many_packets_as_the_scenario_says(changed: VmRun) -> None:
    waiting = [path("backlog")(each) for each in changed.samples()]
    assert QUEUE_PACKETS - 15 <= max(waiting) <= QUEUE_PACKETS


def test_changes_are_made_at_their_time_between_samples(changed: VmRun) -> None:
    """On a quiet machine within 20 ms. A busy one may hold a single change up, but not for a whole
    sample interval."""
    applied = [each["t"] for each in changed.events("flip") if each["state"] == "applied"]
    late_s = [made - at for made, at in zip(applied, AT_S, strict=True)]
    assert statistics.median(late_s) < LATE_S
    assert 0 <= min(late_s) <= max(late_s) < 0.5


def test_a_new_delay_acts(changed: VmRun) -> None:
    def rtt_ms(start_s: float, end_s: float) -> float:
        return mean(
            changed.samples(),
            lambda each: next(iter(each["sf"].values()))["rtt_ms"],
            start_s,
            end_s,
        )

    assert 25 < rtt_ms(10, 12) - rtt_ms(7, 9) + queueing_ms(changed) < 75


def test_another_queue_drops_what_waited_and_keeps_few(changed: VmRun) -> None:
    before, after = (mean(changed.samples(), path("backlog"), *at) for at in ((7, 9), (13, 15)))
    assert after < before / 2
    assert mean(changed.samples(), path("loss"), 12, 13) > 0.03
    assert mean(changed.samples(), path("mbps"), 13, 15) > 0.7 * MBPS


def queueing_ms(run: VmRun) -> float:
    """How much longer packets waited from 7 to 9 s than from 10 to 12 s."""
    before, after = (mean(run.samples(), path("backlog"), *span) for span in ((7, 9), (10, 12)))
    return (before - after) * 1514 * 8 / MBPS / 1000
