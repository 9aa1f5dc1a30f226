"""A backup takes over while the other interface is switched off, and becomes a subflow later."""

from __future__ import annotations

import pytest
from emulation.vm_run import VmRun, mean
from machine import needs_emulation

pytestmark = needs_emulation
MBPS = 10
DOWN_S, UP_S, CHANGED_S, END_S = 5, 10, 15, 20
SETTINGS = (
    f"topology.paths=[{{rate_mbps: {MBPS}, delay_ms: 10, queue_packets: 40}}, "
    f"{{rate_mbps: {MBPS}, delay_ms: 20, queue_packets: 40}}]",
    "multipath={cc: cubic, endpoints: [{host: ue1, interface: eth2, flags: [backup]}]}",
    "traffic=[{user: ue1}]",
    "rate_scale=0.5",
    f"events=[{{at_s: {DOWN_S}, target: iface.ue1.eth1.up, value: false}}, "
    f"{{at_s: {UP_S}, target: iface.ue1.eth1.up, value: true}}, "
    f"{{at_s: {CHANGED_S}, target: endpoint.ue1.eth2, value: subflow}}]",
)


@pytest.fixture(scope="module")
def switched(emulation: None, tmp_path_factory: pytest.TempPathFactory) -> VmRun:
    options = [word for setting in SETTINGS for word in ("--set", setting)]
    options += ["--strategy", "none", "--duration", str(END_S)]
    folder = tmp_path_factory.mktemp("switched") / "run"
    run = VmRun(folder, *options, scenario="two_paths")
    run.finish()
    return run


def shares(run: VmRun, start_s: float, end_s: float) -> list[float]:
    """What each path carries, as a share of its rate."""
    return [
        mean(run.samples(), lambda each, path=path: each["link"][path]["mbps"], start_s, end_s)
        / MBPS
        for path in ("path1", "path2")
    ]


def test_a_backup_carries_data_only_while_the_other_interface_is_off(switched: VmRun) -> None:
    first, backup = shares(switched, 2, DOWN_S)
    assert first > 0.8
    assert backup < 0.05
    first, backup = shares(switched, DOWN_S + 2, UP_S)
    assert first < 0.02
    assert backup > 0.8
    first, backup = shares(switched, UP_S + 2, CHANGED_S)
    assert first > 0.8
    assert backup < 0.1


def test_a_backup_becomes_a_subflow(switched: VmRun) -> None:
    assert min(shares(switched, CHANGED_S + 2, END_S)) > 0.7


def test_the_new_subflow_is_the_third_and_each_change_was_applied(switched: VmRun) -> None:
    assert [each["state"] for each in switched.events("flip")] == ["sent", "applied"] * 3
    names = {name for frame in switched.samples() for name in frame["sf"]}
    assert len(names) == 3
