"""Traffic in both directions on the kernel's stack: uplinks, meters, limited rates, UDP, a user's
law.

All tests check one slow run in the VM; the simulator runs the same scenario.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from emulation.vm_run import VmRun, mean
from machine import needs_emulation

from lab.engines import registry
from lab.engines.mininet.programs.flow import PAYLOAD_BYTES
from lab.run.engine import Options
from lab.run.recorder import Recorder
from lab.run.runner import run as simulate
from lab.scenario import loading

pytestmark = needs_emulation
SCENARIO = Path(__file__).with_name("directions.yaml")
SETTLED_S, TRIES = 4, 3
LTE_MBPS = {"ue2": 1.5, "ue3": 1.5, "ue4": 2.0}  # of the bearers, when each is alone


@pytest.fixture(scope="module")
def emulated(
    emulation: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[VmRun, dict[str, Any], str]]:
    """The run, its result, and table 0 of the base station during the run.

    An overloaded run proves nothing, so it is repeated.
    """
    folder = tmp_path_factory.mktemp("directions")
    for number in range(TRIES):
        run = VmRun(folder / f"run{number}", scenario=str(SCENARIO))
        run.until(1)
        entries = run.execute("machine", "ovs-ofctl -O OpenFlow13 dump-flows lte1 table=0")
        result = run.finish()
        if not result["overloaded"]:
            break
    yield run, result, entries
    run.kill()


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    scenario = loading.load(str(SCENARIO))
    recorder = Recorder(tmp_path_factory.mktemp("simulated"), scenario, "sim")
    outcome = simulate(scenario, registry.create("sim", Options(0.0)), recorder)
    return outcome.result


def connections(result: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {each["id"]: each for each in result["connections"]}


def test_the_uplink_of_each_bearer_is_measured_and_has_the_rate_of_the_bearer(emulated):
    run, _, _ = emulated
    links = json.loads((run.folder / "manifest.json").read_text())["links_measured"]
    for user, rate_mbps in LTE_MBPS.items():
        link = links[f"{user}-lte0"]
        assert link["asked"]["up_mbps"] == rate_mbps
        assert link["measured"]["up_mbps"] == pytest.approx(rate_mbps, rel=0.35)


def test_no_upload_over_lte_is_faster_than_its_bearer(emulated):
    run, result, _ = emulated
    assert 0.2 < result["users"]["ue3"]["throughput_mbps"] < LTE_MBPS["ue3"]
    link = mean(run.samples(), lambda frame: frame["link"]["lte"]["mbps_ba"], SETTLED_S)
    assert link < max(LTE_MBPS.values())


def test_a_links_rate_is_that_of_the_busier_direction(emulated):
    run, _, _ = emulated
    for frame in run.samples():
        link = frame["link"]["lte"]
        assert link["mbps"] == max(link["mbps_ab"], link["mbps_ba"])
    up, down = (
        mean(run.samples(), lambda frame, key=key: frame["link"]["lte"][key], SETTLED_S)
        for key in ("mbps_ba", "mbps_ab")
    )
    assert up > down  # two uploads and UDP up, a download of 0.4 Mb/s


def test_a_meter_limits_the_upload_of_tier_2_and_not_its_acknowledgements(emulated):
    run, _, entries = emulated
    assert "nw_src=10.2.0.2" in entries
    assert "nw_dst=10.2.0.2" not in entries
    limits = [
        frame["ap"]["lte1"]["meter_mbps"]
        for frame in run.samples()
        if frame["ap"]["lte1"]["meter_mbps"] is not None
    ]
    assert limits
    tier2 = mean(run.samples(), lambda frame: frame["ap"]["lte1"]["tier2_mbps"], SETTLED_S)
    assert tier2 < 1.3 * max(limits)


def test_limited_rates_are_sent_whole(emulated):
    """All of ue4's traffic arrives. ue2's upload fills the WiFi cell, so a few of ue1's datagrams
    find a full queue."""
    run, result, _ = emulated

    def rate_mbps(flow: str) -> float:
        return mean(run.samples(), lambda frame: frame["sf"][f"{flow}/1"]["mbps"], SETTLED_S)

    (datagrams,) = connections(result)["ue1-1"]["subflows"]
    sent_mbps = datagrams["segments"] * 8e-6 * PAYLOAD_BYTES / result["duration_s"]
    assert sent_mbps == pytest.approx(0.4, rel=0.1)
    assert rate_mbps("ue1-1") > 0.7 * sent_mbps
    assert rate_mbps("ue4-1") == pytest.approx(0.3, rel=0.1)
    assert rate_mbps("ue4-2") == pytest.approx(0.4, rel=0.1)


def test_a_new_congestion_control_is_read_back_from_every_open_subflow(emulated):
    run, result, _ = emulated
    assert result["cc"] == "olia"
    used = {
        name: {subflow["cc"] for subflow in each["subflows"]}
        for name, each in connections(result).items()
    }
    assert used == {
        "ue1-1": {None},
        "ue2-1": {"bpf_olia"},
        "ue3-1": {"bpf_olia"},
        "ue4-1": {None},
        "ue4-2": {"bpf_olia"},
    }
    sent, flip = run.events("flip")
    assert (sent["state"], sent["seq"]) == ("sent", flip["seq"])
    assert (flip["state"], flip["ok"], flip["target"]) == ("applied", True, "cc")
    assert flip["note"].startswith("open connections use it too")


def test_both_engines_fill_in_the_same_fields(emulated, simulated):
    _, result, _ = emulated
    mine, theirs = connections(result), connections(simulated)
    assert set(mine) == set(theirs)
    for name, each in theirs.items():
        for key, value in each.items():
            assert key == "subflows" or (mine[name][key] is None) == (value is None), (name, key)
        for ours, subflow in zip(mine[name]["subflows"], each["subflows"], strict=True):
            assert (ours["path"], ours["tier"]) == (subflow["path"], subflow["tier"])
            empty = {key for key, value in ours.items() if value is None}
            udp = {"cc", "rtt_ms_mean"} if subflow["cc"] is None else set()
            assert empty == udp, name
