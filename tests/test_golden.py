"""A sample of the golden set: simulated runs still give the recorded numbers, field by field."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from lab import metrics

GOLDEN = Path(__file__).parent / "golden"
SAMPLE = (
    "collision_between-expected_throughput",
    "demand_swap-seed1",
    "extra-dcf_walk",
    "extra-uploads",
    "moving_users-lia",
    "static_loss-seed2",
    "testbed_wifi_lte-meter_throttling",
    "three_paths-linux",
    "uneven_paths-olia",
)


def test_objects_with_an_id_as_key_are_known():
    per_id = runpy.run_path(str(GOLDEN / "record.py"))["PER_ID"]
    sections = {of: section for of, section in metrics.SECTIONS.items() if of != "run"}
    assert {*sections, *sections.values()} <= set(per_id)


@pytest.mark.whole
def test_only_the_fields_that_were_changed_on_purpose_differ():
    argv = [sys.executable, GOLDEN / "record.py", "compare", GOLDEN / "golden.json", *SAMPLE]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
