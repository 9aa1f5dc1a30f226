"""Congestion control laws in the kernel: windows, shares, unloading, and runs of the lab."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from emulation.vm_run import ROOT, VmRun
from laws import SCALABLE, Law, laws
from machine import needs_emulation

from lab.engines.mininet import in_vm
from lab.engines.mininet.ebpf import LAWS, kernel_name, our_name, register, user_law
from lab.engines.mininet.traffic import probes

pytestmark = needs_emulation
__all__ = ["laws"]
FIRST, SECOND = "10.1.1.1", "10.2.1.1"
FRAME_BYTES, PAYLOAD_BYTES = 1514, 1420
RECOVERY_S = 1.0  # after a loss, until recovery is over
SHARES = Path(__file__).with_name("shares.yaml")
Sample = dict[str, Any]


@pytest.fixture(scope="module")
def experiments(emulation: None) -> list[dict[str, Any]]:
    """Output of cc_experiments.py in the VM. The laws are compiled outside."""
    register(user_law(SCALABLE))
    in_vm.require(LAWS)
    in_vm.require(by_window=True)
    path = f"PYTHONPATH={ROOT}:{ROOT / 'tests'}"
    program = ["env", path, sys.executable, "-m", "emulation.cc_experiments"]
    argv = [sys.executable, "-m", "lab", "vm", "--", *program]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


@pytest.fixture
def experiment(experiments: list[dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    def find(name: str, **fields: str) -> dict[str, Any]:
        wanted = {"experiment": name} | fields
        (found,) = (each for each in experiments if wanted.items() <= each.items())
        return found

    return find


def grown(
    law: Law, samples: list[Sample], addresses: tuple[str, ...], lost_before: bool = False
) -> list[dict[str, list[float]]]:
    """Periods without losses, after the first loss.

    By address: the window at the start and at the end, and the growth that the law predicts. The
    bytes between losses, which OLIA uses, come from the samples, too.
    """
    at_loss = dict.fromkeys(addresses, (0, 0))
    lost_s = dict.fromkeys(addresses, -RECOVERY_S if lost_before else None)
    periods: list[dict[str, list[float]]] = []
    in_period = False
    for earlier, later in pairwise(
        sample for sample in samples if set(addresses) <= set(sample["sockets"])
    ):
        before, now = (
            [sample["sockets"][each] for each in addresses] for sample in (earlier, later)
        )
        for each, old, new in zip(addresses, before, now, strict=True):
            if new["retransmitted"] != old["retransmitted"]:
                if lost_s[each] is None or later["t"] - lost_s[each] > RECOVERY_S:
                    at_loss[each] = (old["bytes_acked"], at_loss[each][0])
                lost_s[each] = later["t"]
        if not all(
            when is not None and later["t"] - when >= RECOVERY_S for when in lost_s.values()
        ):
            in_period = False
            continue
        if not in_period:
            periods.append(
                {
                    each: [old["cwnd"], old["cwnd"], 0.0]
                    for each, old in zip(addresses, before, strict=True)
                }
            )
            in_period = True
        paths = [_path(new, *at_loss[each]) for each, new in zip(addresses, now, strict=True)]
        for own, (each, old, new) in enumerate(zip(addresses, before, now, strict=True)):
            acked = (new["bytes_acked"] - old["bytes_acked"]) / PAYLOAD_BYTES
            periods[-1][each][1] = new["cwnd"]
            periods[-1][each][2] += float(law.increase(paths, own)) * acked
    return periods


def _path(
    sending: dict[str, Any], latest_loss: int, previous_loss: int
) -> tuple[float, float, float]:
    count = max(sending["bytes_acked"] - latest_loss, latest_loss - previous_loss)
    return sending["cwnd"], sending["rtt_ms"] / 1000, count


def follows(periods: list[dict[str, list[float]]], address: str) -> None:
    """The window changed as predicted, within 1.5 packets plus a tenth."""
    print(address, [[round(number, 1) for number in each[address]] for each in periods])
    assert sum(abs(each[address][2]) for each in periods) > 3
    for start, end, expected in (each[address] for each in periods):
        assert end - start == pytest.approx(expected, abs=1.5 + 0.1 * abs(expected))


@pytest.mark.long
@pytest.mark.parametrize("law", ["lia", "olia", "balia"])
def test_windows_follow_the_law(laws, experiment, law):
    samples = experiment("two paths", law=law)["samples"]
    assert {each["cc"] for sample in samples[20:] for each in sample["sockets"].values()} == {
        kernel_name(law)
    }
    periods = grown(laws[law], samples, (FIRST, SECOND))
    follows(periods, FIRST)
    follows(periods, SECOND)


def queued_packets(sample: Sample, base_ms: dict[str, float]) -> float:
    """Packets of all subflows that are in queues, computed from their RTTs."""
    return sum(
        each["cwnd"] * (each["rtt_ms"] - base_ms[address]) / each["rtt_ms"]
        for address, each in sample["sockets"].items()
    )


@pytest.mark.long
def test_wvegas_keeps_few_packets_in_queues(experiment):
    """Its aim is ten packets in all; each queue has room for sixty, which BALIA fills. Both
    subflows keep at least two packets, and nothing is lost."""
    samples = experiment("two paths", law="wvegas")["samples"]
    base_ms = {
        address: min(
            sample["sockets"][address]["rtt_ms"]
            for sample in samples
            if sample["sockets"].get(address, {}).get("rtt_ms")
        )
        for address in (FIRST, SECOND)
    }
    later = [sample for sample in samples if sample["t"] > 3 and len(sample["sockets"]) == 2]
    queued = sorted(queued_packets(sample, base_ms) for sample in later)
    print(f"{len(later)} samples, packets in queues: {queued[0]:.1f} to {queued[-1]:.1f}")
    assert {each["cc"] for sample in later for each in sample["sockets"].values()} == {
        kernel_name("wvegas")
    }
    assert 2 < queued[len(queued) // 2] < 20
    assert all(each["cwnd"] >= 2 for sample in later for each in sample["sockets"].values())
    first, last = later[0]["sockets"], later[-1]["sockets"]
    assert sum(last[each]["retransmitted"] - first[each]["retransmitted"] for each in last) <= 2
    windows = {sample["sockets"][FIRST]["cwnd"] for sample in later}
    assert len(windows) > 2  # it probes


@pytest.mark.long
@pytest.mark.parametrize("law", ["balia", "cubic"])
def test_windows_are_limited_to_expected_rates(experiment, law):
    """Both subflows are expected to take 0.9 of their path, which are windows of 8 packets without
    a queue. Unlimited they would fill the queues of 60 packets."""
    limited = experiment("limited", law=law)
    samples = limited["samples"]
    first, last = samples[0], samples[-1]
    seconds = last["t"] - first["t"]
    for address, expected_bps in zip((FIRST, SECOND), limited["expected"], strict=True):
        before, after = first["sockets"][address], last["sockets"][address]
        payload_bps = (after["bytes_acked"] - before["bytes_acked"]) * 8 / seconds
        frames_bps = payload_bps * FRAME_BYTES / PAYLOAD_BYTES
        print(f"{law}, {address}: {frames_bps / 1e6:.2f} of {expected_bps / 1e6:.2f} Mb/s expected")
        assert after["cc"] == kernel_name(law, by_window=True)
        assert 0.4 * expected_bps < frames_bps < 1.2 * expected_bps
        assert max(sample["sockets"][address]["cwnd"] for sample in samples) < 25
        assert after["retransmitted"] == before["retransmitted"]


@pytest.mark.long
@pytest.mark.parametrize("law", ["lia", "olia"])
def test_the_last_subflow_grows_as_reno(laws, experiment, law):
    """LIA's second subflow was closed, OLIA's is backup: neither counts from then on."""
    left = experiment("two paths", law=law)["then"]
    sibling = left[-1]["sockets"].get(SECOND)
    assert sibling["backup"] if law == "olia" else sibling is None
    follows(grown(laws[law], left, (FIRST,), lost_before=True), FIRST)


@pytest.mark.long
def test_plain_tcp_grows_as_reno(laws, experiment):
    follows(grown(laws["balia"], experiment("plain TCP", law="balia")["samples"], (FIRST,)), FIRST)


@pytest.mark.long
def test_a_users_law_controls_plain_tcp_too(laws, experiment):
    samples = experiment("plain TCP", law="scalable")["samples"]
    assert {each["cc"] for sample in samples[20:] for each in sample["sockets"].values()} == {
        "bpf_scalable"
    }
    assert our_name("bpf_scalable") == "scalable"
    follows(grown(laws["scalable"], samples, (FIRST,)), FIRST)


@pytest.mark.long
def test_four_coupled_subflows_take_one_share_and_not_four(experiment):
    uncoupled, coupled = (experiment("shared", law=law)["share"] for law in ("reno", "olia"))
    print(f"of a link shared with one TCP connection: reno {uncoupled:.2f}, olia {coupled:.2f}")
    assert uncoupled > 0.7
    assert 0.3 < coupled < 0.65


@pytest.mark.long
def test_a_killed_process_leaves_nothing_loaded(experiment):
    killed = experiment("killed")
    alive, dead, over = killed["states"]
    assert {kernel_name(law) for law in LAWS} <= set(alive["offered"])
    assert (alive["link"], dead["link"]) == (len(LAWS), 0)
    assert not [name for name in dead["offered"] if name.startswith("bpf_")]
    assert killed["received_after"] > 0  # the connection went on
    assert (over["prog"], over["map"], over["link"]) == (0, 0, 0)


@pytest.mark.long
def test_the_documentation_runs(experiment):
    done = experiment("documented")
    assert done["status"] == 0, done["errors"]
    assert "Mbits/sec" in done["output"]
    counters = probes.mptcp_counters(done["netstat"])
    assert counters["MPJoinSynAckRx"] >= 1  # iperf3 has two connections


def test_the_lab_runs_all_laws_and_reads_them_back(tmp_path):
    """Four multipath users, each under its own law, and one plain TCP connection share a link."""
    run = VmRun(tmp_path / "shares", "--duration", "25", scenario=str(SHARES))
    result = run.finish()
    assert result["cc"] == "balia+lia+olia+reno+wvegas"
    read_back = {
        each["user"]: {subflow["cc"] for subflow in each["subflows"]}
        for each in result["connections"]
    }
    assert read_back == {law: {kernel_name(law)} for law in LAWS} | {"plain": {"reno"}}
    assert result["mptcp"]["verified"] is True
    # wVegas leaves the queue to others, so its rate does not show the coupling.
    rates = {
        user: row["throughput_mbps"] for user, row in result["users"].items() if user != "wvegas"
    }
    shares = {user: rate / sum(rates.values()) for user, rate in rates.items()}
    print({user: round(share, 3) for user, share in shares.items()})
    assert shares["plain"] > 0.17  # against uncoupled connections it would be one in seven
