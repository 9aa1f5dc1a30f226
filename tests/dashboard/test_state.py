"""The state of a run: the verdict on Multipath TCP, overload, and runs without a process."""

from __future__ import annotations

import json

from dashboard import state
from lab.run import reading

MULTIPATH = ["ue2"]


def test_the_verdict_on_multipath_tcp():
    good = {"mptcp": {"verified": True, "joins": 2, "fallbacks": 0}}
    found = state.verdict(good, None, MULTIPATH, True)
    assert found.kind == "yes"
    assert found.text == "Multipath TCP verified: 2 extra subflows, no fallback to plain TCP."
    assert state.verdict({"mptcp": {"verified": False}}, None, MULTIPATH, True).kind == "no"
    assert state.verdict({}, None, [], True).kind == "none"
    assert state.verdict(None, {"t": 3, "sf": {"c1/1": {}}}, MULTIPATH, False).kind == "pending"
    assert state.verdict(None, {"t": 30, "sf": {"c1/1": {}}}, MULTIPATH, False).kind == "no"
    assert (
        state.verdict(None, {"t": 30, "sf": {"c1/1": {}, "c1/2": {}}}, MULTIPATH, False).kind
        == "pending"
    )
    assert state.verdict(None, None, MULTIPATH, True).kind == "no"


def test_overload_is_reported_during_and_after_the_run(runs):
    with (runs / "plain" / "events.jsonl").open("a") as lines:
        lines.write(
            json.dumps(
                {"t": 3, "kind": "warning", "text": "overloaded: no idle time", "overloaded": True}
            )
            + "\n"
        )
    assert state.of(runs / "plain").overloaded == "overloaded: no idle time"


def test_a_run_without_a_process_is_cut(runs):
    (runs / "plain" / "result.json").unlink()
    manifest = json.loads((runs / "plain" / "manifest.json").read_text())
    (runs / "plain" / "manifest.json").write_text(json.dumps(manifest | {"pid_started": 1}))
    found = state.of(runs / "plain")
    assert (found.status, found.over, found.t) == ("cut", True, 20.0)
    assert found.verdict.kind == "no"
    assert found.to_json()["verdict"]["is"] == "no"


def test_a_half_written_last_line_is_left_out(runs):
    with (runs / "plain" / "samples.jsonl").open("a") as lines:
        lines.write('{"t": 99')
    assert reading.last_sample(runs / "plain")["t"] == 20.0
