"""The pages without a browser: they answer, and the start page describes a scenario."""

from __future__ import annotations

import json
import re

import pytest
import testbed

from dashboard.markdown import with_code
from lab.scenario import loading, yaml_text


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


def test_questions_of_public_threads_are_a_group_and_name_their_thread(client):
    group = client.get("/").text.partition("Questions people asked")[2].partition("</section>")[0]
    asked = sorted(path.stem for path in (loading.FOLDER / loading.FIELD).glob("*.yaml"))
    assert re.findall(r'href="/scenarios/(\w+)"', group) == asked
    assert len(asked) >= 8
    for name in asked:
        thread = yaml_text.read(loading.find(name))["paper"]
        assert re.fullmatch(r"https://github\.com/[\w.-]+/[\w.-]+/issues/\d+", thread)
    assert f'<a href="{thread}" rel="noopener' in client.get(f"/scenarios/{name}").text
    assert "<dt>Paper</dt>" in client.get("/scenarios/fat_tree").text


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
