"""The search for harm: its networks, its rule, and how a network is made smaller."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter

import numpy as np
import pytest
import yaml
from command_line import lab

from lab.harm import search, trial
from lab.harm.networks import KINDS, MOST_USERS, SLOW_MBPS, network, with_shifted_starts
from lab.harm.rule import Figures, Harm, Low, Rates, figures, harm
from lab.harm.shrinking import smaller_ones
from lab.scenario.loading import from_data, load

__all__ = ["lab"]

FORM, METER = "loss_aware/improved", "meter_throttling/improved"


# Networks


def loaded(document):
    return from_data(document, document["name"])


def test_networks_are_valid_and_every_kind_appears():
    seen = Counter()
    for number in range(120):
        document = network(11, number)
        scenario = loaded(document)
        users = {each["user"] for each in document["traffic"]}
        assert 1 <= len(users) <= MOST_USERS
        assert 20 <= scenario.duration_s <= 30
        stations = document["topology"].get("users") or []
        slow = [
            each
            for each in (stations if isinstance(stations, list) else [])
            if min(each.get("wifi_mbps", 99), each.get("lte_mbps", 99)) <= SLOW_MBPS[1]
        ]
        seen.update(
            [
                document["topology"]["kind"],
                f"{len(users)} users",
                *(each["kind"] for each in document["traffic"]),
                *(each["target"].rpartition(".")[2] for each in document["events"]),
                *["slow station"] * bool(slow),
            ]
        )
    kinds = "parallel_paths shared_bottleneck pooling nodes_and_links wifi_lte campus"
    flows = "bulk on_off rate file workload rpc web video call"
    changes = "up rate_mbps delay_ms"
    expected = {*kinds.split(), *flows.split(), *changes.split(), "slow station"}
    assert expected | {f"{n} users" for n in (1, MOST_USERS)} <= seen.keys()


def test_a_network_follows_from_seed_and_number():
    assert [network(3, n) for n in range(9)] == [network(3, n) for n in range(9)]
    assert len({json.dumps(network(s, n)["topology"]) for s in (3, 4) for n in range(9)}) == 18
    assert [loaded(network(3, n)).title.split("(")[1][:-1] for n in range(3)] == [*KINDS]


def test_other_starts_differ_by_milliseconds_only():
    document = network(3, 1)
    assert with_shifted_starts(document, 0, 3) is document
    one, two = (with_shifted_starts(document, n, 3) for n in (1, 2))
    assert one != two
    assert one | {"traffic": document["traffic"]} == document
    for before, after in zip(document["traffic"], one["traffic"], strict=True):
        assert 0 < after["start_s"] - before["start_s"] <= 0.1
        assert before | {"start_s": after["start_s"]} == after


# The rule

SAMPLES = 80  # of 0.5 s


def rates(multipath=(), at_times=(), **users):
    """Each user has one rate all the time, or [(rate, samples), ...]."""
    series = {
        name: np.concatenate([np.full(n, mbps, float) for mbps, n in value])
        if isinstance(value, list)
        else np.full(SAMPLES, value, float)
        for name, value in users.items()
    }
    return Rates(series, 0.5, frozenset(multipath), frozenset(at_times))


def lows(plain, other, strategy=FORM):
    low = figures(plain, other, strategy).low
    return low and (low.user, low.length_s)


def test_a_user_is_harmed_below_nine_tenths_for_longer_than_ten_seconds():
    plain = rates(a=10, b=10)
    assert lows(plain, rates(a=10, b=9.1)) is None
    assert lows(plain, rates(a=10, b=8.9)) == ("b", 40)
    assert lows(plain, rates(a=10, b=[(10, 20), (8.9, 20), (10, 40)])) is None
    user, length_s = lows(plain, rates(a=10, b=[(10, 20), (8, 30), (10, 30)]))
    assert user == "b"
    assert 12 <= length_s <= 16


def test_single_samples_do_not_end_a_low():
    assert lows(rates(a=10), rates(a=[(5, 15), (10, 1), (5, 14), (10, 50)])) is not None


def test_who_is_idle_is_not_harmed():
    assert lows(rates(a=0.05, b=10), rates(a=0, b=10)) is None


def test_data_that_came_earlier_counts_only_for_who_has_data_at_times():
    plain = [(5, 60), (0, 20)]
    earlier = [(10, 30), (0, 50)]
    assert lows(rates(a=plain, at_times="a"), rates(a=earlier)) is None
    assert lows(rates(a=plain), rates(a=earlier)) is not None
    later = [(0, 30), (10, 30), (0, 20)]
    assert lows(rates(a=plain, at_times="a"), rates(a=later)) is not None


@pytest.mark.parametrize("strategy", ["meter_throttling", "meter_throttling/improved"])
def test_single_path_users_are_protected_by_the_meter(strategy):
    plain = rates(a=10, b=10, multipath="a")
    assert lows(plain, rates(a=6, b=14), strategy) is None
    assert lows(plain, rates(a=6, b=13.9), strategy) == ("a", 40)
    assert lows(plain, rates(a=14, b=6), strategy) == ("b", 40)
    assert lows(plain, rates(a=6, b=14), "loss_aware") == ("a", 40)


def test_poorer_users_are_protected_by_expected_throughput():
    plain = rates(a=12, b=6, c=6)
    assert lows(plain, rates(a=8, b=8, c=8), "expected_throughput/improved") is None
    assert lows(plain, rates(a=16, b=2, c=6), "expected_throughput/improved") == ("b", 40)
    # what one protected user gains does not count if another one loses it
    assert lows(plain, rates(a=8, b=11, c=5.5), "expected_throughput") is None
    assert lows(plain, rates(a=8, b=10, c=2), "expected_throughput") is not None


def waits(times_s, mos=None, ue2_mbps=1.0):
    """A run of 20 s in which ue1 waits for transfers and calls, beside a bulk flow of ue2."""
    users = {"ue1": np.full(40, 1.0), "ue2": np.full(40, ue2_mbps)}
    of_calls = {} if mos is None else {"ue1": mos}
    return Rates(users, 0.5, frozenset(users), frozenset(["ue1"]), {"ue1": times_s}, of_calls)


def test_who_waits_longer_or_hears_less_is_harmed():
    plain = waits([0.2] * 40, 4.3)
    found = figures(plain, waits([0.2] * 30 + [0.4] * 10, 4.3), METER).felt
    assert (found.user, found.share) == ("ue1", pytest.approx(0.5))
    assert figures(plain, waits([0.24] * 40, 4.3), METER).felt is None  # 0.04 s: felt by nobody
    assert figures(plain, waits([0.4] * 10, 4.3), METER).felt is None  # too few to say
    found = figures(plain, waits([0.2] * 40, 3.0), METER).felt
    assert found.share == pytest.approx(3.0 / 4.3)
    assert figures(plain, waits([0.2] * 40, 4.25), METER).felt is None


def test_waits_count_only_beyond_chance():
    plain = waits([0.2] * 40)
    ours, chance = (figures(plain, waits([longer] * 40), METER) for longer in (0.4, 0.5))
    assert harm(ours, [figures(plain, plain, METER)]).felt
    assert harm(ours, [chance]) is None


def test_a_wait_that_protected_users_gain_from_is_no_harm():
    plain, slow = waits([0.2] * 40), waits([0.4] * 40, ue2_mbps=2.0)
    alone = [dataclasses.replace(each, multipath=frozenset(["ue1"])) for each in (plain, slow)]
    assert figures(*alone, METER).felt is None
    assert figures(plain, slow, METER).felt


def test_the_total_is_harmed_below_97_percent():
    share = figures(rates(a=10, b=10), rates(a=10, b=9.5), FORM).total_share
    assert share == pytest.approx(0.975)
    assert figures(rates(a=0.01), rates(a=0), FORM).total_share == 1


LOW = Low("a", 5, 14, 0.5)


@pytest.mark.parametrize(
    ("ours", "control", "expected"),
    [
        (Figures(None, 0.98), [], None),
        (Figures(None, 0.96), [], (None, 0.96)),
        (Figures(None, 0.96), [Figures(None, 0.95)], None),
        (Figures(None, 0.94), [Figures(None, 0.95), Figures(None, 1.1)], (None, 0.94)),
        (Figures(LOW, 1), [], (LOW, None)),
        (Figures(LOW, 1), [Figures(Low("b", 0, 14, 0.8), 1)], None),
        (Figures(LOW, 1), [Figures(Low("b", 0, 13, 0.1), 1)], (LOW, None)),
    ],
)
def test_only_what_is_beyond_chance_counts(ours, control, expected):
    found = harm(ours, control)
    assert (found and (found.low, found.total_share)) == expected


# Shrinking


def smallest(document, judge):
    found = document
    for found, _ in smaller_ones(document, judge):  # noqa: B007 - the last one counts
        pass
    return found


def judged_by(rule):
    def judge(document):
        try:
            loaded(document)
        except Exception:  # noqa: BLE001 - whatever makes no sense
            return None
        return rule(document) or None

    return judge


@pytest.mark.parametrize("number", [0, 1, 2, 3, 9])
def test_nothing_is_left_of_a_network_that_need_keep_nothing(number):
    found = smallest(network(1, number), judged_by(lambda _: True))
    users = {each["user"] for each in found["traffic"]}
    assert len(users) == len(found["traffic"]) == 1
    assert found["traffic"][0] == {"user": users.pop(), "kind": "bulk", "start_s": 0}
    assert found["events"] == []
    assert found["multipath"] == {"cc": "reno"}
    assert found["duration_s"] == 15


def test_what_the_harm_needs_stays():
    def rule(document):
        slow = [
            each
            for each in document["topology"]["users"]
            if each.get("wifi_mbps", 99) <= SLOW_MBPS[1]
            and each["id"] in document["topology"].get("multipath", ())
        ]
        return len(slow) >= 1 and len(document["traffic"]) >= 2 and document["duration_s"] > 20

    number = next(n for n in range(1, 300, 3) if rule(network(1, n)) and network(1, n)["events"])
    found = smallest(network(1, number), judged_by(rule))
    assert rule(found)
    assert len(found["topology"]["users"]) == len(found["traffic"]) == 2
    assert found["duration_s"] == 25
    assert found["events"] == []
    for user in found["topology"]["users"]:
        assert all(f"{value:e}"[0] in "125" for key, value in user.items() if key[-4:] == "mbps")


def test_shrinking_repeats_nothing_and_is_the_same_each_time():
    asked = []

    def judge(document):
        asked.append(repr(document))
        return judged_by(lambda each: len(each["traffic"]) > 1)(document)

    first = smallest(network(1, 6), judge)
    assert len(asked) == len(set(asked))
    assert smallest(network(1, 6), judge) == first


# The search


class Pretended(trial.Network):
    """Harm wherever user ue1 has traffic and more than one user has."""

    def harm_of(self, strategy):
        users = {each["user"] for each in self.document["traffic"]}
        if self.document["name"].endswith("_5"):
            raise trial.RunFailed("no memory")
        return Harm(None, 1 - len(users) / 20) if "ue1" in users and len(users) > 1 else None


@pytest.fixture
def pretended(monkeypatch):
    monkeypatch.setattr(search, "Network", Pretended)
    monkeypatch.setattr(trial, "Network", Pretended)


def test_the_command_lists_the_worst_and_how_to_see_them(lab, pretended, tmp_path):
    record = tmp_path / "record.jsonl"
    done = lab(
        "harm --networks 7 --strategy loss_aware/improved --out", tmp_path, "--record", record
    )
    assert done.exit_code == 0
    lines = [json.loads(line) for line in record.read_text().splitlines()]
    harmful = {each["network"] for each in lines if each["harm"]}
    assert harmful
    tried = {n for n in range(7) if n != 5 and trial.Network(network(1, n)).fits(FORM)}
    assert {each["network"] for each in lines} == tried
    assert f"loss_aware/improved  {len(tried):8}  {len(harmful):9}" in done.output
    assert "1 networks could not be simulated" in done.output
    for number in harmful:
        file = tmp_path / f"loss_aware-improved-1-{number}.yaml"
        scenario = load(str(file))
        assert scenario.strategy.name == FORM
        assert scenario.seed == 1
        assert f"network {number} of seed 1" in scenario.expect
        assert len({flow.user for flow in scenario.traffic}) == 2
        assert f"run {file} --strategy none --strategy {FORM}" in done.output
    assert "the smallest" in done.output
    assert "not shrunk" not in done.output


def test_ctrl_c_keeps_what_was_found(lab, pretended, tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(search, "harm_or_none", interrupted)
    done = lab("harm --networks 4 --strategy loss_aware/improved --out", tmp_path)
    assert done.exit_code == 130
    kept = sorted(tmp_path.glob("*.yaml"))
    assert kept
    assert all(str(file) in done.output for file in kept)
    assert "not shrunk to the end" in done.output
    assert "title" in yaml.safe_load(kept[0].read_text())


def test_without_a_name_every_improved_form_is_tried(lab, pretended, tmp_path):
    done = lab("harm --networks 2 --out", tmp_path)
    for name in ("expected_throughput", "meter_throttling", "subflow_selection", "loss_aware"):
        assert f"{name}/improved" in done.output


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("harm --strategy loss_awar", "did you mean 'loss_aware'"),
        ("harm --minutes 0", "0"),
        ("harm --networks 0", "0"),
        ("harm --record /nowhere/at/all.jsonl", "make it first"),
    ],
)
def test_wrong_requests_start_nothing(lab, words, text):
    done = lab(words)
    assert done.exit_code == 2
    assert text in done.output


# Real simulations


def reserved():
    """Users with little data share a link with one that always has some."""
    users = [{"id": f"ue{n}", "subflows": 2} for n in range(1, 5)]
    quiet = [{"user": each["id"], "kind": "rate", "rate_mbps": 0.1} for each in users[1:]]
    link = {"rate_mbps": 4, "delay_ms": 10}
    return {
        "name": "reserved",
        "title": "One that always has data, three that have little",
        "topology": {"kind": "shared_bottleneck", **link, "users": users},
        "traffic": [{"user": "ue1"}, *quiet],
        "events": [],
        "seed": 3,
        "duration_s": 20,
    }


def test_harm_of_the_papers_form_is_found():
    found = trial.Network(reserved()).harm_of("expected_throughput")
    assert found.low.user == "ue1"
    assert found.total_share < 0.6
    assert trial.Network(reserved()).harm_of("none") is None


def test_a_strategy_that_cannot_act_is_not_tried():
    assert not trial.Network(reserved()).fits("meter_throttling")
    assert trial.harm_or_none(reserved(), "meter_throttling") is None
    assert trial.harm_or_none({**reserved(), "traffic": []}, "expected_throughput") is None


def test_a_small_search_finds_the_same_each_time(lab, tmp_path):
    records = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    for record in records:
        words = f"harm --networks 2 --seed 4 --strategy {FORM} --strategy {METER} --out"
        assert lab(words, tmp_path / "found", "--record", record).exit_code == 0
    one, two = (record.read_text() for record in records)
    assert one == two
    lines = [json.loads(line) for line in one.splitlines()]
    assert {each["strategy"] for each in lines} <= {FORM, METER}
    assert lines


def test_a_search_goes_on_where_its_record_ends(lab, tmp_path):
    record = tmp_path / "record.jsonl"
    words = f"harm --seed 4 --strategy {FORM} --out"
    assert lab(words, tmp_path / "found", "--record", record, "--networks", "1").exit_code == 0
    first = record.read_text()
    record.write_text(first + '{"cut off')
    assert lab(words, tmp_path / "found", "--record", record, "--networks", "3").exit_code == 0
    tried = [line for line in record.read_text().splitlines() if FORM in line]
    numbers = [json.loads(line)["network"] for line in tried]
    assert len(numbers) == len(set(numbers))


def test_what_other_sources_have_found_is_tried_again(lab, tmp_path):
    record = tmp_path / "record.jsonl"
    words = f"harm --seed 4 --networks 1 --strategy {METER} --strategy {FORM} --out"
    assert lab(words, tmp_path / "found", "--record", record).exit_code == 0
    lines = [json.loads(line) for line in record.read_text().splitlines()]
    record.write_text("".join(json.dumps(line | {"sources": "older"}) + "\n" for line in lines))
    assert lab(words, tmp_path / "found", "--record", record).exit_code == 0
    assert len(record.read_text().splitlines()) == 2 * len(lines) > 0
