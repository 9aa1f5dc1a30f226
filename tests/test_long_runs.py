"""Long runs are read in bounded memory: peaks, means and important events stay."""

from __future__ import annotations

import json
import threading
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.results import thinning
from lab.run.reading import readable_samples

RATES = st.one_of(st.none(), st.floats(0, 1e4))


def sample(t, rates):
    users = {f"ue{n}": {"mbps": rate} for n, rate in enumerate(rates, 1)}
    return {"t": t, "ap": {}, "link": {}, "user": users, "sf": {}}


def written(folder, samples, events=()):
    folder.mkdir(exist_ok=True)
    for name, lines in (("samples", samples), ("events", events)):
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / f"{name}.jsonl").write_text(text)
    return folder


@pytest.fixture
def is_short(monkeypatch):
    """Runs of more than 4 kB are long, and about 2 kB of them remain."""
    monkeypatch.setattr(thinning, "FULL_BYTES", 4096)
    monkeypatch.setattr(thinning, "THIN_BYTES", 2048)


def test_a_run_of_usual_length_is_read_as_it_is(tmp_path):
    samples = [sample(n / 2, (n % 7, None)) for n in range(1, 200)]
    events = [{"t": n, "kind": "decision", "text": "x"} for n in range(50)]
    run = written(tmp_path / "run", samples, events)
    assert thinning.extremes(run) == thinning.Thinned(samples, 199)
    assert thinning.means(run, [10]) == samples
    assert thinning.events(run) == events


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(RATES, RATES), min_size=60, max_size=300))
def test_a_long_run_keeps_its_smallest_largest_and_last_values(tmp_path_factory, rates):
    run = written(
        tmp_path_factory.mktemp("long") / "run",
        [sample(n / 10, pair) for n, pair in enumerate(rates, 1)],
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(thinning, "FULL_BYTES", 4096)
        patch.setattr(thinning, "THIN_BYTES", 2048)
        found = thinning.extremes(run)
    assert found.count == len(rates)
    assert found.samples[-1] == sample(len(rates) / 10, rates[-1])
    assert [each["t"] for each in found.samples] == sorted(each["t"] for each in found.samples)
    assert len(found.samples) < 0.7 * len(rates)
    for place, user in enumerate(("ue1", "ue2")):
        shown = [each["user"][user]["mbps"] for each in found.samples]
        for choose in (min, max):
            true = choose((pair[place] for pair in rates if pair[place] is not None), default=None)
            kept = choose((each for each in shown if each is not None), default=None)
            assert kept == true
    sums = [sum(each for each in pair if each is not None) for pair in rates]
    highest = max(each["user"].get("*", {}).get("mbps", 0) for each in found.samples[:-1])
    assert max(highest, sums[-1]) == pytest.approx(max(sums))


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.floats(0, 1e3), min_size=100, max_size=300),
    st.lists(st.floats(0.01, 3), min_size=100, max_size=300),
    st.lists(st.integers(5, 90), max_size=3),
)
def test_means_of_a_long_run_are_those_of_all_samples(tmp_path_factory, rates, steps, places):
    times, t = [], 0.0
    for step in steps[: len(rates)]:
        t = round(t + step, 3)
        times.append(t)
    rates = rates[: len(times)]
    run = written(
        tmp_path_factory.mktemp("long") / "run",
        [sample(t, (rate,)) for t, rate in zip(times, rates, strict=True)],
    )
    marks = [times[place] for place in places]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(thinning, "FULL_BYTES", 4096)
        patch.setattr(thinning, "THIN_BYTES", 2048)
        found = thinning.means(run, marks)

    def megabits(samples, until_s):
        before = [0.0, *(each["t"] for each in samples)]
        return sum(
            each["user"]["ue1"]["mbps"] * (each["t"] - was_s)
            for each, was_s in zip(samples, before, strict=False)
            if each["t"] <= until_s
        )

    whole = list(readable_samples(run))
    for until_s in (*marks, times[-1]):
        assert megabits(found, until_s) == pytest.approx(megabits(whole, until_s), abs=1e-6)


@pytest.mark.usefixtures("is_short")
def test_samples_near_the_start_and_near_a_change_stay_as_they_are(tmp_path, monkeypatch):
    monkeypatch.setattr(thinning, "BEFORE_S", 3)
    monkeypatch.setattr(thinning, "AFTER_S", 2)
    whole = [sample(n / 2, (n % 7, None)) for n in range(1, 401)]
    found = thinning.means(written(tmp_path / "run", whole), [100])
    kept = [each["t"] for each in found if each in whole]
    assert kept == [0.5, 1, 1.5, 2, *(97 + n / 2 for n in range(11))]
    assert len(found) < 100


@pytest.mark.usefixtures("is_short")
def test_of_samples_near_changes_about_two_kilobytes_stay_as_they_are(tmp_path):
    whole = [sample(n / 2, (n % 7, None)) for n in range(1, 401)]
    every_s = 20  # so each sample is near a change
    found = thinning.means(written(tmp_path / "run", whole), range(0, 200, every_s))
    kept = next(n for n, each in enumerate(found) if each not in whole)
    assert sum(len(json.dumps(each)) for each in whole[: kept - 1]) < thinning.THIN_BYTES
    assert sum(len(json.dumps(each)) for each in whole[:kept]) >= thinning.THIN_BYTES
    assert len(found) < 2 * kept + 200 / every_s


@pytest.mark.usefixtures("is_short")
def test_of_a_state_the_last_one_counts(tmp_path):
    whole = [
        {"t": n, "ap": {"wifi1": {"stations": n % 3, "mbps": n % 3}}, "user": {"ue1": {"tier": 2}}}
        for n in range(1, 301)
    ]
    run = written(tmp_path / "run", whole)
    found = [each["ap"]["wifi1"] for each in thinning.means(run)]
    assert {each["stations"] for each in found} <= {0, 1, 2}
    assert not {each["mbps"] for each in found} <= {0, 1, 2}
    lows = thinning.extremes(run).samples[:-1:2]
    assert {each["ap"]["wifi1"]["mbps"] for each in lows} == {0}


def test_of_many_events_only_decisions_far_from_changes_are_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(thinning, "FULL_BYTES", 4096)
    monkeypatch.setattr(thinning, "LAST_EVENTS", 20)
    events = [{"t": n / 2, "kind": "decision", "text": f"{n}"} for n in range(2000)]
    flip = {"t": 500, "kind": "flip", "ok": True, "target": "cc", "value": "lia"}
    events[1000] = flip | {"state": "applied"}
    events[700] = {"t": 350, "kind": "handover", "user": "ue1"}
    found = thinning.events(written(tmp_path / "run", [], events))
    assert len(found) == len(events)
    left_out = [each for each in found if each["kind"] == thinning.LEFT_OUT]
    assert left_out
    stays = [n for n, each in enumerate(found) if each == events[n]]
    assert {700, 1000, 1001, 1999} <= set(stays)
    assert len(stays) < 600
    assert sum({id(each): each["count"] for each in left_out}.values()) == 2000 - len(stays)


@pytest.mark.usefixtures("is_short")
def test_an_answer_about_a_long_run_is_made_once_for_all_who_ask_at_once(tmp_path):
    made, begun = [], threading.Event()

    @thinning.in_turn
    def answer(folder, of):
        made.append(of)
        begun.wait(0.2)
        return {"of": of}

    run = written(tmp_path / "run", [sample(n, (1,)) for n in range(1, 100)])
    found = []
    asking = [
        threading.Thread(target=lambda of=of: found.append(answer(run, of))) for of in "aabba"
    ]
    for each in asking:
        each.start()
    for each in asking:
        each.join()
    assert sorted(made) == ["a", "b"]
    found[0]["of"] = "changed by whoever has it"
    assert answer(run, "a") == {"of": "a"}
    written(run, [sample(n, (2,)) for n in range(1, 101)])
    assert answer(run, "a") == {"of": "a"}
    assert sorted(made) == ["a", "a", "b"]


@pytest.mark.usefixtures("is_short")
def test_the_last_answers_are_kept(tmp_path):
    made = []

    @thinning.in_turn
    def answer(_folder, of):
        made.append(of)
        return of

    run = written(tmp_path / "run", [sample(n, (1,)) for n in range(1, 100)])
    several = list(range(thinning.ANSWERS + 5))
    assert [answer(run, of) for of in several] == several
    assert [answer(run, of) for of in several[5:]] == several[5:]
    assert made == several
    assert answer(run, 0) == 0
    assert made == [*several, 0]


@pytest.mark.long
def test_a_run_ten_times_as_long_takes_no_more_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(thinning, "FULL_BYTES", 10_000)
    monkeypatch.setattr(thinning, "THIN_BYTES", 20_000)

    def peak_bytes(count):
        folder = tmp_path / f"{count}"
        run = written(folder, (sample(n / 10, (n % 9, n % 5)) for n in range(1, count + 1)))
        tracemalloc.start()
        thinning.extremes(run), thinning.means(run, [count / 20])
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    peak_bytes(1_000)
    assert peak_bytes(20_000) < 2 * peak_bytes(2_000)
