"""A sample of the golden set: simulated runs still give the recorded numbers, field by field."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden"
SAMPLE = (
    "collision_between-expected_throughput",
    "demand_swap-seed1",
    "extra-uploads",
    "moving_users-lia",
    "static_loss-seed2",
    "testbed_wifi_lte-meter_throttling",
    "three_paths-linux",
    "uneven_paths-olia",
)


@pytest.mark.whole
def test_only_the_fields_that_were_changed_on_purpose_differ():
    argv = [sys.executable, GOLDEN / "record.py", "compare", GOLDEN / "golden.json", *SAMPLE]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
