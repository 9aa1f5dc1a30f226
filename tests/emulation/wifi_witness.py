"""The simulator's WiFi cell beside a medium of other authors: `PYTHONPATH=.:tests python -m emulation.wifi_witness [TURNS]`

1) in the VM, `real_air.py`: two stations under wmediumd download alone and together
2) in the simulator: a station alone says at which rate a cell must have it to carry what wmediumd carried; then both together
3) the section of docs/crosscheck.md
What a station gets alone is handed from one side to the other and proves nothing; what both get together is shared by nobody.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lab
from lab.batch.jobs import run_all
from lab.batch.request import Request, placed
from lab.cli.terminal import Terminal
from lab.engines.mininet.machine import upstreams
from lab.engines.mininet.vm import launch as vm
from lab.engines.mininet.vm import vm_kernel as kernel
from lab.evaluation import crosscheck
from lab.evaluation.crosscheck_runs import RUNS
from lab.evaluation.studies import STEADY, Case, Metric, Study
from lab.run.manifest import ROOT, commit
from lab.scenario import loading as scenario

SCENARIO = Path(__file__).with_name("slow_station.yaml")
STATIONS = ("strong", "weak")
ALONE = {"strong": ("strong",), "weak": ("weak",), "both": STATIONS}
BUSY = 0.05  # with less of the processors idle, the machine decided what was carried; so it did where frames were lost before the air
GIVEN = "none: given to sim"
REMARKS = """Two stations under wmediumd (log-distance loss, interference mode) at one hostapd access point, 802.11g rates, TCP with
a receive buffer of 48 kB. mac80211's rate control and wmediumd's error model decide each frame's rate and fate, wmediumd's clock
when the air is free. What each station carries alone is the simulator's input. wmediumd sends one frame at a time as the lab's
cell does, but charges no backoff and no acknowledgement for a frame that arrives at once, and its queue has no end (the cell's holds
1,000 packets here): so this is a witness of how a slow station's air time is shared, not of 802.11's overhead nor of losses in a full queue.

Frames come to wmediumd by a socket that holds some ten of them (libnl's 32 kB). Left so, a burst is lost there, before any air: in a turn
without more room the strong station alone had 155 of its segments sent again while hwsim counted 160 frames it
could not hand over (`d_tx_failed`), and of both the weak one got 0.45 Mb/s and the strong one 3.25. The witness gives the socket room, and no
frame was lost there in three turns. The processors were 50 to 77 % idle. What is left of a difference: under wmediumd the strong station
got 6 to 7 % more frames than the weak one, in the cell 0 to 3 %. `ss` showed round trips of 294 and 334 ms in a turn with as full windows (80 and
81): the weak one's acknowledgements are slow too, and about one in eight was sent again."""

STUDY = Study(
    "wifi_air",
    20,
    tuple(Case(name, "none") for name in ALONE),
    (
        *(Metric(name, f"users.{name}.throughput_mbps", GIVEN, cases=(name,)) for name in STATIONS),
        *(
            Metric(name, f"users.{name}.throughput_mbps", goal_percent=STEADY, cases=("both",))
            for name in STATIONS
        ),
        Metric("together", "throughput_mbps", goal_percent=STEADY, cases=("both",)),
    ),
    remarks=REMARKS,
    engines=("wmediumd", "sim"),
)  # fmt: skip


def as_result(scene: dict[str, Any]) -> dict[str, Any]:
    """A scene under wmediumd in the words of result.json, as far as the page asks."""
    users = {name: {"throughput_mbps": mbps} for name, mbps in scene["mbps"].items()}
    overloaded = scene["idle_share"] < BUSY or scene["lost_before_the_air"] > 0
    total = sum(scene["mbps"].values())
    return {
        "status": "complete",
        "overloaded": overloaded,
        "seed": scene["turn"],
        "users": users,
        "throughput_mbps": total,
    }


def by_case(scenes: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The results of each case, in the order of the turns."""
    return {name: [as_result(each) for each in scenes if each.get("who") == name] for name in ALONE}


def rate_mbps(asked_mbps: float, carried_mbps: float, wanted_mbps: float) -> float:
    """At which rate a station carries `wanted_mbps` alone, if it carried so much at the rate asked for: one is in proportion to the other."""
    return asked_mbps * wanted_mbps / carried_mbps


def simulated(turn: int, who: str, rates_mbps: dict[str, float], runs: Path) -> dict[str, Any]:
    """A run of the scenario in which these stations download."""
    users = ", ".join(f"{{id: {name}, wifi_mbps: {rates_mbps[name]:.4f}}}" for name in STATIONS)
    traffic = ", ".join(f"{{user: {name}}}" for name in ALONE[who])
    settings = (f"topology.users=[{users}]", f"traffic=[{traffic}]")
    place = runs / "sim" / STUDY.scenario / who / str(round(rates_mbps[STATIONS[0]] * 1000))
    request = Request(str(SCENARIO), "sim", ("none",), seed=turn, settings=settings, out=place)
    (outcome,) = run_all(placed(request), Terminal())
    return outcome.result


def beside(turn: int, measured: dict[str, float], runs: Path) -> dict[str, dict[str, Any]]:
    """The simulator's results of a turn, given what each station carried alone under wmediumd."""
    asked = {user.id: user.wifi_mbps for user in scenario.load(str(SCENARIO)).topology.params.users}
    rates = {}
    for name in STATIONS:
        carried = simulated(turn, name, asked, runs)["users"][name]["throughput_mbps"]
        rates[name] = rate_mbps(asked[name], carried, measured[name])
    return {who: simulated(turn, who, rates, runs) for who in ALONE}


def measure(turns: int, folder: Path) -> list[dict[str, Any]]:
    """The scenes of so many turns in the VM, or those of an earlier call that are there."""
    scenes = folder / "scenes.jsonl"
    if not scenes.exists():
        folder.mkdir(parents=True, exist_ok=True)
        argv = [
            "env",
            f"PYTHONPATH={ROOT}:{ROOT / 'tests'}",
            sys.executable,
            "-m",
            "emulation.real_air",
        ]
        code = vm.run_in_vm(
            vm.GuestCommand([*argv, str(turns), str(folder / "draft.jsonl")], folder, show=True),
            wait=True,
        )
        if code != 0:
            raise SystemExit(f"two stations under wmediumd: status {code}. See {folder / 'vm'}")
        (folder / "draft.jsonl").rename(scenes)
    return [json.loads(line) for line in scenes.read_text().splitlines()]


def where() -> str:
    """What the numbers come from."""
    medium = upstreams.commit(upstreams.folder("wmediumd")) or "of an unknown commit"
    return f"commit {commit()}; wmediumd {medium[:12]} on Linux {kernel.require().name.removeprefix('vmlinuz-')} in a VM"


def main(turns: int = 3, runs: Path = RUNS, page: Path = crosscheck.PAGE) -> None:
    scenes = measure(turns, runs / "wmediumd" / STUDY.scenario)
    real = by_case(scenes)
    found = {("wmediumd", who): results for who, results in real.items()} | {
        ("sim", who): [] for who in ALONE
    }
    for turn, (strong, weak) in enumerate(zip(real["strong"], real["weak"], strict=True), 1):
        alone = {
            name: each["users"][name]["throughput_mbps"]
            for name, each in (("strong", strong), ("weak", weak))
        }
        for who, result in beside(turn, alone, runs).items():
            found["sim", who].append(result)
    command = f"PYTHONPATH=.:tests .venv/bin/python -m emulation.wifi_witness {turns}"
    made_by = f"Made by `{command}` with version {lab.__version__} of the lab, {where()}."
    text = crosscheck.composed(
        page.read_text(), {STUDY.scenario: crosscheck.section(STUDY, found, made_by)}
    )
    page.write_text(text)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
