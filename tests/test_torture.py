"""One trial of each campaign of `./run_lab.sh torture` finds nothing; and failures are reported."""

from __future__ import annotations

import contextlib
import itertools
import json
import random
import re
import time
from collections import Counter
from pathlib import Path

import pytest
from torture import (
    batches,
    campaign,
    classes,
    emulation,
    files,
    folders,
    honesty,
    http,
    kills,
    machine,
    parsers,
    roles,
    traps,
)
from torture.__main__ import CAMPAIGNS
from torture.campaign import Campaign, Counts, Failed
from torture.in_the_vm import RUNNER, WORDS, Answer, Job, judge


class SmallBatches(batches.Batches):
    repeat = 10


DOCS = Path(__file__).parents[1] / "docs" / "notebook"
QUICK = [
    *parsers.ALL,
    *files.ALL,
    *folders.ALL,
    *honesty.ALL,
    *roles.ALL,
    *traps.ALL,
    http.Http,
    kills.Runners,
    kills.Stores,
    SmallBatches,
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


def test_a_hang_that_python_ignores_is_a_failure(tmp_path):
    class Destroyed:
        def __del__(self):
            with contextlib.suppress(campaign.Hang):
                time.sleep(0.2)

    class Quiet(Campaign):
        hangs_after_s = 0.05

        def trial(self, rng):
            Destroyed()
            return Counts()

    outcome = campaign.run(Quiet(tmp_path), 1, 1, range(1))
    assert outcome.failures == [(0, "no end within 0.05 s")]


def test_every_campaign_has_a_name_and_says_what_it_does():
    assert all(each.name == name and each.what for name, each in CAMPAIGNS.items())
    assert not CAMPAIGNS["emulation"].in_turn


def test_the_table_of_emulations_agrees_with_the_record():
    """docs/notebook/reliability.md counts the lines of reliability_emulations.jsonl, one per
    run."""
    found = {}
    for line in (DOCS / "reliability_emulations.jsonl").read_text().splitlines():
        run = json.loads(line)
        counts = found.setdefault(run["seed"], [0, 0, 0])
        counts[0] += 1
        counts[1] += run["killed"]
        counts[2] += bool(run["left"] or run["problem"])
    rows = re.findall(
        r"^\| (\d+), [0-9a-f]{7} \| (\d+) \| (\d+) \| (\d+) \|",
        (DOCS / "reliability.md").read_text(),
        re.MULTILINE,
    )
    assert {int(seed): list(map(int, counts)) for seed, *counts in rows} == found
    assert sum(runs for runs, _, _ in found.values()) >= 100


def test_jobs_of_the_emulation_are_repeated_by_seed_and_number():
    jobs = [emulation.draw(random.Random(f"emulation/1/{n}"), n) for n in range(300)]
    assert jobs == [emulation.draw(random.Random(f"emulation/1/{n}"), n) for n in range(300)]
    victims = Counter(job.victim for job in jobs)
    assert set(victims) == {"", RUNNER, *WORDS}
    assert victims[""] < 0.75 * len(jobs)
    with_cells = [job for job in jobs if job.victim in emulation.NEED_CELLS]
    assert not any(job.argv[0] in ("two_paths", "three_paths") for job in with_cells)


@pytest.mark.parametrize(
    ("victim", "events", "changes", "problem"),
    [
        ("", [], {}, ""),
        ("", [], {"status": "failed"}, "exit code 0, status failed"),
        ("", [], {"mptcp": {"verified": False}}, "verified: False"),
        ("", ["undo: remove bridges s1"], {}, "undo: remove bridges s1"),
        ("POX", ["POX had ended; it was restarted"], {}, ""),
        ("POX", [], {}, "nothing reports the end of POX"),
        ("hostapd", ["wifi1 has ended (hostapd)"], {}, "counts as verified"),
        ("hostapd", ["wifi1 has ended (hostapd)"], {"mptcp": {"verified": False}}, ""),
        (RUNNER, [], {"status": "failed"}, ""),
    ],
)
def test_a_run_is_judged_by_its_folder(tmp_path, victim, events, changes, problem):
    result = {"status": "complete", "mptcp": {"verified": True}, "throughput_mbps": 9.0} | changes
    (tmp_path / "result.json").write_text(json.dumps(result))
    lines = [json.dumps({"t": 1, "kind": "warning", "text": text}) for text in events]
    (tmp_path / "events.jsonl").write_text("".join(f"{line}\n" for line in lines))
    (tmp_path / "samples.jsonl").write_text('{"t": 5.0}\n')
    answer = Answer(1, killed=bool(victim), exit_code=0)
    judge(Job(1, ["two_paths"], victim), tmp_path, answer, 0.5 if victim else None)
    assert problem in answer.problem
    assert bool(answer.problem) == bool(problem)
