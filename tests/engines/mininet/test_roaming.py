"""Handovers of stations: association, attempts, and the gap in service."""

import pytest

from lab.engines.mininet import mobility as module
from lab.engines.mininet.mobility import GAP_S, RETRY_S, Outcome, Roaming
from lab.engines.mininet.network.wifi import Target
from lab.errors import LabError


class Radio:
    """Records what it is told. The next `busy` attempts fail; `answers` are returned in turn."""

    def __init__(self):
        self.did, self.answers, self.busy = [], [], 0

    def leave(self):
        self.did.append("leave")

    def associate(self, target):
        if self.busy:
            self.busy -= 1
            raise LabError("still leaving")
        self.did.append(target.ap)

    def commands(self, target):
        return [["iw", target.ap]]

    def answer(self):
        return self.answers.pop(0) if self.answers else None


class World:
    """One user; the test sets the clock."""

    def __init__(self, monkeypatch):
        self.now_s, self.radio = 100.0, Radio()
        self.told, self.journal, self.first_s = [], [], {}
        monkeypatch.setattr(module.time, "monotonic", lambda: self.now_s)
        targets = {f"wifi{n}": Target(f"wifi{n}", f"lab-wifi{n}", 2412, "02:00") for n in (1, 2, 3)}
        self.roaming = Roaming(
            {"ue1": self.radio},
            targets,
            lambda *moved: self.told.append(moved),
            lambda user, ap: self.first_s.get(ap),
            lambda user, argv: self.journal.append((user, argv)),
        )

    def at(self, seconds):
        self.now_s = 100.0 + seconds
        return self.roaming.poll()


@pytest.fixture
def world(monkeypatch):
    return World(monkeypatch)


def test_the_gap_ends_with_the_first_packet_through_the_new_cell(world):
    world.roaming.begin("ue1", "wifi1", "wifi2", -60.5)
    assert world.radio.did == ["leave", "wifi2"]
    assert world.journal == [("ue1", ["iw", "wifi2"])]
    assert world.at(0.01) == []
    assert world.told == []
    world.radio.answers = [True]
    assert world.at(0.08) == []
    assert world.told == [("ue1", "wifi1", "wifi2")]
    world.first_s["wifi2"] = 100.2
    (outcome,) = world.at(0.3)
    assert outcome == Outcome(100.0, "ue1", "wifi1", "wifi2", -60.5, 80.0, 200.0)
    assert {"user", "from", "to", "rssi_dbm"} <= set(outcome.fields())
    assert world.roaming.running == {}


def test_a_refused_association_is_tried_once_more(world):
    world.radio.busy = 1
    world.roaming.begin("ue1", "wifi1", "wifi2", -60)
    assert world.radio.did == ["leave"]
    world.at(RETRY_S + 0.01)
    assert world.radio.did == ["leave", "wifi2"]
    world.radio.answers = [False]
    world.at(2 * RETRY_S)
    world.at(3 * RETRY_S)
    assert world.radio.did == ["leave", "wifi2", "wifi2"]
    world.radio.answers = [True]
    world.at(4 * RETRY_S)
    assert world.told == [("ue1", "wifi1", "wifi2")]


def test_an_attempt_without_an_answer_is_repeated(world):
    world.roaming.begin("ue1", "wifi1", "wifi2", -60)
    world.at(module.ANSWER_S + 0.1)
    assert world.radio.did == ["leave", "wifi2", "wifi2"]


def test_a_station_without_traffic_has_no_gap(world):
    world.roaming.begin("ue1", "wifi1", "wifi2", -60)
    world.radio.answers = [True]
    world.at(0.1)
    (outcome,) = world.at(GAP_S + 0.2)
    assert (outcome.association_ms, outcome.gap_ms) == (100.0, None)


def test_a_user_that_moves_on_before_it_is_associated_comes_from_where_it_was(world):
    world.roaming.begin("ue1", "wifi1", "wifi2", -60)
    world.roaming.begin("ue1", "wifi2", "wifi3", -61)
    world.radio.answers = [True]
    (first,) = world.at(0.1)
    assert (first.old, first.new, first.association_ms) == ("wifi1", "wifi2", None)
    assert world.told == [("ue1", "wifi1", "wifi3")]


def test_handovers_in_progress_end_with_the_run(world):
    world.roaming.begin("ue1", "wifi1", "wifi2", -60)
    (outcome,) = world.roaming.finish()
    assert (outcome.association_ms, outcome.gap_ms) == (None, None)
