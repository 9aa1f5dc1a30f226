"""Labels and units of metrics and settings."""

from __future__ import annotations

import pytest

from lab.frame import ApSample, Frame, UserSample
from lab.results.compare import numbers
from lab.results.labels import heading, label, setting_text
from lab.run import result as result_json


def test_every_metric_of_a_comparison_has_a_label(load_testbed):
    scenario = load_testbed()
    header = result_json.Header("r", "s", "none", "sim", 1, 1.0, "complete")
    aps = {ap: ApSample(1.0, 1.0, 0.5) for ap in scenario.network.ids("wifi", "lte")}
    users = {user: UserSample(1.0) for user in scenario.network.users}
    found = numbers(
        result_json.document(header, scenario.network, [Frame(1.0, aps, {}, users)], None)
    )
    assert len(found) > 10
    for metric in found:
        text = str(label(metric))
        assert text != metric
        assert "_" not in text
        assert text.endswith(", Mb/s") == metric.endswith("mbps") or metric.startswith("tiers.")
    assert str(label("users.ue1.throughput_mbps")) == "ue1: throughput, Mb/s"
    assert str(label("aps.wifi1.mac_occupancy_mean")) == "wifi1: mean MAC occupancy (1: full)"
    assert str(label("nobody.knows")) == "nobody.knows"


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        ("strategy.params.interval_s", "2", "interval 2 s"),
        ("multipath.cc", '"lia"', "congestion control lia"),
        ("traffic.1.rate_mbps", "4.5", "traffic 1 rate 4.5 Mb/s"),
        ("traffic.1.rate_mbps", "null", "traffic 1 rate unlimited"),
        ("topology.multipath", '["ue2"]', 'multipath ["ue2"]'),
        ("rate_scale", "0.25", "rate scale 0.25"),
    ],
)
def test_a_setting_has_words_and_a_unit(path, value, text):
    assert setting_text(path, value) == text


def test_the_heading_of_a_group_names_its_settings_in_words():
    settings = {"strategy.params.cth": "0.3", "duration_s": "30", "seed": "1"}
    named = "meter_throttling strategy.params.cth=0.3 duration_s=30"
    assert heading(named, settings) == "meter_throttling, cth 0.3, duration 30 s"
