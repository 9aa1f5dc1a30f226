"""The compared runs of a grid over the keys they vary: lines over one, heat maps over two."""

from __future__ import annotations

import pytest
import testbed
from axe import serious_faults
from test_browser import page, until  # noqa: F401  # the fixture `page`

from lab.results import compare
from lab.results.figures import plan
from lab.results.figures.plan import Asked

DELAYS, STEPS = (5, 6, 7), (0.3, 0.6)
DURATION, CTH = "duration_s", "strategy.params.cth"


@pytest.fixture
def grid(runs):
    """The IDs of runs over two keys."""
    found = {
        f"grid-{n}-{m}": (f"{DURATION}={seconds}", f"strategy.cth={cth}")
        for n, seconds in enumerate(DELAYS)
        for m, cth in enumerate(STEPS)
    }
    for name, settings in found.items():
        testbed.finished(runs / name, *settings, strategy="meter_throttling")
    return list(found)


def asked(client, ids, **options):
    extra = "".join(f"&{key}={value}" for key, value in options.items())
    return client.get(f"/api/compare/grid?runs={','.join(ids)}{extra}")


def test_two_keys_are_the_heat_map_of_the_command_line(client, grid, runs):
    answer = asked(client, grid, by=f"{DURATION},{CTH}")
    assert answer.status_code == 200, answer.json
    found = answer.json
    assert set(found["keys"]) == {DURATION, CTH}
    parts = compare.compared_by([runs / each for each in grid], None, ())[0]
    (panel,) = plan.panels(parts, Asked("heat", (), (DURATION, CTH), None))
    (drawn,) = found["panels"]
    (map_,) = drawn["data"]
    assert map_["z"] == [list(row) for row in panel.means]
    assert (map_["x"], map_["y"]) == (["5", "6", "7"], ["0.3", "0.6"])


def test_one_key_gives_a_line_for_each_value_of_the_other(client, grid):
    (drawn,) = asked(client, grid, by=DURATION).json["panels"]
    assert [each["x"] for each in drawn["data"]] == [[5, 6, 7], [5, 6, 7]]
    assert all(None not in each["y"] for each in drawn["data"])


def test_another_metric_is_drawn(client, grid):
    found = asked(client, grid, by=CTH, metric="users.ue1.throughput_mbps").json
    assert "ue1" in found["panels"][0]["title"]
    assert found["metric"] in found["metrics"]


def test_runs_that_vary_in_no_key_have_no_panels(client):
    found = asked(client, ["plain", "metered"]).json
    assert (found["keys"], found["panels"]) == ({}, [])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"by": "topology.nope"},
            "choose one or two of the keys that these runs vary: strategy.params.cth",
        ),
        ({"by": f"{CTH},{CTH}"}, "choose one or two"),
        ({"metric": "nope"}, "no run has it"),
    ],
)
def test_keys_and_metrics_that_the_runs_lack_are_refused(client, grid, options, said):
    answer = asked(client, grid, **options)
    assert answer.status_code == 422
    assert said in answer.json["error"]


@pytest.mark.browser
@pytest.mark.whole
def test_the_page_draws_a_heat_map_and_then_lines(page, address, grid):  # noqa: F811
    page.goto(f"{address}/compare?runs={','.join(grid)}")
    kind = "() => document.querySelector('#grid-panels .plot')?.data?.[0]?.type"
    until(page, lambda: page.evaluate(kind) == "heatmap")
    assert "#grid" not in str(serious_faults(page))
    page.select_option("#grid-y", "")
    until(page, lambda: page.evaluate(kind) == "scatter")
    page.select_option("#grid-metric", "users.ue1.throughput_mbps")
    until(page, lambda: "ue1" in page.inner_text("#grid-panels h3"))
