"""Strategies that pace subflows or make them backup decide in POX; switches, hosts and the kernel
carry it out. Subflow selection is in test_selection.py.

Each has a small scenario, all in one VM. Rates on the wire are low, because the VM's processor may
be emulated: tests compare ratios, paths and confirmations. Figures are in scenario units.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from emulation.strategy_runs import PAYLOAD, actions
from emulation.subflow_entries import subflows, tables
from emulation.vm_run import POX, mean, signalled
from emulation.vm_shell import Queued
from machine import emulation, needs_emulation

from lab.summaries import jain

__all__ = ["emulation"]
pytestmark = [*needs_emulation, pytest.mark.whole, pytest.mark.takes(4)]
TWO_PATHS = (
    "topology.paths=[{rate_mbps: 12, delay_ms: 5, queue_packets: 20}, "
    "{rate_mbps: 12, delay_ms: 37.5, queue_packets: 80}]"
)
LOSS = (
    "events=[{at_s: 6.13, target: link.path1.loss, value: 0.05}, "
    "{at_s: 20.29, target: link.path1.loss, value: 0}]"
)  # between two samples
LOSSY = (
    "--seed",
    "1",
    "--duration",
    "26",
    "--set",
    TWO_PATHS,
    "--set",
    "multipath.receive_buffer_kb=250",
    "--set",
    "rate_scale=1",
    "--set",
    LOSS,
)
EIGHTH = ("--seed", "1", "--set", "rate_scale=0.125")  # for paths over five switches
AT_ONCE = "traffic=[{user: ue1, kind: bulk}, {user: ue2, kind: bulk}, {user: ue3, kind: bulk}]"


def test_changes_of_a_scenario_happen_at_their_time(runs):
    run = runs("dynamic_loss", *LOSSY, "--strategy", "loss_aware")
    run.finish()
    made = [event["t"] for event in run.events("flip") if event["state"] == "applied"]
    assert made == pytest.approx([6.13, 20.29], abs=0.05)
    commands = (run.folder / "commands.sh").read_text()
    sent = [float(at) for at in re.findall(r"^.*\btc\b.*# ([\d.]+) s$", commands, re.MULTILINE)]
    assert any(b - a == pytest.approx(14.16, abs=0.05) for a in sent for b in sent), sent


def evidence_of(run: Queued) -> str:
    """Tables of all switches, and sockets of the hosts."""
    switches = json.loads((run.folder / "pox" / "topology.json").read_text())["switches"]
    dump = "; ".join(
        f"echo == {each}; ovs-ofctl dump-flows {each} table=1 | grep tcp,nw" for each in switches
    )
    hosts = "".join(run.execute(host, "ss -tniH") for host in ("ue1", "srv1"))
    return run.execute("machine", dump) + hosts


def paced_shares(run: Queued, start: float, end: float = 1e9) -> dict[str, float]:
    """For each subflow: its rate in its best five seconds, divided by its pacing rate.

    A VM on a busy machine carries less for a while, and never more, so the best moments show the
    pacing rate.
    """
    frames = [frame for frame in run.samples() if start < frame["t"] <= end]
    names = [name for name, row in frames[-1]["sf"].items() if row["expected_mbps"]]

    def share(name: str, some: list[dict[str, Any]]) -> float:
        return mean(
            some,
            lambda frame: frame["sf"][name]["mbps"] / PAYLOAD / frame["sf"][name]["expected_mbps"],
        )

    return {
        name: max(share(name, frames[n : n + 10]) for n in range(len(frames) - 9)) for name in names
    }


def test_a_subflow_that_loses_goes_to_backup_and_comes_back(runs):
    run = runs("dynamic_loss", *LOSSY, "--strategy", "loss_aware")
    run.finish()
    (backup,), (normal, *_) = actions(run, "backup")[:1], actions(run, "normal")
    assert "loss" in backup["reason"]
    lines = [line for line in run.decisions() if line["kind"] == "subflow" and line["ap"] == "p1"]
    assert [line["backup"] for line in lines] == [
        False,
        True,
        False,
    ]  # as MP_PRIO told the server's host
    assert backup["at"] < lines[1]["at"] < normal["at"] < lines[2]["at"]
    commands = (run.folder / "commands.sh").read_text()
    assert "ip mptcp endpoint change 10.16.0.1 backup" in commands
    assert "ip mptcp endpoint change 10.16.0.1 nobackup" in commands
    aside = [frame["sf"]["ue1-1/1"]["mbps"] for frame in run.samples() if 9 < frame["t"] < 20]
    assert max(aside) < 0.5
    assert not [
        line
        for line in run.decisions()
        if line["kind"] == "subflow" and line["ap"] == "p2" and line["backup"]
    ]


def test_leaving_the_path_that_loses_is_worth_it(runs):
    def while_it_loses(run: Queued) -> float:
        run.finish()
        return mean(run.samples(), lambda frame: frame["user"]["ue1"]["mbps"], 8, 20)

    aware, plain = (
        while_it_loses(runs("dynamic_loss", *LOSSY, "--strategy", name))
        for name in ("loss_aware", "none")
    )
    print(f"while path1 loses: loss_aware {aware:.2f}, none {plain:.2f} Mb/s")
    assert aware > 1.05 * plain


# expected_throughput


@pytest.mark.long
@pytest.mark.parametrize(
    ("scenario", "cores", "among"), [("collision_within", 2, 2), ("collision_between", 4, 4)]
)
def test_no_two_subflows_share_a_core_link(runs, scenario, cores, among):
    run = runs(scenario, *EIGHTH, "--strategy", "expected_throughput", "--duration", "20")
    run.until(8)
    through = tables(run, [f"c{n}" for n in range(1, cores + 1)])
    assert sorted(len(flows) for flows in through.values()) == [1] * among
    for ends, line in subflows(run).items():
        (core,) = [switch for switch, flows in through.items() if ends in flows]
        assert core in line["path"]
    run.until(14)
    stalled = [name for name, row in run.samples()[-1]["sf"].items() if row["mbps"] < 0.8]
    evidence = evidence_of(run) if stalled else ""
    run.finish()
    assert not stalled, f"{stalled} carry nothing: {evidence}"
    shares = paced_shares(run, 10)
    print(f"{scenario}: parts of the pacing rates {shares}")
    assert len(shares) == among
    assert all(share == pytest.approx(1, abs=0.05) for share in shares.values())


@pytest.mark.long
def test_three_connections_on_a_chain_become_equal(runs):
    run = runs(
        *("pooling", *EIGHTH, "--duration", "44", "--set", AT_ONCE),
        *("--set", "events=[{at_s: 20, target: strategy, value: expected_throughput}]"),
    )
    result = run.finish()
    assert result["mptcp"]["verified"] is True

    def users(start: float, end: float) -> list[float]:
        return [
            mean(run.samples(), lambda frame, user=user: frame["user"][user]["mbps"], start, end)
            for user in result["users"]
        ]

    plain, equal = users(5, 20), users(28, 44)
    print(
        f"none {plain} Jain {jain(plain):.4f}, expected_throughput {equal} Jain {jain(equal):.4f}"
    )
    assert jain(equal) > jain(plain)
    assert max(equal) - min(equal) < 0.5 * (max(plain) - min(plain))
    shares = paced_shares(run, 28)
    print(f"pooling: parts of the pacing rates {shares}")
    assert all(share == pytest.approx(1, abs=0.05) for share in shares.values())


def test_what_users_do_not_send_goes_to_others_and_pox_decides_it(runs):
    """In pooling, ue2 shares one link with ue1 and another with ue3. POX computes max-min fair
    rates with scipy."""
    quiet = ", ".join(f"{{user: {user}, kind: rate, rate_mbps: 0.4}}" for user in ("ue2", "ue3"))
    run = runs(
        *("pooling", *EIGHTH, "--duration", "24", "--strategy", "expected_throughput/improved"),
        *("--set", f"traffic=[{{user: ue1, kind: bulk}}, {quiet}]"),
    )
    result = run.finish()
    assert result["mptcp"]["verified"] is True
    assert actions(run, "expect"), "limits are tried"
    paced = {frame["sf"]["ue1-1/2"]["expected_mbps"] for frame in run.samples()} - {None}
    assert all(each > 8.9 for each in paced), "12 Mb/s in all if ue2 kept its share"
    rate = mean(run.samples(), lambda frame: frame["user"]["ue1"]["mbps"], 12, 24)
    print(f"ue1 beside two who hardly send: {rate:.2f} Mb/s")
    assert rate > 14


# A stopped POX and a stopped runner


def expected(run: Queued) -> dict[str, float]:
    """Pacing rate of each subflow, as its kernel reports it."""
    return {name: row["expected_mbps"] for name, row in run.samples()[-1]["sf"].items()}


@pytest.mark.long
def test_routes_and_rates_freeze_with_pox_and_not_with_the_runner(vm):
    run = vm.run(
        "collision_within", *EIGHTH, "--strategy", "expected_throughput", "--duration", "120"
    )
    run.until(10)
    run.execute("machine", signalled(POX, "STOP"))
    before, entries, since = expected(run), tables(run, ["c1", "c2"]), run.now()
    assert all(before.values())
    run.flip("link.access2.rate_mbps", 5)
    run.until(since + 10)
    assert (expected(run), tables(run, ["c1", "c2"])) == (before, entries)
    assert mean(
        run.samples(), lambda frame: frame["user"]["ue1"]["mbps"], since + 1
    ) > 0.5 * PAYLOAD * max(before.values())
    run.execute("machine", signalled(POX, "CONT"))
    run.wait_for("a smaller rate", lambda: min(expected(run).values()) < 0.6 * max(before.values()))
    samples, lines = run.written_without_the_runner()
    assert samples <= 1 < lines
    run.kill()


@pytest.mark.long
def test_backups_freeze_with_pox_and_not_with_the_runner(vm):
    loss = "events=[{at_s: 6, target: link.path1.loss, value: 0.05}]"
    run = vm.run(
        "dynamic_loss", *LOSSY, "--duration", "120", "--set", loss, "--strategy", "loss_aware"
    )
    run.until(4)
    run.execute("machine", signalled(POX, "STOP"))
    since = run.now()
    run.until(since + 12)
    stopped_frames = [frame for frame in run.samples() if frame["t"] > since]
    assert not any(row["backup"] for frame in stopped_frames for row in frame["sf"].values())
    assert mean(stopped_frames, lambda frame: frame["user"]["ue1"]["mbps"]) > 0.5
    run.execute("machine", signalled(POX, "CONT"))
    run.wait_for("a backup", lambda: any(row["backup"] for row in run.samples()[-1]["sf"].values()))
    samples, lines = run.written_without_the_runner()
    assert samples <= 1 < lines
    run.kill()
