"""The pages without a browser: they answer, and the start page describes a scenario."""

from __future__ import annotations

import json

import pytest
import testbed

from dashboard.markdown import with_code


def test_pages_answer(client):
    for path in (
        "/",
        "/runs",
        "/runs/plain",
        "/scenarios/testbed_wifi_lte",
        "/compare?runs=plain,metered",
        "/healthz",
    ):
        assert client.get(path).status_code == 200, path
    assert client.get("/runs/nope").status_code == 404
    nowhere = client.get("/nowhere")
    assert "<h1>404</h1>" in nowhere.text
    assert nowhere.mimetype == "text/html"


def test_the_start_page_draws_the_network_and_describes_it(client):
    page = client.get("/scenarios/fat_tree").text
    drawn = page.partition('id="drawing">')[2].partition("</div>")[0]
    assert drawn.startswith("<svg")
    assert all(f'data-id="{name}"' in drawn for name in ("srv8", "c4", "e4x2", "ue8", "access8"))
    assert "<p>A fat tree with servers in the first half of the pods" in page
    assert "<p>Each host has one interface" in page
    assert "<pre" not in page


def test_the_start_page_marks_strategies_that_do_not_fit(client):
    def unfit(name):
        about = (
            client.get(f"/scenarios/{name}")
            .text.partition('id="about">')[2]
            .partition("</script>")[0]
        )
        return [row["name"] for row in json.loads(about)["strategies"] if row["unfit"]]

    assert unfit("fifteen_paths") == ["meter_throttling", "meter_throttling/improved"]
    assert unfit("testbed_wifi_lte") == []


def test_text_between_backticks_is_code_and_everything_else_is_escaped(client):
    assert "<code>--strategy none</code>" in client.get("/scenarios/fifteen_paths").text
    assert with_code("`a` < b") == "<code>a</code> &lt; b"


@pytest.mark.parametrize(("scenario", "said"), [("testbed_wifi_lte", True), ("rat_setup_1", False)])
def test_the_floor_is_explained_only_where_a_strategy_of_the_scenario_has_one(
    client, runs, scenario, said
):
    testbed.simulated(runs / "here", scenario, "duration_s=1")
    page = client.get("/runs/here").text
    assert ("<b>floor</b>" in page) is said
    assert "-1/2 is subflow 2 of connection 1 of ue" in page
