"""The section of the cross-check page about WiFi, from made-up scenes: no network, no VM."""

from __future__ import annotations

import json

import pytest
from emulation import wifi_witness

ALONE = {"strong": {"strong": 6.0}, "weak": {"weak": 1.5}}
TOGETHER = {"strong": 1.3, "weak": 1.1}


def scenes(*idle_shares: float):
    """Three scenes per turn; each turn has one of these idle shares of the processors."""
    return [
        {"turn": turn, "who": who, "mbps": mbps, "idle_share": idle_share, "lost_before_the_air": 0}
        for turn, idle_share in enumerate(idle_shares, 1)
        for who, mbps in (*ALONE.items(), ("both", TOGETHER))
    ]


@pytest.fixture
def page(tmp_path, monkeypatch):
    """Write the page of such scenes, and return its text."""
    monkeypatch.setattr(wifi_witness, "where", lambda: "somewhere")

    def make(*idle_shares: float) -> str:
        place = tmp_path / "runs" / "wmediumd" / "wifi_air"
        place.mkdir(parents=True)
        (place / "scenes.jsonl").write_text("\n".join(map(json.dumps, scenes(*idle_shares))) + "\n")
        written = tmp_path / "page.md"
        written.write_text("# Old\n\n## two_paths\n\nkept\n")
        wifi_witness.main(len(idle_shares), tmp_path / "runs", written)
        return written.read_text()

    return make


@pytest.mark.whole
def test_the_simulator_is_given_what_each_carries_alone_and_judged_by_both_together(page):
    text = page(0.5)
    rows = {
        tuple(cells[:2]): cells[2:]
        for line in text.splitlines()
        if len(cells := line.strip("| ").split(" | ")) == 7
    }
    assert rows["strong", "strong"][:2] == ["6.00", "6.00"]
    assert rows["weak", "weak"][:2] == ["1.50", "1.50"]
    assert rows["weak", "weak"][-1] == wifi_witness.GIVEN
    assert rows["both", "strong"][0] == "1.30"
    assert 1.0 < float(rows["both", "strong"][1]) < 1.4
    assert rows["both", "strong"][-1] == "independent"
    assert "wmediumd 1/1/1, sim 1/1/1" in text
    assert "## two_paths\n\nkept" in text


def test_a_turn_of_an_overloaded_machine_is_left_out():
    found = wifi_witness.by_case(scenes(0.5, 0.01))
    assert [[not each.is_evidence for each in results] for results in found.values()] == [
        [False, True]
    ] * 3


def test_a_turn_that_lost_frames_before_the_air_is_left_out():
    found = wifi_witness.by_case([scene | {"lost_before_the_air": 3} for scene in scenes(0.5)])
    assert all(not each.is_evidence for results in found.values() for each in results)


def test_rates_follow_from_what_each_station_carried_alone():
    assert wifi_witness.rate_mbps(tried_mbps=8, carried_mbps=7.5, wanted_mbps=6) == 6.4
