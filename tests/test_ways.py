"""The ways that `ways.py` counts get no longer."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROW = re.compile(r"^(\S.*?)" + r" +(\d+)" * 6 + r" +\d+$", re.MULTILINE)
REACHED = {  # files, files opened, returns; then the same, without those of loading the scenario
    "Scenario file to frozen Scenario": (30, 15, 31, 1, 0, 0),
    "Flip in the browser to Open vSwitch": (61, 34, 56, 38, 20, 15),
    "Segment in the simulator's core": (17, 11, 31, 17, 11, 31),  # with the delivery rate, for BBR
    "Sample to the chart": (51, 26, 51, 23, 10, 14),
}


@pytest.fixture(scope="module")
def counted() -> dict[str, tuple[int, ...]]:
    """Count in a new process: nothing is cached there, and the simulator is not compiled."""
    command = [sys.executable, "-P", str(HERE / "ways.py")]
    done = subprocess.run(command, cwd=HERE.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {title: tuple(map(int, counts)) for title, *counts in ROW.findall(done.stdout)}


@pytest.mark.parametrize("way", REACHED)
def test_a_way_passes_no_more_files_and_returns_no_more_often(counted, way):
    assert all(now <= then for now, then in zip(counted[way], REACHED[way], strict=True)), (
        f"{way}: {counted[way]}. `python tests/ways.py -v` lists the files"
    )


def test_every_way_is_in_the_table(counted):
    assert set(counted) == set(REACHED)
