"""A limit on the time of the emulation tests of a session, for machines that are slow.

`LAB_EMULATION_MINUTES` is the limit, from the first such test on. A test that would probably end
later is skipped, and a line at the end says how many were. `takes(minutes)` marks the tests that
need more than `USUAL_MINUTES` where clocks are slowed by 3.
"""

from __future__ import annotations

import os
import time

import pytest

USUAL_MINUTES = 1.5

_begun_s: list[float] = []
_left_out: list[str] = []


def refuse_late_runs(item: pytest.Item) -> None:
    """Skip an emulation test if the time for them does not suffice."""
    limit = os.environ.get("LAB_EMULATION_MINUTES", "")
    if not limit or not item.get_closest_marker("emulation"):
        return
    if not _begun_s:
        _begun_s.append(time.monotonic())
    takes = item.get_closest_marker("takes")
    minutes = float(takes.args[0]) if takes else USUAL_MINUTES
    if time.monotonic() - _begun_s[0] > 60 * (float(limit) - minutes):
        _left_out.append(item.nodeid)
        pytest.skip(f"the {limit} minutes for emulation tests do not suffice")


def say_what_was_left_out() -> None:
    if _left_out:
        print(
            f"\n{len(_left_out)} EMULATION TESTS WERE NOT RUN: their "
            f"{os.environ['LAB_EMULATION_MINUTES']} minutes do not suffice on this machine. "
            "./run_lab.sh test -m emulation runs all"
        )
