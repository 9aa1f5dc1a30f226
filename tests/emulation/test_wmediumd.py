"""wmediumd instead of the lab's WiFi cell: stations associate, traffic flows, nothing is left."""

from __future__ import annotations

import re
import time

import pytest
from emulation.vm_run import RUNNER, WITHIN_S, signalled
from emulation.vm_shell import Queued, VmShell
from machine import needs_emulation

from lab.radio.wmediumd import NOISE_DBM, SNR_DB

pytestmark = needs_emulation
RATE_SCALE = 0.25
SETTINGS = ("topology.air=wmediumd", f"rate_scale={RATE_SCALE}", "multipath.receive_buffer_kb=200")
COMMON = tuple(word for each in SETTINGS for word in ("--set", each))
TRIES = 3
LEFT = "pgrep -x wmediumd || echo none"
SIGNAL_DB = {"1": SNR_DB[12], "2": SNR_DB[12], "3": SNR_DB[6]}  # by the number of the user


def start(vm: VmShell, strategy: str, duration_s: int) -> Queued:
    return vm.run(
        "testbed_wifi_lte", "--strategy", strategy, "--duration", str(duration_s), *COMMON
    )


@pytest.mark.long
@pytest.mark.parametrize("strategy", ["none", "loss_aware"])
def test_stations_share_the_medium_of_wmediumd(vm: VmShell, strategy: str) -> None:
    for _ in range(TRIES):  # an overloaded run proves nothing
        run = start(vm, strategy, 10)
        run.until(3)
        dump = run.execute("machine", "iw dev wifi1-wlan1 station dump")
        if not run.overloads():
            break
    signals = re.findall(r"Station \S+:0(\d) .*?signal:\s+(-\d+)", dump, re.DOTALL)
    expected = {user: NOISE_DBM + snr for user, snr in SIGNAL_DB.items()}
    assert {user: int(dbm) for user, dbm in signals} == expected
    result = run.finish()
    assert result["mptcp"]["verified"]
    assert not result["overloaded"]
    wifi, users = result["aps"]["wifi1"], result["users"]
    assert wifi["mac_occupancy_mean"] is None
    # Two stations at 12 Mb/s and one at 6: equal numbers of frames would carry 8.5 Mb/s.
    assert 5 < wifi["throughput_mbps"] * RATE_SCALE < 10
    assert all(each["throughput_mbps"] > 5 for each in users.values())
    assert vm.command(LEFT).strip() == "none"


@pytest.mark.long
def test_the_clean_up_ends_wmediumd_after_a_kill(vm: VmShell) -> None:
    run = start(vm, "none", 60)
    run.until(0.5)
    run.execute("machine", f"(sleep 1; {signalled(RUNNER, 'KILL')}) >/dev/null 2>&1 &")
    deadline = time.monotonic() + WITHIN_S
    while not run.over() and time.monotonic() < deadline:
        time.sleep(0.2)
    assert vm.command(LEFT).strip().isdigit()
    vm.command("python3 -m lab clean")
    assert vm.command(LEFT).strip() == "none"
