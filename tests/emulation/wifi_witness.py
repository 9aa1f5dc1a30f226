"""Compare the simulator's WiFi cell with wmediumd, a medium written by other authors:

    PYTHONPATH=.:tests python -m emulation.wifi_witness [TURNS]

1) in the VM, `real_air.py`: two stations under wmediumd download alone and together
2) in the simulator: find the rate at which each station alone carries what it carried under
   wmediumd; then run both together
3) write the section of docs/notebook/crosscheck.md
The throughput of a station alone is an input of the simulator and proves nothing. The throughput
of both together is an input of neither side, and is compared.
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
from lab.engines.mininet import in_vm
from lab.engines.mininet.machine import upstreams
from lab.engines.mininet.machine import vm_kernel as kernel
from lab.run.manifest import ROOT, commit
from lab.scenario import loading as scenario
from papers import crosscheck
from papers.crosscheck import RUNS
from papers.studies import STEADY, Case, Measured, Metric, Study

SCENARIO = Path(__file__).with_name("slow_station.yaml")
STATIONS = ("strong", "weak")
ALONE = {"strong": ("strong",), "weak": ("weak",), "both": STATIONS}
BUSY = 0.05  # with a smaller idle share, the machine and not the air decided the throughput
GIVEN = "none: given to sim"
REMARKS = """\
Two stations under wmediumd (log-distance loss, interference mode) at one hostapd access point,
802.11g rates, TCP with a receive buffer of 48 kB. The rate control of mac80211 and the error model
of wmediumd decide the rate and the loss of each frame; the clock of wmediumd decides when the air
is free. The simulator is given what each station carries alone. wmediumd sends one frame at a time,
as the lab's cell does. It does not charge backoff and acknowledgement to a frame that meets a free
air, and its queue is unlimited (the cell's holds 1,000 packets here). So this row shows how the air
time of a slow station is shared. It says nothing about 802.11's overhead or losses in a full queue.

Frames reach wmediumd by a socket that holds about ten of them (libnl's 32 kB). With this socket
buffer, bursts are lost before they reach the air: in one such turn, 155 segments of the strong
station alone were retransmitted, hwsim counted 160 frames that it could not deliver
(`d_tx_failed`), and together the weak station got 0.45 Mb/s and the strong one 3.25. The witness
enlarges the buffer, and no frame was lost there in three turns. The processors were 50 to 77 %
idle. The remaining difference: under wmediumd the strong station got 6 to 7 % more frames than the
weak one, in the cell 0 to 3 %. In one turn `ss` showed RTTs of 294 and 334 ms with equally full
windows (80 and 81): the acknowledgements of the weak station are slow too, and about one in eight
was retransmitted."""

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


def as_result(scene: dict[str, Any]) -> Measured:
    """A scene under wmediumd as a result, with the keys of result.json that the page needs."""
    users = {name: {"throughput_mbps": mbps} for name, mbps in scene["mbps"].items()}
    overloaded = scene["idle_share"] < BUSY or scene["lost_before_the_air"] > 0
    total = sum(scene["mbps"].values())
    return Measured(
        {
            "status": "complete",
            "overloaded": overloaded,
            "seed": scene["turn"],
            "users": users,
            "throughput_mbps": total,
        }
    )


def by_case(scenes: Sequence[dict[str, Any]]) -> dict[str, list[Measured]]:
    """Results of each case, in the order of the turns."""
    return {name: [as_result(each) for each in scenes if each.get("who") == name] for name in ALONE}


def rate_mbps(tried_mbps: float, carried_mbps: float, wanted_mbps: float) -> float:
    """Rate at which a station alone carries `wanted_mbps`; throughput is proportional to it."""
    return tried_mbps * wanted_mbps / carried_mbps


def simulated(turn: int, who: str, rates_mbps: dict[str, float], runs: Path) -> Measured:
    """Run the scenario with downloads of these stations."""
    users = ", ".join(f"{{id: {name}, wifi_mbps: {rates_mbps[name]:.4f}}}" for name in STATIONS)
    traffic = ", ".join(f"{{user: {name}}}" for name in ALONE[who])
    settings = (f"topology.users=[{users}]", f"traffic=[{traffic}]")
    place = runs / "sim" / STUDY.scenario / who / str(round(rates_mbps[STATIONS[0]] * 1000))
    request = Request(str(SCENARIO), "sim", ("none",), seed=turn, settings=settings, out=place)
    (outcome,) = run_all(placed(request), Terminal())
    return Measured(outcome.result)


def beside(turn: int, measured: dict[str, float], runs: Path) -> dict[str, Measured]:
    """Simulate a turn, given what each station carried alone under wmediumd."""
    users = scenario.load(str(SCENARIO)).topology.params.users
    tried = {user.id: user.wifi_mbps for user in users}
    rates = {}
    for name in STATIONS:
        alone = simulated(turn, name, tried, runs).result
        carried = alone["users"][name]["throughput_mbps"]
        rates[name] = rate_mbps(tried[name], carried, measured[name])
    return {who: simulated(turn, who, rates, runs) for who in ALONE}


def measure(turns: int, folder: Path) -> list[dict[str, Any]]:
    """Scenes of these turns from the VM; those of an earlier call are kept."""
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
        code = in_vm.run_in_vm(
            in_vm.GuestCommand([*argv, str(turns), str(folder / "draft.jsonl")], folder, show=True),
            wait=True,
        )
        if code != 0:
            raise SystemExit(f"two stations under wmediumd: status {code}. See {folder / 'vm'}")
        (folder / "draft.jsonl").rename(scenes)
    return [json.loads(line) for line in scenes.read_text().splitlines()]


def where() -> str:
    """The versions that made the numbers."""
    medium = upstreams.commit(upstreams.folder("wmediumd")) or "of an unknown commit"
    linux = kernel.require().name.removeprefix("vmlinuz-")
    return f"commit {commit()}; wmediumd {medium[:12]} on Linux {linux} in a VM"


def main(turns: int = 3, runs: Path = RUNS, page: Path = crosscheck.PAGE) -> None:
    scenes = measure(turns, runs / "wmediumd" / STUDY.scenario)
    real = by_case(scenes)
    found = {("wmediumd", who): results for who, results in real.items()} | {
        ("sim", who): [] for who in ALONE
    }
    for turn, (strong, weak) in enumerate(zip(real["strong"], real["weak"], strict=True), 1):
        alone = {
            name: each.result["users"][name]["throughput_mbps"]
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
