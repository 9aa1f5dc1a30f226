"""The campaigns of `./run_lab.sh torture` find nothing in one trial each, and report what they find."""

from __future__ import annotations

import itertools
import random
import time

import pytest
from torture import campaign, classes, folders, http, kills, machine, parsers
from torture.__main__ import CAMPAIGNS
from torture.campaign import Campaign, Counts, Failed

QUICK = [
    *parsers.ALL,
    *folders.ALL,
    http.Http,
    kills.Runners,
    kills.Stores,
    classes.Classes,
    machine.Resources,
]


@pytest.mark.parametrize("kind", QUICK, ids=lambda kind: kind.name)
def test_one_trial_finds_nothing(kind, tmp_path):
    outcome = campaign.run(kind(tmp_path), seed=1, minutes=0, numbers=(0,))
    if outcome.skipped:
        pytest.skip(outcome.skipped)
    assert outcome.failures == []
    assert outcome.counts.inputs


class Faulty(Campaign):
    name = "faulty"

    def trial(self, rng: random.Random) -> Counts:
        match rng.randrange(3):
            case 0:
                raise Failed("answered without the key")
            case 1:
                raise KeyError("users")
        return Counts(2, 1)


def test_failures_are_listed_with_how_to_repeat_them(tmp_path):
    outcome = campaign.run(Faulty(tmp_path), seed=4, minutes=0.01, numbers=itertools.count())
    assert len(outcome.failures) == campaign.MOST_FAILURES
    assert {text.partition(" ")[0] for _, text in outcome.failures} == {"answered", "KeyError:"}
    number, text = outcome.failures[0]
    again = campaign.run(Faulty(tmp_path), seed=4, minutes=1, numbers=(number,))
    assert again.failures == [(number, text)]
    assert f"--only faulty --seed 4 --trial {number}" in campaign.table([outcome], 4)


def test_a_hang_is_a_failure(tmp_path):
    class Slow(Faulty):
        hangs_after_s = 0.05

        def trial(self, rng: random.Random) -> Counts:
            try:
                time.sleep(5)
            except Exception:  # noqa: BLE001 - as the code under test may do
                time.sleep(5)
            return Counts()

    outcome = campaign.run(Slow(tmp_path), seed=1, minutes=0, numbers=(0,))
    assert outcome.failures == [(0, "no end within 0.05 s")]


def test_every_campaign_has_a_name_and_says_what_it_does():
    assert all(each.name == name and each.what for name, each in CAMPAIGNS.items())
    assert not CAMPAIGNS["emulation"].in_turn
