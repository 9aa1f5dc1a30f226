"""Coupled congestion control in the real kernel: it follows its law, it shares, it leaves nothing, the lab runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from emulation.vm_run import ROOT, VmRun
from laws import Law, laws
from machine import needs_emulation

from lab.engines.mininet import probes
from lab.engines.mininet.ebpf import LAWS, kernel_name

pytestmark = needs_emulation
__all__ = ["laws"]
FIRST, SECOND = "10.1.1.1", "10.2.1.1"
PAYLOAD_BYTES = 1420
CALM_S = 1.0  # after a loss, until all of its recovery is over
SHARES = Path(__file__).with_name("shares.yaml")
Look = dict[str, Any]


@pytest.fixture(scope="module")
def scenes(emulation: None) -> list[dict[str, Any]]:
    """What close_look.py saw in the VM."""
    argv = [sys.executable, "-m", "lab", "vm", "--", sys.executable, "-m", "emulation.close_look"]
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"}
    done = subprocess.run(
        argv, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=1200, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


@pytest.fixture
def scene(scenes: list[dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    def find(**what: str) -> dict[str, Any]:
        (found,) = (each for each in scenes if what.items() <= each.items())
        return found

    return find


def grown(
    law: Law, looks: list[Look], addresses: tuple[str, ...], lost_before: bool = False
) -> list[dict[str, list[float]]]:
    """Every stretch without losses after the first: by address, the windows at its ends, and the growth the law says.

    What OLIA counts as bytes between losses is taken from the looks too.
    """
    at_loss = dict.fromkeys(addresses, (0, 0))
    lost_s = dict.fromkeys(addresses, -CALM_S if lost_before else None)
    stretches: list[dict[str, list[float]]] = []
    calm = False
    for earlier, later in pairwise(
        look for look in looks if set(addresses) <= set(look["sockets"])
    ):
        before, now = ([look["sockets"][each] for each in addresses] for look in (earlier, later))
        for each, old, new in zip(addresses, before, now, strict=True):
            if new["retransmitted"] != old["retransmitted"]:
                if lost_s[each] is None or later["t"] - lost_s[each] > CALM_S:
                    at_loss[each] = (old["bytes_acked"], at_loss[each][0])
                lost_s[each] = later["t"]
        if not all(when is not None and later["t"] - when >= CALM_S for when in lost_s.values()):
            calm = False
            continue
        if not calm:
            stretches.append(
                {
                    each: [old["cwnd"], old["cwnd"], 0.0]
                    for each, old in zip(addresses, before, strict=True)
                }
            )
            calm = True
        paths = [_path(new, *at_loss[each]) for each, new in zip(addresses, now, strict=True)]
        for own, (each, old, new) in enumerate(zip(addresses, before, now, strict=True)):
            acked = (new["bytes_acked"] - old["bytes_acked"]) / PAYLOAD_BYTES
            stretches[-1][each][1] = new["cwnd"]
            stretches[-1][each][2] += float(law.increase(paths, own)) * acked
    return stretches


def _path(
    sending: dict[str, Any], latest_loss: int, previous_loss: int
) -> tuple[float, float, float]:
    count = max(sending["bytes_acked"] - latest_loss, latest_loss - previous_loss)
    return sending["cwnd"], sending["rtt_ms"] / 1000, count


def follows(stretches: list[dict[str, list[float]]], address: str) -> None:
    """The window went where the law says, within a packet and a tenth, over at least three packets of growth."""
    print(address, [[round(number, 1) for number in each[address]] for each in stretches])
    assert sum(abs(each[address][2]) for each in stretches) > 3
    for start, end, expected in (each[address] for each in stretches):
        assert end - start == pytest.approx(expected, abs=1.5 + 0.1 * abs(expected))


@pytest.mark.parametrize("law", LAWS)
def test_windows_follow_the_law(laws, scene, law):
    looks = scene(scene="two paths", law=law)["looks"]
    assert {each["cc"] for look in looks[20:] for each in look["sockets"].values()} == {
        kernel_name(law)
    }
    stretches = grown(laws[law], looks, (FIRST, SECOND))
    follows(stretches, FIRST)
    follows(stretches, SECOND)


@pytest.mark.parametrize("law", ["lia", "olia"])
def test_the_subflow_that_is_left_grows_as_reno(laws, scene, law):
    """LIA's sibling was closed, OLIA's is backup: neither is in the sums from then on."""
    left = scene(scene="two paths", law=law)["then"]
    sibling = left[-1]["sockets"].get(SECOND)
    assert sibling["backup"] if law == "olia" else sibling is None
    follows(grown(laws[law], left, (FIRST,), lost_before=True), FIRST)


def test_plain_tcp_grows_as_reno(laws, scene):
    follows(grown(laws["balia"], scene(scene="plain TCP")["looks"], (FIRST,)), FIRST)


def test_four_coupled_subflows_take_one_share_and_not_four(scene):
    uncoupled, coupled = (scene(scene="shared", law=law)["share"] for law in ("reno", "olia"))
    print(f"of a link shared with one TCP connection: reno {uncoupled:.2f}, olia {coupled:.2f}")
    assert uncoupled > 0.7
    assert 0.3 < coupled < 0.65


def test_who_is_killed_leaves_nothing(scene):
    seen = scene(scene="killed")
    alive, dead, over = seen["states"]
    assert {kernel_name(law) for law in LAWS} <= set(alive["offered"])
    assert (alive["link"], dead["link"]) == (3, 0)
    assert not [name for name in dead["offered"] if name.startswith("bpf_")]
    assert seen["received_after"] > 0  # the connection went on
    assert (over["prog"], over["map"], over["link"]) == (0, 0, 0)


def test_the_documentation_runs(scene):
    seen = scene(scene="documented")
    assert seen["status"] == 0, seen["errors"]
    assert "Mbits/sec" in seen["said"]
    assert (
        probes.mptcp_counters(seen["netstat"])["MPJoinSynAckRx"] >= 1
    )  # iperf3 has two connections


def test_the_lab_runs_all_three_and_reads_them_back(tmp_path):
    """Three multipath users, each under its own law, and one plain TCP connection: four shares."""
    run = VmRun(tmp_path / "shares", "--duration", "25", scenario=str(SHARES))
    result = run.finish()
    assert result["cc"] == "balia+lia+olia+reno"
    read_back = {
        each["user"]: {subflow["cc"] for subflow in each["subflows"]}
        for each in result["connections"]
    }
    assert read_back == {law: {kernel_name(law)} for law in LAWS} | {"plain": {"reno"}}
    assert result["mptcp"]["verified"] is True
    shares = {
        user: row["throughput_mbps"] / result["throughput_mbps"]
        for user, row in result["users"].items()
    }
    print({user: round(share, 3) for user, share in shares.items()})
    assert shares["plain"] > 0.17  # uncoupled it would be one in seven
