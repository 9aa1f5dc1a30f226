"""A VM whose clocks run slower than real time sees the same network."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from emulation.vm_run import ROOT
from machine import emulation, needs_emulation

from lab.engines.mininet.machine import vm_kernel
from lab.vm_environment import DILATION
from vm import accelerator, snapshot

__all__ = ["emulation"]
pytestmark = [*needs_emulation, pytest.mark.long]
WITHIN_S = 600
DURATION_S = 15


def test_rates_and_delays_are_those_of_the_slower_clock(emulation: None, tmp_path: Path) -> None:
    if not snapshot.wanted() or accelerator.kvm_works(vm_kernel.require()):
        pytest.skip("the clocks of a VM with KVM cannot be slowed")
    folder = tmp_path / "run"
    argv = [sys.executable, "-m", "lab", "run", "two_paths", "--engine", "mininet", "--vm"]
    argv += ["--wait", "--duration", str(DURATION_S), "--out", str(folder)]
    environment = os.environ | {DILATION: "3"}
    process = subprocess.Popen(argv, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
    samples, deadline = folder / "samples.jsonl", time.monotonic() + WITHIN_S
    while not (samples.exists() and samples.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.1)
    began = time.monotonic()
    assert process.wait(WITHIN_S) == 0
    assert time.monotonic() - began > 2.5 * (DURATION_S - 3)
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["host"]["time_dilation"] == 3
    result = json.loads((folder / "result.json").read_text())
    assert result["overloaded"] is False
    assert result["mptcp"]["verified"] is True
    assert len(manifest["links_measured"]) == 2
    for link in manifest["links_measured"].values():
        asked, measured = link["asked"], link["measured"]
        assert measured["rate_mbps"] == pytest.approx(asked["rate_mbps"], rel=0.1)
        assert measured["rtt_ms"] == pytest.approx(asked["rtt_ms"], rel=0.15, abs=3)
    assert len(samples.read_text().splitlines()) >= DURATION_S
