"""Start, watch, change and stop an emulation in the VM from the page, without root."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from emulation.vm_run import WITHIN_S
from machine import needs_emulation

from dashboard.app import create_app

pytestmark = needs_emulation
OVER = {"finished", "failed", "interrupted"}
REQUEST = {
    "scenario": "testbed_wifi_lte",
    "engine": "mininet",
    "vm": True,
    "strategy": "meter_throttling",
    "duration_s": 400,
    "set": {"topology.multipath": ["ue3"]},
}


@pytest.fixture
def client(emulation: None, tmp_path: Path) -> Any:
    app = create_app({"RUNS": tmp_path / "runs", "TESTING": True})
    yield app.test_client()
    app.extensions["launcher"].stop_all()


def messages(client: Any, run: str, kind: str) -> list[dict[str, Any]]:
    return [
        each["data"]
        for each in client.get(f"/api/runs/{run}/frames?since=0").json["messages"]
        if each["type"] == kind
    ]


def until(client: Any, run: str, what: str, holds: Any) -> Any:
    """First true result of `holds`; fail when the run is over or it takes too long."""
    ends = time.monotonic() + WITHIN_S
    while not (found := holds()):
        status = client.get(f"/api/runs/{run}").json["status"]
        titles = [event["title"] for event in messages(client, run, "event")]
        assert status not in OVER, f"no {what}: the run is {status}; its events: {titles}"
        assert time.monotonic() < ends, f"no {what} within {WITHIN_S} s; its events: {titles}"
        time.sleep(0.5)
    return found


def test_an_emulation_is_controlled_from_the_page(client):
    started = client.post("/api/runs", json=REQUEST)
    assert started.status_code == 201, started.json
    run = started.json["id"]
    until(client, run, "sample", lambda: messages(client, run, "sample"))
    assert client.post(f"/api/runs/{run}/pause", json={}).status_code == 409
    assert (
        client.post(
            f"/api/runs/{run}/flips", json={"target": "strategy.cth", "value": 0.3}
        ).status_code
        == 202
    )
    flips = until(
        client,
        run,
        "flip",
        lambda: [
            each
            for each in messages(client, run, "event")
            if each["facts"] == {"target": "strategy.cth", "value": 0.3}
        ],
    )
    assert flips[0]["ok"]
    assert flips[0]["mark"] == "line"
    until(
        client,
        run,
        "decision",
        lambda: [each for each in messages(client, run, "event") if each["mark"] == "tick"],
    )
    client.post(f"/api/runs/{run}/stop", json={})
    ends = time.monotonic() + WITHIN_S
    while (found := client.get(f"/api/runs/{run}").json)["status"] not in OVER:
        assert time.monotonic() < ends, f"no end within {WITHIN_S} s"
        time.sleep(0.5)
    assert found["status"] == "interrupted"
    assert found["throughput_mbps"] > 1
