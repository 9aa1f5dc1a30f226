"""Interfere with one run under meter throttling: POX decides, switches and hosts carry it out.

Rates in samples and decisions are in scenario units; Open vSwitch shows those on the wire.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from emulation.vm_run import POX, VmRun, mean, signalled
from machine import needs_emulation

pytestmark = needs_emulation
SCALE = 0.2
FLOOR_KBPS = 50  # of a meter on the wire: 0.1 Mb/s of the scenario would be 20 kb/s
METER = "ovs-ofctl -O OpenFlow13 meter-stats wifi1; date +%s.%N"
FLOWS = "ovs-appctl revalidator/wait; ovs-ofctl -O OpenFlow13 dump-flows wifi1 table=0; date +%s.%N"


def bytes_counted(run: VmRun) -> tuple[float, float]:
    """Bytes into meter 1, and those of its flows at the same moment.

    The meter is read before and after the flows, and interpolated.
    """
    text = run.execute("machine", f"{METER}; {FLOWS}; {METER}")
    before, after = (int(number) for number in re.findall(r"byte_in_count:(\d+)", text))
    start_s, middle_s, end_s = (
        float(number) for number in re.findall(r"^\d+\.\d{9}$", text, re.MULTILINE)
    )
    flows = sum(int(number) for number in re.findall(r"n_bytes=(\d+)[^\n]*meter:1", text))
    return before + (after - before) * (middle_s - start_s) / (end_s - start_s), flows


def station_bytes(run: VmRun) -> int:
    dump = run.execute("machine", "iw dev wifi1-wlan1 station dump")
    ue3 = dump[dump.index("02:00:0a:01:00:03") :]
    return int(re.search(r"tx bytes:\s*(\d+)", ue3).group(1))


@pytest.fixture(scope="module")
def story(start: Callable[..., VmRun]) -> dict[str, Any]:
    """Make the run; return what was done to it and what was read."""
    run = start(
        "control",
        "--strategy",
        "meter_throttling",
        "--duration",
        "400",
        "--set",
        f"rate_scale={SCALE}",
    )
    found: dict[str, Any] = {"run": run}
    run.wait_for("first sample", run.samples)

    run.until(12)
    found["kbps_at_the_floor"] = run.meter_kbps("wifi1")
    run.flip("strategy.min_rate_mbps", 1)
    run.wait_for("the new floor in Open vSwitch", lambda: run.meter_kbps("wifi1") == 1000 * SCALE)
    run.flip("strategy.min_rate_mbps", 0.1)
    run.wait_for("the old floor", lambda: run.meter_kbps("wifi1") == FLOOR_KBPS)

    found["station_bytes"] = [station_bytes(run)]
    run.until(run.now() + 4)
    found["station_bytes"].append(station_bytes(run))

    run.execute("machine", signalled(POX, "STOP"))
    found["pox_stopped"] = run.now() + 1
    run.until(run.now() + 2)
    found["counted"] = [bytes_counted(run)]
    found["meter_while_stopped"] = [run.meter_kbps("wifi1")]
    run.until(run.now() + 20)
    found["counted"].append(bytes_counted(run))
    found["meter_while_stopped"].append(run.meter_kbps("wifi1"))
    found["pox_still_stopped"] = run.now()
    run.execute("machine", signalled(POX, "CONT"))
    run.wait_for(
        "a decision of POX", lambda: run.events("decision")[-1]["t"] > found["pox_still_stopped"]
    )
    run.until(run.now() + 6)

    run.execute("machine", "ovs-ofctl -O OpenFlow13 del-meters wifi1")
    found["meter_deleted"] = run.now()
    run.until(run.now() + 8)
    run.wait_for("the meter put back", lambda: run.meter_kbps("wifi1") is not None)
    run.until(run.now() + 4)

    found["samples_without_runner"], found["lines_without_runner"] = (
        run.written_without_the_runner()
    )

    run.until(run.now() + 12)
    run.execute("machine", "pkill hostapd")
    found["hostapd_killed"] = run.now()
    run.until(run.now() + 10)
    found["hostapd_over"] = run.now()
    run.kill()
    found["result"] = run.finish()
    return found


def test_a_flip_reaches_the_switch_within_an_interval(story):
    assert story["kbps_at_the_floor"] == FLOOR_KBPS
    lines = story["run"].decisions()
    flipped = next(n for n, line in enumerate(lines) if line["kind"] == "flip")
    lifted = next(
        n
        for n, line in enumerate(lines)
        if n > flipped and line.get("ap") == "wifi1" and line.get("meter_mbps") == 1
    )
    print(f"flip decided after {lines[lifted]['at'] - lines[flipped]['at']:.1f} s")
    assert (
        sum(line["kind"] == "observation" for line in lines[flipped:lifted]) == 1
    )  # the first interval after it decides


def test_hwsim_carries_the_wifi_subflow(story):
    before, after = story["station_bytes"]
    assert after > before


def test_a_stopped_pox_freezes_the_meter_and_not_the_traffic(story):
    run, since = story["run"], story["pox_stopped"]
    assert story["meter_while_stopped"][0] == story["meter_while_stopped"][1]
    until = story["pox_still_stopped"]
    assert not [line for line in run.events("decision") if since + 1 < line["t"] < until]
    assert (
        mean(run.samples(), lambda frame: frame["ap"]["wifi1"]["tier1_mbps"], since, until)
        > 4 / SCALE
    )


def test_the_meters_bytes_are_the_tier_2_bytes(story):
    (meter_before, flow_before), (meter_after, flow_after) = story["counted"]
    metered, flowed = meter_after - meter_before, flow_after - flow_before
    print(f"{metered:.0f} bytes into the meter, {flowed:.0f} in its flows")
    assert metered > 20_000
    assert metered == pytest.approx(flowed, rel=0.05)


def test_without_the_meter_tier_2_is_free(story):
    """The best sample counts: a connection whose other subflow keeps the receive buffer full sends
    nothing for a second or two."""
    samples, deleted = story["run"].samples(), story["meter_deleted"]

    def best_mbps(start: float, end: float) -> float:
        return max(
            frame["ap"]["wifi1"]["tier2_mbps"] for frame in samples if start < frame["t"] <= end
        )

    held, freed = (
        best_mbps(deleted - 7, deleted - 2),
        best_mbps(deleted, deleted + 8),
    )  # the command itself takes a second or two
    print(f"Tier 2 {held:.2f} Mb/s at best with the meter, {freed:.2f} without")
    assert freed > 3 * held


def test_a_stopped_runner_does_not_stop_pox_deciding(story):
    assert story["samples_without_runner"] <= 1
    assert story["lines_without_runner"] >= 4


def test_a_stopped_runner_counts_as_overload(story):
    assert story["result"]["overloaded"] is True
    assert story["result"]["overload"]["late_max_s"] > 5


def test_without_hostapd_only_the_wifi_subflows_stop(story):
    run, end = story["run"], story["hostapd_over"]
    wifi = mean(
        run.samples(),
        lambda frame: frame["ap"]["wifi1"]["tier1_mbps"] + frame["ap"]["wifi1"]["tier2_mbps"],
        end - 4,
        end,
    )
    lte = mean(run.samples(), lambda frame: frame["ap"]["lte1"]["tier1_mbps"], end - 4, end)
    assert wifi < 0.1
    assert lte > 5 / SCALE


def test_an_interrupted_run_keeps_what_was_measured(story):
    run, result = story["run"], story["result"]
    assert run.process.returncode == 130
    assert result["status"] == "interrupted"
    assert result["throughput_mbps"] > 0
