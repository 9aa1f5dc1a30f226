"""Was it really Multipath TCP? And the other things a banner must not hide."""

from __future__ import annotations

import json

from dashboard import state

MULTIPATH = ["ue2"]


def test_the_verdict():
    good = {"mptcp": {"verified": True, "joins": 2, "fallbacks": 0}}
    assert state.verdict(good, None, MULTIPATH, True) == {
        "is": "yes",
        "text": "It was really Multipath TCP: 2 subflows joined, 0 connections fell back to plain TCP.",
    }
    assert state.verdict({"mptcp": {"verified": False}}, None, MULTIPATH, True)["is"] == "no"
    assert state.verdict({}, None, [], True)["is"] == "none"
    assert state.verdict(None, {"t": 3, "sf": {"c1/1": {}}}, MULTIPATH, False)["is"] == "pending"
    assert state.verdict(None, {"t": 30, "sf": {"c1/1": {}}}, MULTIPATH, False)["is"] == "no"
    assert (
        state.verdict(None, {"t": 30, "sf": {"c1/1": {}, "c1/2": {}}}, MULTIPATH, False)["is"]
        == "pending"
    )
    assert state.verdict(None, None, MULTIPATH, True)["is"] == "no"


def test_overload_is_told_while_the_run_goes_on_and_after(runs):
    with (runs / "plain" / "events.jsonl").open("a") as lines:
        lines.write(
            json.dumps(
                {"t": 3, "kind": "warning", "text": "overloaded: no idle time", "overloaded": True}
            )
            + "\n"
        )
    assert state.of(runs / "plain")["overloaded"] == "overloaded: no idle time"


def test_a_run_without_a_process_is_cut(runs):
    (runs / "plain" / "result.json").unlink()
    manifest = json.loads((runs / "plain" / "manifest.json").read_text())
    (runs / "plain" / "manifest.json").write_text(json.dumps(manifest | {"pid_started": 1}))
    told = state.of(runs / "plain")
    assert (told["status"], told["over"], told["t"]) == ("cut", True, 20.0)
    assert told["verdict"]["is"] == "no"


def test_a_half_written_last_line_is_left_out(runs):
    with (runs / "plain" / "samples.jsonl").open("a") as lines:
        lines.write('{"t": 99')
    assert state.last_frame(runs / "plain")["t"] == 20.0
