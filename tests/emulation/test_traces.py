"""Links of the emulation follow traces."""

from __future__ import annotations

from pathlib import Path

import pytest
from emulation.vm_run import VmRun, mean
from machine import needs_emulation

from lab.topologies import trace

pytestmark = needs_emulation
SCENARIO = Path(__file__).with_name("traced_links.yaml")
LTE = Path(__file__).parents[2] / "scenarios/traces/lte_drive.mahimahi"
TRIES = 3


@pytest.fixture(scope="module")
def traced(emulation: None, tmp_path_factory: pytest.TempPathFactory) -> VmRun:
    """The run. An overloaded run proves nothing, so it is repeated."""
    folder = tmp_path_factory.mktemp("traced")
    for number in range(TRIES):
        run = VmRun(folder / f"run{number}", scenario=str(SCENARIO))
        if not run.finish()["overloaded"]:
            return run
    pytest.fail(f"this machine is overloaded: {run.folder}")


def offered_mbps(start_s: float, end_s: float) -> float:
    steps = trace.read(LTE, 100).steps
    shares = [
        (max(0.0, min(end_s, each.at_s + each.lasts_s) - max(start_s, each.at_s)), each.rate_mbps)
        for each in steps
    ]
    return sum(share_s * (mbps or 0) for share_s, mbps in shares) / (end_s - start_s)


def test_a_full_link_carries_what_its_trace_offers(traced: VmRun) -> None:
    carried = mean(traced.samples(), lambda each: each["link"]["path2"]["mbps"], 2, 16)
    assert 0.95 < carried / offered_mbps(2, 16) < 1.02


def test_nothing_leaves_while_the_rate_is_zero(traced: VmRun) -> None:
    def mbps(start_s: float, end_s: float) -> float:
        return mean(traced.samples(), lambda each: each["link"]["path1"]["mbps"], start_s, end_s)

    assert mbps(2, 6) > 9.5
    assert mbps(6.5, 8) < 0.05
    assert mbps(11, 16) > 9.3  # a retransmission timer of up to 2 s runs when the rate is back


def test_the_delay_follows_its_trace(traced: VmRun) -> None:
    text = (traced.folder / "commands.sh").read_text()
    assert " delay 40" in text


def test_every_value_is_set_at_its_time(traced: VmRun) -> None:
    """A trace of 10 values in a second keeps the network's clock: no sample is late."""
    assert traced.finish()["mptcp"]["verified"]
    steps = [each for each in trace.read(LTE, 100).steps if each.at_s < 16]
    lines = (traced.folder / "commands.sh").read_text().splitlines()
    changes = [each for each in lines if " htb rate " in each and "s1-eth3" in each]
    assert len(changes) >= 0.95 * len(steps)
