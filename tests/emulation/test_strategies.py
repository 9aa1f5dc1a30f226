"""Every strategy decides in POX and is carried out by switches, hosts and the kernel: its smallest scenario, in one VM.

Rates are low, since software emulates the VM: what is compared are ratios, ways and who confirmed what.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from emulation.seen import Way, subflows, tables
from emulation.vm_run import POX, mean, signalled
from emulation.vm_shell import Queued, VmShell
from machine import emulation, needs_emulation

from lab.run.metrics import jain

__all__ = ["emulation"]
pytestmark = needs_emulation
PAYLOAD = 1420 / 1514
TWO_PATHS = "topology.paths=[{rate_mbps: 12, delay_ms: 5, queue_packets: 20}, {rate_mbps: 12, delay_ms: 37.5, queue_packets: 80}]"
LOSS = "events=[{at_s: 6, target: link.path1.loss, value: 0.05}, {at_s: 20, target: link.path1.loss, value: 0}]"
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
    LOSS,
)
QUARTER = ("--seed", "1", "--set", "rate_scale=0.25")
EIGHTH = ("--seed", "1", "--set", "rate_scale=0.125")  # where packets pass five switches
AT_ONCE = "traffic=[{user: ue1, kind: bulk}, {user: ue2, kind: bulk}, {user: ue3, kind: bulk}]"


@pytest.fixture(scope="module")
def runs(vm: VmShell) -> Callable[..., Queued]:
    """Runs by what was asked for, each made once."""
    made: dict[tuple[str, ...], Queued] = {}

    def run(*asked: str) -> Queued:
        if asked not in made:
            made[asked] = vm.run(*asked)
        return made[asked]

    return run


def evidence_of(run: Queued) -> str:
    """Tables of all switches, and what the hosts' sockets say."""
    switches = json.loads((run.folder / "pox" / "topology.json").read_text())["switches"]
    dump = "; ".join(
        f"echo == {each}; ovs-ofctl dump-flows {each} table=1 | grep tcp,nw" for each in switches
    )
    hosts = "".join(run.execute(host, "ss -tniH") for host in ("ue1", "srv1"))
    return run.execute("machine", dump) + hosts


def actions(run: Queued, action: str) -> list[dict[str, Any]]:
    return [
        line for line in run.decisions() if line["kind"] == "decision" and line["action"] == action
    ]


def held(run: Queued, start: float, end: float = 1e9) -> dict[str, float]:
    """What every subflow brought in its best five seconds, as a part of what it was expected to bring, both as frames.

    A VM that others leave no time brings less for a while, and never more: the best moments show what a subflow is held to.
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


# --- loss_aware


def test_a_subflow_that_loses_goes_to_backup_and_comes_back(runs):
    run = runs("dynamic_loss", *LOSSY, "--strategy", "loss_aware")
    run.finish()
    (back,), (again, *_) = actions(run, "backup")[:1], actions(run, "normal")
    assert "loss" in back["reason"]
    lines = [line for line in run.decisions() if line["kind"] == "subflow" and line["ap"] == "p1"]
    assert [line["backup"] for line in lines] == [
        False,
        True,
        False,
    ]  # what the server's host has heard by MP_PRIO
    assert back["at"] < lines[1]["at"] < again["at"] < lines[2]["at"]
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


# --- expected_throughput


@pytest.mark.long
@pytest.mark.parametrize(
    ("scenario", "cores", "among"), [("collision_within", 2, 2), ("collision_between", 4, 4)]
)
def test_no_two_subflows_share_a_core_link(runs, scenario, cores, among):
    run = runs(scenario, *EIGHTH, "--strategy", "expected_throughput", "--duration", "20")
    run.until(8)
    through = tables(run, [f"c{n}" for n in range(1, cores + 1)])
    assert sorted(len(flows) for flows in through.values()) == [1] * among
    for way, line in subflows(run).items():
        (core,) = [switch for switch, flows in through.items() if way in flows]
        assert core in line["path"]
    run.until(14)
    stalled = [name for name, row in run.samples()[-1]["sf"].items() if row["mbps"] < 0.1]
    evidence = evidence_of(run) if stalled else ""
    run.finish()
    assert not stalled, f"{stalled} carry nothing: {evidence}"
    shares = held(run, 10)
    print(f"{scenario}: of what was expected {shares}")
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
    shares = held(run, 28)
    print(f"pooling: of what was expected {shares}")
    assert all(share == pytest.approx(1, abs=0.05) for share in shares.values())


# --- what stands still with POX, and what does not with the runner


def expected(run: Queued) -> dict[str, float]:
    """What every subflow is held to, by its kernel's word."""
    return {name: row["expected_mbps"] for name, row in run.samples()[-1]["sf"].items()}


@pytest.mark.long
def test_routes_and_rates_freeze_with_pox_and_not_with_the_runner(vm):
    run = vm.run(
        "collision_within", *EIGHTH, "--strategy", "expected_throughput", "--duration", "120"
    )
    run.until(10)
    run.execute("machine", signalled(POX, "STOP"))
    before, ways, since = expected(run), tables(run, ["c1", "c2"]), run.now()
    assert all(before.values())
    run.flip("link.access2.rate_mbps", 5)
    run.until(since + 10)
    assert (expected(run), tables(run, ["c1", "c2"])) == (before, ways)
    assert mean(
        run.samples(), lambda frame: frame["user"]["ue1"]["mbps"], since + 1
    ) > 0.5 * PAYLOAD * max(before.values())
    run.execute("machine", signalled(POX, "CONT"))
    run.wait_for("a smaller rate", lambda: min(expected(run).values()) < 0.6 * max(before.values()))
    samples, lines = run.told_without_the_runner()
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
    samples, lines = run.told_without_the_runner()
    assert samples <= 1 < lines
    run.kill()


# --- subflow_selection


@pytest.fixture(scope="module")
def three(vm: VmShell) -> dict[str, Any]:
    """Path 3 is so much shorter that it is best alone, until it is as long as the others, which POX hears only when it wakes."""
    uneven = ("--set", "topology.paths.3.delay_ms=20", "--set", "strategy.params.rl_max_kb=12")
    run = vm.run("three_paths", *QUARTER, "--duration", "120", *uneven)
    run.until(12)
    seen: dict[str, Any] = {
        "run": run,
        "alone": subflows(run),
        "alone_mbps": mean(run.samples(), three_mbps, 7),
    }
    run.execute("machine", signalled(POX, "STOP"))
    seen["stopped"] = run.now() + 1
    run.flip("link.path3.delay_ms", 60)
    run.until(seen["stopped"] + 8)
    seen["still_stopped"], seen["frozen"] = run.now(), subflows(run)
    run.execute("machine", signalled(POX, "CONT"))
    run.wait_for(
        "all subflows active", lambda: not any(line["backup"] for line in subflows(run).values())
    )
    seen["together"] = run.now()
    run.until(run.now() + 8)
    run.stop()
    seen["result"] = run.finish()
    return seen


def three_mbps(frame: dict[str, Any]) -> float:
    return float(frame["user"]["ue1"]["mbps"])


def others_mbps(frame: dict[str, Any]) -> float:
    """What came over paths 1 and 2."""
    return float(sum(row["mbps"] for row in frame["sf"].values() if row["ap"] != "access3"))


def aside(lines: dict[Way, dict[str, Any]]) -> dict[str, bool]:
    return {line["ap"]: line["backup"] for line in lines.values()}


@pytest.mark.long
def test_only_what_was_chosen_is_active_and_its_hosts_say_so(three):
    assert aside(three["alone"]) == {"p1": True, "p2": True, "p3": False}
    assert "endpoint change 10.17.0.1 backup" in (three["run"].folder / "commands.sh").read_text()
    assert mean(three["run"].samples(), others_mbps, 7, 12) < 0.2


@pytest.mark.long
def test_the_forecast_stands_beside_the_measurement(three):
    forecasts = [
        line
        for line in three["run"].events("decision")
        if line["action"] == "forecast" and 7 < line["t"] < 12
    ]
    (number,) = [line["subflow"] for line in three["alone"].values() if line["ap"] == "p3"]
    assert all(line["active"] == [f"{line['connection']}/{number}"] for line in forecasts)
    assert [line["forecast_mbps"] for line in forecasts] == [pytest.approx(4.5, rel=0.1)] * len(
        forecasts
    )
    measured_mbps = sum(line["measured_mbps"] for line in forecasts) / len(forecasts)
    print(
        f"three_paths: forecast {forecasts[-1]['forecast_mbps']}, measured {measured_mbps:.2f} Mb/s"
    )
    assert measured_mbps == pytest.approx(three["alone_mbps"] / PAYLOAD, rel=0.15)


@pytest.mark.long
def test_a_stopped_pox_freezes_the_active_set_and_not_the_traffic(three):
    run = three["run"]
    assert three["frozen"] == three["alone"]
    assert (
        mean(run.samples(), three_mbps, three["stopped"], three["still_stopped"])
        > 0.5 * three["alone_mbps"]
    )
    assert not [
        line
        for line in run.events("decision")
        if three["stopped"] + 1 < line["t"] < three["still_stopped"]
    ]
    assert mean(run.samples(), others_mbps, three["together"] + 3) > 0.6


@pytest.mark.long
def test_a_few_of_fifteen_paths_carry_more_than_all_and_lose_less(runs):
    """Disorder is no less: the kernel sends most by the three short paths anyway, and stalls instead (docs/strategies.md)."""
    results = {}
    for name in ("none", "subflow_selection"):
        run = runs("fifteen_paths", "--seed", "1", "--duration", "30", "--strategy", name)
        (connection,) = run.finish()["connections"]
        assert len(connection["subflows"]) == 15
        results[name] = {
            "mbps": mean(run.samples(), three_mbps, 10),
            "again": sent_again(connection),
        }
        print(
            f"fifteen_paths: {name} {results[name]}, out of order {connection['out_of_order_fraction']}"
        )
    none, selected = results["none"], results["subflow_selection"]
    assert selected["mbps"] > 1.05 * none["mbps"]
    assert selected["again"] < none["again"]
    active = actions(run, "forecast")[-1]["active"]
    assert sorted(number for number, backup in last_backup(run).items() if not backup) == sorted(
        int(each.split("/")[1]) for each in active
    )
    assert "pm_nl_ctl set" in (run.folder / "commands.sh").read_text()


def sent_again(connection: dict[str, Any]) -> float:
    """The part of its segments that a connection sent more than once."""
    again, sent = (
        sum(each[key] for each in connection["subflows"])
        for key in ("retransmitted_segments", "segments")
    )
    return again / sent


def last_backup(run: Queued) -> dict[int, bool]:
    return {line["subflow"]: line["backup"] for line in subflows(run).values()}
