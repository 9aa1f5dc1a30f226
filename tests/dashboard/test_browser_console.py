"""The page of a run that was just started asks for nothing that is not there yet."""

from __future__ import annotations

import pytest
from chromium import chromium
from conftest import until

pytestmark = pytest.mark.browser


def test_a_run_that_was_just_started_logs_no_errors(client, address):
    request = {"scenario": "testbed_wifi_lte", "engine": "testbed", "speed": 10, "duration_s": 600}
    refused = []
    with chromium() as browser:
        page = browser.new_page()
        page.on("response", lambda answer: answer.status >= 400 and refused.append(answer.url))
        page.on("pageerror", lambda error: refused.append(str(error)))
        for _ in range(2):
            run = client.post("/api/runs", json=request).json["id"]
            page.goto(f"{address}/runs/{run}")
            page.wait_for_selector("#chart-first .main-svg")
            assert client.post(f"/api/runs/{run}/stop", json={}).status_code == 202
            until(lambda run=run: client.get(f"/api/runs/{run}").json["state"]["over"])
            page.wait_for_timeout(1500)
    assert refused == []
