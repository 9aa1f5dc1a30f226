"""The drawing shows both rates of a link whose directions differ."""

from __future__ import annotations

from dashboard.network import svg
from dashboard.network.drawing import drawing
from lab.scenario import loading
from lab.scenario.loading import Overrides


def path(*settings):
    scenario = loading.load("two_paths", Overrides(settings=settings))
    drawn = drawing(scenario.network, scenario.rate_scale)
    return next(each for each in drawn.lines if each.id == "path1")


def test_a_link_with_two_rates_shows_both():
    line = path("topology.paths.1.up={rate_mbps: 4}")
    assert (line.rate_mbps, line.rate_back_mbps, line.down) == (10, 4, "ab")
    assert svg.link_text(line, {}) == "10 and 4 Mb/s"
    assert svg.link_text(line, {"mbps": 3.96}) == "4.0 of 10 and 4 Mb/s"


def test_a_link_with_one_rate_shows_it_once():
    line = path()
    assert (line.rate_mbps, line.rate_back_mbps) == (10, None)
    assert svg.link_text(line, {}) == "10 Mb/s"
