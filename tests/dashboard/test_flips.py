"""Changes to try: every scenario has some, and the run accepts all of them."""

from __future__ import annotations

import pytest

from dashboard import flips
from lab.run.recorder import write_scenario
from lab.scenario import loading as scenario
from lab.scenario import targets


@pytest.mark.parametrize("name", scenario.names())
def test_every_suggestion_is_accepted_by_the_run(name, tmp_path):
    job = scenario.load(name)
    write_scenario(tmp_path / "scenario.yaml", job)
    suggested = flips.suggestions(tmp_path)
    assert suggested
    for each in suggested:
        targets.check_flip(job, each.target, each.value)
    assert flips.rows(tmp_path)


@pytest.mark.parametrize(
    ("name", "watched"),
    [("testbed_wifi_lte", "Tier 2"), ("fifteen_paths", "how much each subflow carries")],
)
def test_suggestions_mention_tiers_only_in_networks_with_access_points(name, watched, tmp_path):
    write_scenario(tmp_path / "scenario.yaml", scenario.load(name))
    assert watched in flips.suggestions(tmp_path)[0].text
