"""A scenario with errors starts nothing; the error names file, key and value, and says what is
valid."""

from __future__ import annotations

import re
from typing import Annotated, Literal

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from lab.errors import RequestError
from lab.scenario import loading as scenario
from lab.scenario import schema
from lab.scenario.flows import scaled_traffic
from lab.scenario.loading import Overrides, experiment, from_data, resolved
from lab.scenario.parts import Part
from lab.scenario.schema import Multipath
from lab.scenario.targets import check_flip
from lab.topologies.families import TOPOLOGIES

UNEVEN_PATHS = """
name: uneven_paths
title: Two uneven paths, one loses packets for a while
topology: {kind: parallel_paths, paths: [{rate_mbps: 20, delay_ms: 10, loss: 0, queue_packets: 100}, {rate_mbps: 12, delay_ms: 37, jitter_ms: 3, queue_packets: 150}]}
multipath: {cc: olia, scheduler: lowest_rtt, receive_buffer_kb: 4000}
traffic: [{user: ue1, kind: bulk, direction: down}]
strategy: {name: loss_aware, params: {window_packets: 1000}}
events: [{at_s: 10, target: link.path1.loss, value: 0.05}, {at_s: 20, target: link.path1.loss, value: 0}]
duration_s: 30
"""
SHARED_PIPE = """
name: shared_pipe
title: One multipath connection against one plain TCP flow on the same link
topology: {kind: shared_bottleneck, rate_mbps: 20, delay_ms: 20, queue_packets: 100, users: [{id: mp, subflows: 2}, {id: sp, subflows: 1}]}
multipath: {cc: lia}
traffic: [{user: mp, kind: bulk}, {user: sp, kind: bulk, cc: reno}]
duration_s: 120
"""

WRONG = {
    "topology.mutipath=[]": "topology: unknown key 'mutipath' (did you mean 'multipath'?)",
    "durations=5": "unknown key 'durations' (did you mean 'duration_s'?)",
    "topology.users.ue1.wifi_kbps=9": (
        "topology.users[1]: unknown key 'wifi_kbps' (did you mean 'wifi_mbps'?)"
    ),
    "topology.multipath=[ue9]": "multipath user 'ue9' is unknown: choose from ue1, ue2, ue3, ue4",
    "topology.kind=wifi": (
        "topology.kind: 'wifi' is unknown (did you mean 'wifi_lte'?): choose from"
    ),
    "topology.users.ue1.wifi_mbps=-2": (
        "topology.users[1].wifi_mbps: -2 is out of range: write more than 0 Mb/s"
    ),
    "topology=3": "topology: 3 is no mapping",
    "topology.users=[5]": "topology.users[1]: 5 is not a mapping",
    "topology.users=5": "topology.users: 5 is not a list",
    "topology.users.ue1=null": "topology.users[1]: null is not a mapping",
    "traffic=[]": "traffic: holds 0 entries: write at least 1",
    "traffic=3": "traffic: 3 is not a list",
    "traffic.1.user=ue7": "traffic[1].user: 'ue7' is unknown",
    "traffic.1.kind=blk": (
        "traffic[1].kind: 'blk' is unknown (did you mean 'bulk'?): choose from bulk, file, rate,"
        " on_off"
    ),
    "traffic.1.rate_mbps=10Mbps": (
        "traffic[1].rate_mbps: '10Mbps' is not a number in Mb/s: write 10"
    ),
    "traffic.1.kind=file": "traffic[1]: kind 'file' needs volume_mb",
    "traffic.1.kind=rate": "traffic[1]: kind 'rate' needs rate_mbps",
    "traffic.1.volume_mb=3": "volume_mb belongs to kind 'file', not 'bulk'",
    "traffic.1.stop_s=0.0": "traffic[1].stop_s: 0.0 is out of range: write more than 0 s",
    "traffic.1={user: ue1, start_s: 5, stop_s: 4}": "traffic[1]: stop_s 4 is not after start_s 5",
    "traffic.1.rate_mbps=500 kbit": "'500 kbit' is not a number in Mb/s: write 0.5",
    "traffic.1.stop_s=500ms": "'500ms' is not a number in s: write 0.5",
    "traffic.1.rate_mbps=3 apples": "traffic[1].rate_mbps: '3 apples' is not a number in Mb/s",
    "duration_s=60 s": "duration_s: '60 s' is not a number in s: write 60",
    "duration_s=.inf": "duration_s: inf is not a number that can be measured",
    "seed=true": "seed: true is not a whole number",
    "sample_interval_s=59": "",  # shorter than the run of 60 s, so allowed
    "name=A B": "name: 'A B' does not fit",
    "multipath.cc=olai": (
        "multipath.cc: 'olai' is unknown (did you mean 'olia'?): choose from reno, cubic"
    ),
    "multipath.server_enabled=no way": "multipath.server_enabled: 'no way' is not true or false",
    "strategy=none": "strategy: 'none' is not a mapping",
    "strategy.name=foo": "strategy.name: 'foo' is unknown: choose from",
    "strategy={name: meter_throttling, params: {cth: 5}}": (
        "strategy.params.cth: 5 is out of range: write at most 1"
    ),
    "strategy.cth=0.5": "strategy.params: unknown key 'cth'. Known keys: interval_s",
    "strategy={name: meter_throttling, params: {cht: 0.5}}": (
        "strategy.params: unknown key 'cht' (did you mean 'cth'?)"
    ),
    "mobility={}": "mobility: topology 'wifi_lte' gives nobody a position",
    "events=[{at_s: 1, target: link.wifi.u, value: 3}]": (
        "events[1]: target 'link.wifi.u' is unknown (did you mean 'link.wifi.up'?)"
    ),
    "events=[{at_s: 1, target: link.wifi.up, value: 3}]": (
        "events[1]: link.wifi.up: 3 is neither true nor false"
    ),
}


@pytest.mark.parametrize("setting", ["duration_s.x=1", "duration_s.x.y=1", "name.0=a"])
def test_nothing_is_set_inside_of_a_plain_value(load_testbed, setting):
    with pytest.raises(RequestError, match="is inside a plain value"):
        load_testbed(setting)


@pytest.mark.parametrize(("setting", "message"), [pair for pair in WRONG.items() if pair[1]])
def test_an_error_names_key_value_and_correction(load_testbed, setting, message):
    with pytest.raises(RequestError) as caught:
        load_testbed(setting)
    assert str(caught.value).startswith("testbed_wifi_lte.yaml: ")
    assert message in str(caught.value)
    assert caught.value.exit_code == 2


class Mine(Part):
    at_most: Annotated[int, Field(le=5)] = 1
    less: Annotated[float, Field(lt=5)] = 1
    at_least: Annotated[int, Field(ge=5)] = 6
    more_ms: Annotated[float, Field(gt=5)] = 6
    entries: Annotated[tuple[int, ...], Field(min_length=2, max_length=3)] = (1, 2)
    mapping: dict[str, int] = {}
    part: Multipath = Multipath()
    text: Annotated[str, Field(pattern="^[a-z]+$")] = "a"
    is_on: bool = False
    choice: Literal["one", "two"] = "one"
    loss: Annotated[float, Field(ge=0, le=1)] = 0


@pytest.mark.parametrize(
    ("key", "value", "wrong"),
    [
        ("at_most", 6, "6 is out of range: write at most 5"),
        ("less", 5, "5 is out of range: write less than 5"),
        ("at_least", 4, "4 is out of range: write at least 5"),
        ("more_ms", 5, "5 is out of range: write more than 5 ms"),
        ("more_ms", "7 ms", "'7 ms' is not a number in ms: write 7"),
        ("more_ms", None, "null is not a number in ms"),
        ("at_most", 1.5, "1.5 is not a whole number"),
        ("entries", 5, "5 is not a list"),
        ("entries", [1], "holds 1 entries: write at least 2"),
        ("entries", [1, 2, 3, 4], "holds 4 entries: write at most 3"),
        ("mapping", 5, "5 is not a mapping"),
        ("part", 5, "5 is not a mapping"),
        ("text", 5, "5 is not text"),
        ("text", "A", "'A' does not fit ^[a-z]+$"),
        ("is_on", "on", "'on' is not true or false"),
        ("choice", "on", "'on' is unknown (did you mean 'one'?): choose from one, two"),
        ("loss", 5, "5 is no fraction from 0 to 1: write 0.05 for 5 %"),
        ("loss", 200, "200 is no fraction from 0 to 1"),
        ("loss", -1, "-1 is no fraction from 0 to 1"),
    ],
)
def test_each_kind_of_wrong_value_has_its_cure(key, value, wrong):
    with pytest.raises(RequestError) as refused:
        schema.validate(Mine, {key: value}, "x.yaml", "outer", 0)
    assert str(refused.value) == f"x.yaml: outer[1].{key}: {wrong}"
    assert schema.validate(Mine, {}, "x.yaml").at_least == 6


@pytest.mark.parametrize(
    ("key", "unit"),
    [
        ("rate_mbps", "Mb/s"),
        ("delay_ms", "ms"),
        ("duration_s", "s"),
        ("volume_mb", "MB"),
        ("receive_buffer_kb", "kB"),
        ("distance_m", "m"),
        ("speed_min_mps", "m/s"),
        ("queue_packets", "packets"),
        ("tx_power_dbm", "dBm"),
        ("loss", "fraction from 0 to 1"),
        ("traffic_parallel", ""),
        ("s", ""),  # a whole name is no unit
    ],
)
def test_the_last_word_of_a_key_is_its_unit(key, unit):
    assert schema.unit(key) == unit


@pytest.mark.parametrize(("made", "why"), [("a folder", "is no run's"), ("", "no such file")])
def test_a_path_of_no_scenario_says_what_is_wrong_with_it(tmp_path, made, why):
    path = tmp_path / "mine"
    if made:
        path.mkdir()
    with pytest.raises(
        RequestError, match=f"read scenario {path}: .*{why}. Give a file, or a name"
    ):
        scenario.load(str(path))


BOUNDS = {  # by key: what is too small, the smallest and the largest value, what is too large
    "duration_s": (0, 0.5, 86_400, 86_401),  # not below sample_interval_s
    "sample_interval_s": (0.04, 0.05, 60, 61),
    "rate_scale": (0, 0.01, 100, 101),
    "slow_machine_rate_scale": (0, 0.01, 1, 1.01),
    "seed": (-1, 0, 2**32 - 1, 2**32),
    "minutes": (0, 0.01, 10_000, 10_001),
    "multipath.receive_buffer_kb": (15, 16, 1_000_000, 1_000_001),
    "traffic_parallel": (0, 1, 64, 65),
    "traffic_volume_mb": (0, 0.01, 1_000_000, 1_000_001),
    "traffic.1.parallel": (0, 1, 64, 65),
    "traffic.1.rate_mbps": (0, 0.01, 10_000, 10_001),
    "traffic.1.start_s": (-0.01, 0, 86_400, 86_401),
    "traffic.1.stop_s": (0, 0.01, 86_400, 86_401),
    "traffic.1.on_s": (0, 0.01, 86_400, 86_401),
    "traffic.1.off_s": (0, 0.01, 86_400, 86_401),
    "mobility.speed_min_mps": (0, 0.01, 5, 101),  # not above speed_max_mps
    "mobility.speed_max_mps": (0, 5, 100, 101),
    "mobility.pause_s": (-0.01, 0, 86_400, 86_401),
}


@pytest.mark.parametrize("key", BOUNDS)
def test_a_value_may_be_as_small_and_as_large_as_its_bounds(key):
    def load(value):
        name = "moving_users" if "mobility" in key else "testbed_wifi_lte"
        return scenario.load(name, Overrides(settings=(f"{key}={value}",)))

    too_small, smallest, largest, too_large = BOUNDS[key]
    for value in (smallest, largest):
        load(value)
    for value in (too_small, too_large):
        with pytest.raises(RequestError, match=r"is out of range: write (at|more)"):
            load(value)


@pytest.mark.parametrize(("key", "most"), [("title", 200), ("question", 4000), ("expect", 4000)])
def test_a_text_for_people_may_have_so_many_characters(load_testbed, key, most):
    load_testbed(f"{key}={'x' * most}")
    with pytest.raises(RequestError, match=f"at most {most} characters"):
        load_testbed(f"{key}={'x' * (most + 1)}")


def test_a_key_that_is_no_text_is_named_with_its_place():
    raw = yaml.safe_load(SHARED_PIPE)
    wrong = {"top": raw | {1: 2}, "topology": raw | {"topology": raw["topology"] | {1: 2}}}
    for place, each in wrong.items():
        with pytest.raises(RequestError) as refused:
            from_data(each, "x.yaml")
        assert str(refused.value) == f"x.yaml: {place}: key 1 is not a word: put it in quotes"


def test_all_errors_are_reported_at_once(load_testbed):
    with pytest.raises(RequestError) as caught:
        load_testbed("seed=-1", "duration_s=0", "nonsense=1")
    assert len(str(caught.value).splitlines()) == 3


@pytest.mark.parametrize("value", [5, 1.5, 100])
def test_loss_in_percent_is_refused_with_the_fraction(value):
    raw = yaml.safe_load(SHARED_PIPE)
    raw["topology"]["loss"] = value
    with pytest.raises(
        RequestError, match=f"topology.loss: .*write {value / 100:g} for {value:g} %"
    ):
        from_data(raw, "mine.yaml")


def test_contract_scenario_shared_pipe_is_valid():
    loaded = from_data(yaml.safe_load(SHARED_PIPE), "shared_pipe.yaml")
    topology = loaded.network
    assert topology.multipath == ("mp",)
    assert [flow.cc for flow in scaled_traffic(loaded)] == ["lia", "reno"]


def test_contract_scenario_uneven_paths_is_valid():
    loaded = from_data(yaml.safe_load(UNEVEN_PATHS), "uneven_paths.yaml")
    path1, path2 = (link for link in loaded.network.links if link.id.startswith("path"))
    assert (path1.rate_bps, path1.delay_ns, path1.queue_packets) == (20_000_000, 10_000_000, 100)
    assert (path2.rate_bps, path2.jitter_ns) == (12_000_000, 3_000_000)


def test_a_key_written_twice_is_refused(tmp_path):
    path = tmp_path / "twice.yaml"
    path.write_text("name: a\ntitle: b\nname: c\n")
    with pytest.raises(
        RequestError, match=r"twice\.yaml: line 3 \('name: c'\): key 'name' is written twice"
    ):
        scenario.load(str(path))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name: x\n\ttitle: a", "line 2 ('title: a'): it begins with a tab. Indent with spaces"),
        ("name: x\ntitle: a: b", "line 2 ('title: a: b'): one ':' too many"),
        ("name: x\ntitle a\nseed: 1", "line 3 ('seed: 1'): a key without ':', there or above"),
        (
            "multipath:\n    cc: lia\n  scheduler: linux",
            "line 3 ('scheduler: linux'): wrong indentation",
        ),
        (
            "traffic: [{user: ue1}\nseed: 1",
            "line 2 ('seed: 1'): a ',' is missing, or a '[' not closed",
        ),
        (
            "multipath: {cc: lia\nseed: 1",
            "line 2 ('seed: 1'): a ',' is missing, or a '{' not closed",
        ),
        (
            "traffic: [{user: ue1 kind: bulk}]",
            "line 1 ('traffic: [{user: ue1 kind: bulk}]'): a ',' is missing",
        ),
        ('title: "A" and B', "line 1 ('title: \"A\" and B'): text follows a closing quote"),
        ("title: 'it's'", "line 1 ('title: 'it's''): text follows a closing quote"),
        ('name: "x\nseed: 1\n', "line 3: a quote is not closed"),
        ("name: x\n? {a: 1}\n: b", "line 2 ('? {a: 1}'): a key must be a word"),
    ],
)
def test_a_yaml_error_names_line_and_correction(tmp_path, text, said):
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(RequestError, match=re.escape(f"bad.yaml: {said}")):
        scenario.load(str(path))


@pytest.mark.parametrize(
    "text",
    ["", "- a\n", "name: [\n", "!!python/object/apply:os.system [true]", "1: 2\n", "\tname: x"],
)
def test_a_file_that_is_no_scenario_is_refused(tmp_path, text):
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(RequestError, match=r"bad\.yaml"):
        scenario.load(str(path))


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(RequestError, match=r"did you mean 'testbed_wifi_lte'.*choose from"):
        scenario.load("testbed_wifi_lt")


def test_a_resolved_scenario_loads_as_the_same_experiment(load_testbed):
    first = load_testbed(
        "strategy={name: meter_throttling, params: {cth: 0.5}}",
        "events=[{at_s: 1, target: strategy, value: none}]",
    )
    again = from_data(yaml.safe_load(yaml.safe_dump(resolved(first))), "scenario.yaml")
    assert again == first
    assert experiment(again, "mininet") == experiment(first, "mininet")
    assert resolved(first)["strategy"]["params"]["alpha"] == 0.5  # defaults are written out


@pytest.mark.parametrize(
    "setting", ["seed=2", "topology.multipath=[]", "duration_s=61", "strategy.params.interval_s=3"]
)
def test_settings_that_affect_results_change_the_experiment(load_testbed, setting):
    assert experiment(load_testbed(setting), "sim") != experiment(load_testbed(), "sim")


def test_texts_do_not_change_the_experiment_but_the_engine_does(load_testbed):
    assert experiment(load_testbed("title=Other"), "sim") == experiment(load_testbed(), "sim")
    assert experiment(load_testbed(), "mininet") != experiment(load_testbed(), "sim")


def test_the_digest_of_an_experiment_depends_on_engine_and_settings_and_not_on_texts(load_testbed):
    digest = experiment(load_testbed(), "sim")
    assert experiment(load_testbed("title=another", "expect=another"), "sim") == digest
    assert experiment(load_testbed(), "mininet") != digest
    for change in ("seed=9", "duration_s=7", "traffic=[{user: ue1}]", "multipath.ecn=true"):
        assert experiment(load_testbed(change), "sim") != digest, change


@pytest.mark.parametrize(
    ("settings", "is_slow", "scale"),
    [
        ((), False, 1),
        ((), True, 0.25),
        (("rate_scale=auto",), True, 0.25),
        (("rate_scale=0.5",), True, 0.5),
    ],
)
def test_on_a_slow_machine_rates_are_scaled_unless_the_file_says_how(settings, is_slow, scale):
    settings = ("slow_machine_rate_scale=0.25", *settings)
    overrides = Overrides(settings=settings, slow_machine=is_slow)
    assert scenario.load("two_paths", overrides).rate_scale == scale
    assert scenario.load("two_paths", Overrides(settings=settings[:1])).rate_scale == 1


def test_a_fault_in_a_topology_of_the_lab_is_no_error_of_the_user(monkeypatch):
    def build(*_, **__):
        raise KeyError("a fault")

    monkeypatch.setattr(TOPOLOGIES["shared_bottleneck"], "build", build)
    with pytest.raises(KeyError, match="a fault"):
        from_data(yaml.safe_load(SHARED_PIPE), "shared_pipe.yaml")


def test_another_strategy_drops_the_parameters_of_the_files_own(load_testbed):
    raw = yaml.safe_load(UNEVEN_PATHS)
    assert from_data(raw, "x", Overrides(strategy="none")).strategy.name == "none"


@given(st.sampled_from([0.1, 0.25, 1, 3]))
def test_rate_scale_multiplies_every_rate_once(scale):
    kind = "traffic.1={user: ue1, kind: rate, rate_mbps: 8}"
    whole = scenario.load("testbed_wifi_lte", Overrides(settings=("rate_scale=1", kind)))
    part = scenario.load("testbed_wifi_lte", Overrides(settings=(f"rate_scale={scale}", kind)))
    for before, after in zip(whole.network.cells, part.network.cells, strict=True):
        assert [s.rate_bps for s in after.stations] == [
            pytest.approx(s.rate_bps * scale) for s in before.stations
        ]
    assert scaled_traffic(part)[0].rate_mbps == 8 * scale
    assert part.traffic[0].rate_mbps == 8


def test_loss_acts_in_the_data_direction():
    raw = yaml.safe_load(SHARED_PIPE) | {
        "topology": {"kind": "parallel_paths", "paths": [{"rate_mbps": 9, "loss": 0.1}]}
    }
    down = from_data(raw | {"traffic": [{"user": "ue1"}]}, "x")
    up = from_data(raw | {"traffic": [{"user": "ue1", "direction": "up"}]}, "x")
    losses = [
        next(
            (link.loss_ppm, link.loss_back_ppm) for link in each.network.links if link.id == "path1"
        )
        for each in (down, up)
    ]
    assert losses == [(100_000, 0), (0, 100_000)]


def test_a_list_entry_is_set_by_number_from_1_or_by_id(load_testbed):
    assert (
        load_testbed("topology.users.ue3.wifi_mbps=7")
        == load_testbed("topology.users.3.wifi_mbps=7")
        != load_testbed()
    )
    with pytest.raises(RequestError, match="no entry '0': choose from ue1, ue2, ue3, ue4"):
        load_testbed("topology.users.0.wifi_mbps=7")


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("{rate_mbps: 5, delay_ms: 10, jitter_ms: 10.5}", "write at most the delay"),
        ("{rate_mbps: 5, delay_ms: 0, jitter_ms: 1}", "write at most the delay"),
        ("{rate_mbps: 5, loss: 0.0000004}", "write 0 or 0.000001"),
        ("{rate_mbps: 5, loss_both: 9.0e-7}", "write 0 or 0.000001"),
    ],
)
def test_a_jitter_above_the_delay_and_a_loss_that_would_be_none_are_refused(path, said):
    raw = {"topology": {"kind": "parallel_paths", "paths": [yaml.safe_load(path)]}}
    raw |= {"name": "x", "title": "X", "traffic": [{"user": "all"}]}
    with pytest.raises(RequestError, match=said):
        from_data(raw, "x.yaml")


def test_a_flip_leaves_the_jitter_within_the_delay_and_a_loss_above_none():
    raw = {"name": "x", "title": "X", "traffic": [{"user": "all"}]}
    paths = [{"rate_mbps": 5, "delay_ms": 10, "jitter_ms": 4}]
    loaded = from_data(raw | {"topology": {"kind": "parallel_paths", "paths": paths}}, "x.yaml")
    for target, least in (("link.path1.delay_ms", 4), ("link.path1.loss", 1e-6)):
        assert check_flip(loaded, target, least) == least
        with pytest.raises(RequestError):
            check_flip(loaded, target, least / 2)


def test_what_a_scenario_must_have_is_shown_by_an_example_that_is_accepted():
    raw = {"topology": {"kind": "parallel_paths", "paths": [{"rate_mbps": 5}]}}
    with pytest.raises(RequestError) as found:
        from_data(raw, "x.yaml")
    examples = re.findall(r"is missing. Add it, for example '(.*)'", str(found.value))
    assert len(examples) == 3
    written = {**raw, **yaml.safe_load("\n".join(examples))}
    assert from_data(written, "x.yaml").traffic[0].user == "ue1"
