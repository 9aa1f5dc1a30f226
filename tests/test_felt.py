"""What users notice while a run goes on: the samples agree with the events and the result."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from statistics import fmean

import pytest

from dashboard import charts
from dashboard.finished import verdict
from dashboard.view import noticing
from lab.engines import registry
from lab.frame import Frame, UserSample
from lab.run import felt
from lab.run.calls import mos
from lab.run.engine import Options
from lab.run.felt import Felt
from lab.run.recorder import Recorder
from lab.run.report import VideoReport
from lab.run.runner import run
from lab.scenario import loading
from lab.scenario.flows import Act, CallSpec, Flow

EVERY_S = 0.5
TOPOLOGY = {
    "kind": "shared_bottleneck",
    "users": [{"id": "ue1"}, {"id": "ue2"}],
    "rate_mbps": 4,
    "delay_ms": 20,
}


def simulated(folder, traffic, seed=1, **more):
    document = {
        "name": "felt",
        "title": "Felt",
        "topology": TOPOLOGY,
        "traffic": traffic,
        "duration_s": 30,
        "seed": seed,
        "sample_interval_s": EVERY_S,
    }
    scenario = loading.from_data(document | more, "felt.yaml")
    done = run(
        scenario, registry.create("sim", Options(speed=0.0)), Recorder(folder, scenario, "sim")
    )
    assert not done.error, done.error
    lines, events = (
        [json.loads(each) for each in (folder / name).read_text().splitlines()]
        for name in ("samples.jsonl", "events.jsonl")
    )
    return scenario, lines, events, done.result


def values(lines, user, name):
    return {line["t"]: line["user"].get(user, {}).get(name) for line in lines}


@pytest.mark.parametrize("seed", [1, 2])
def test_a_sample_has_the_mean_of_what_was_complete_since_the_last_one(seed, tmp_path):
    web = {"user": "ue1", "kind": "web", "sizes": [[5, 0.5], [50, 1]], "objects": 5, "think_s": 0.3}
    flows = {"user": "ue2", "kind": "workload", "sizes": [[20, 0.5], [200, 1]], "rate_mbps": 1.5}
    _, lines, events, _ = simulated(tmp_path, [web, flows], seed)
    complete = [each for each in events if each["kind"] == "completion"]
    assert len({each["user"] for each in complete}) == 2
    for user in ("ue1", "ue2"):
        for t, waited_s in values(lines, user, "waited_s").items():
            own = [
                each["completion_s"]
                for each in complete
                if each["user"] == user and t - EVERY_S < each["t"] <= t
            ]
            assert waited_s == (pytest.approx(fmean(own), abs=2e-3) if own else None)


def test_what_a_video_stands_still_adds_up_to_the_result(tmp_path):
    cut = [("link.bottleneck.up", 12, False), ("link.bottleneck.up", 24, True)]
    events = [{"at_s": at_s, "target": target, "value": value} for target, at_s, value in cut]
    video = {"user": "ue1", "kind": "video", "chunk_s": 1, "buffer_s": 4}
    _, lines, _, result = simulated(tmp_path, [video], events=events)
    found = values(lines, "ue1", "stalled")
    (one,) = result["video"]["videos"]
    assert one["stall_s"] > 3
    assert sum(found.values()) * EVERY_S == pytest.approx(
        one["startup_s"] + one["stall_s"], abs=0.01
    )
    assert found[20.0] == 1
    assert found[10.0] == 0


def test_a_call_beside_a_download_sounds_worse_and_its_worst_is_that_of_the_result(tmp_path):
    traffic = [{"user": "ue1", "kind": "call"}, {"user": "ue2", "kind": "bulk", "start_s": 12}]
    _, lines, _, result = simulated(tmp_path, traffic)
    found = values(lines, "ue1", "mos")
    assert found[0.5] is None  # nothing has had time to arrive
    early = [score for t, score in found.items() if 4 <= t <= 12]
    assert min(early) > 4.2
    late = [score for t, score in found.items() if t >= 20]
    assert max(late) < min(early) - 0.5
    assert min(late) == pytest.approx(result["call"]["mos_worst"], abs=0.3)
    assert all(value is None for value in values(lines, "ue2", "mos").values())


def test_samples_without_such_traffic_have_none_of_the_fields(tmp_path):
    _, lines, _, _ = simulated(tmp_path, [{"user": "all", "kind": "bulk"}], duration_s=5)
    assert not any(set(user) & set(felt.FIELDS) for line in lines for user in line["user"].values())


@pytest.mark.parametrize("seed", range(4))
def test_the_score_of_now_is_that_of_the_worse_direction_in_the_last_window(seed):
    chance = random.Random(seed)
    packet_s = chance.choice([0.01, 0.02, 0.06])
    call = CallSpec(172, packet_s, 60.0)
    down = Flow("ue1-1", "ue1", "down", "reno", 1, None, "udp", kind="call", call=call)
    up = replace(down, id="ue1-2", direction="up")
    start_s, worse_ms = chance.uniform(0, 3), chance.uniform(100, 300)
    asked = []

    def heard(flow, numbers):
        asked.append(numbers)
        return [worse_ms if flow is up else 10.0] * len(numbers)

    made = Felt([Act(start_s, "start", each) for each in (down, up)], heard)
    frame = made.added_to(Frame(start_s + 20, user={"ue1": UserSample(1.0)}), ())
    expected = mos(packet_s * 1000 + worse_ms + 60, 0)
    assert frame.user["ue1"].mos == pytest.approx(expected, abs=1e-3)
    assert len(asked[0]) == round(5 / packet_s)
    assert asked[0].stop == pytest.approx(19 / packet_s, abs=1.01)  # the last second is left out


def test_after_its_end_a_call_has_no_score():
    call = CallSpec(172, 0.02, 60.0)
    flow = Flow("ue1-1", "ue1", "down", "reno", 1, None, "udp", kind="call", call=call)
    acts = [Act(0, "start", flow), Act(10, "stop", flow)]
    made = Felt(acts, lambda _, numbers: [1.0] * len(numbers))
    users = {"ue1": UserSample(1.0)}
    assert made.added_to(Frame(10.5, user=users), ()).user["ue1"].mos is not None
    assert made.added_to(Frame(11.5, user=users), ()).user["ue1"].mos is None


def test_two_videos_of_a_user_have_one_mean():
    made = Felt((), lambda *_: [])
    frame = Frame(2.0, user={"ue1": UserSample(1.0)})
    videos = [
        VideoReport(name, "ue1", 1.0, startup, 1, stall, 0)
        for name, startup, stall in (("ue1-1", 0.5, 0.5), ("ue1-2", 0.0, 0.0))
    ]
    assert made.added_to(frame, videos).user["ue1"].stalled == 0.25
    assert made.added_to(replace(frame, t=4.0), videos).user["ue1"].stalled == 0


def test_charts_have_lines_for_those_who_notice_something(tmp_path):
    traffic = [{"user": "ue1", "kind": "call"}, {"user": "all", "kind": "rpc", "answer_kb": 20}]
    scenario, lines, _, result = simulated(tmp_path, traffic, duration_s=8)
    assert noticing(scenario) == {"mos": ("ue1",), "waited_s": ("ue1", "ue2")}
    about = charts.About(users=("ue1", "ue2"), noticing=noticing(scenario))
    drawn = {
        each.name: [line.key[1] for line in each.lines] for each in charts.of_run(lines, about)
    }
    assert drawn["calls"] == ["ue1"]
    assert drawn["waits"] == ["ue1", "ue2"]
    assert "videos" not in drawn
    text = verdict(result)
    assert text.startswith("Calls had a MOS of 4.")
    assert "Half of what users waited for took at most 0." in text
