"""A video that adapts its bitrate: what its viewer sees, alone and in simulated runs."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from lab.engines import registry
from lab.errors import RequestError
from lab.results.compare import numbers
from lab.run.engine import Options
from lab.run.recorder import Recorder
from lab.run.report import VideoReport
from lab.run.runner import run
from lab.run.transfers import videos_section
from lab.scenario import loading
from lab.scenario.clients import NEVER_S, ClientSpec, make

BITRATES = (1.0, 2.0, 4.0, 8.0)


def video(**more):
    values = {"kind": "video", "seed": "1", "end_s": None, "request_bytes": 300}
    values |= {"answer_bytes": 1, "think_s": 1.0, "requests_per_s": None}
    values |= {"bitrates_mbps": BITRATES, "chunk_s": 4.0, "buffer_s": 30.0, "adapts_by": "rate"}
    return make(ClientSpec(**(values | more)))


def watched(client, until_s, mbps):
    """Play a video over a link whose rate at a time is `mbps(t)`; return the bitrates asked for."""
    asks, now_s, chosen = client.begin(0.0), 0.0, []
    while now_s < until_s:
        if asks:
            (ask,) = asks
            chosen.append(ask.answer_bytes * 8 / 1e6 / 4)
            now_s += ask.answer_bytes * 8 / 1e6 / mbps(now_s)
            asks = client.answered(now_s, ask)
        else:
            assert client.wake_s < NEVER_S
            now_s, client.wake_s = client.wake_s, NEVER_S
            asks = client.woke(now_s)
    return chosen


@pytest.mark.parametrize("scale", [1, 0.25])
def test_by_rate_it_takes_what_four_fifths_of_the_rate_carry(scale):
    for mbps, best in ((1.5, 1.0), (4.9, 2.0), (5.1, 4.0), (50, 8.0)):
        client = video(bytes_per_kb=1000 * scale)
        chosen = watched(client, 100, lambda _, mbps=mbps: mbps * scale)
        others = [best] * (len(chosen) - 1)
        assert [each / scale for each in chosen] == pytest.approx([1.0, *others])
        assert client.quality(100.0).switches == (best != 1.0)


@pytest.mark.parametrize("seed", range(3))
def test_by_buffer_it_takes_the_lowest_near_an_empty_buffer_and_the_highest_near_a_full_one(seed):
    chance = random.Random(seed)
    client = video(adapts_by="buffer")
    for level_s in [chance.uniform(0, 30) for _ in range(200)]:
        client._level_s, client._chosen = level_s, [chance.randrange(4)]
        n, last = client._next_bitrate(), client._chosen[0]
        mapped = 1 + (level_s - 11.25) / (22 - 11.25) * 7
        if level_s <= 90 / 240 * 30:
            assert n == 0
        elif level_s >= 22:
            assert n == 3
        elif n > last:
            assert BITRATES[last + 1] <= mapped
            assert BITRATES[n] < mapped
        elif n < last:
            assert BITRATES[last - 1] >= mapped
            assert BITRATES[n] > mapped


def test_the_buffer_keeps_its_size_and_the_video_plays_without_a_pause():
    client = video(adapts_by="buffer")
    watched(client, 200, lambda _: 50)
    quality = client.quality(200.0)
    assert client._level_s <= 30
    assert (quality.stalls, quality.stall_s) == (0, 0)
    assert quality.startup_s == pytest.approx(4 / 50)
    assert quality.bitrate_mbps > 6


def test_a_video_stands_still_while_its_buffer_is_empty():
    client = video()
    (ask,) = client.begin(1.0)
    client.answered(3.0, ask)  # 4 s of video
    assert client.quality(6.5)[1:4] == (2.0, 0, 0.0)
    assert client.quality(9.0)[1:4] == (2.0, 1, 2.0)
    client.answered(10.0, ask)
    assert client.quality(12.0)[1:4] == (2.0, 1, 3.0)
    assert client.quality(15.0)[1:4] == (2.0, 2, 4.0)


def test_a_video_that_never_began_has_waited_and_not_stood_still():
    client = video()
    client.begin(1.0)
    assert client.quality(9.0) == (None, 8.0, 0, 0.0, 0)


def test_switches_and_the_mean_bitrate_are_those_of_the_chunks_that_arrived():
    client = video()
    chosen = watched(client, 120, lambda t: 20 if t % 40 < 20 else 2)
    arrived = chosen[: len(client.take_done())]
    quality = client.quality(120.0)
    assert quality.bitrate_mbps == pytest.approx(sum(arrived) / len(arrived))
    assert quality.switches == sum(a != b for a, b in pairwise(arrived)) > 1


def test_means_are_those_of_all_videos():
    first = VideoReport("ue1-1", "ue1", 4.0, 1.0, 2, 5.0, 3)
    second = VideoReport("ue2-1", "ue2", None, 3.0, 0, 0.0, 0)
    found = videos_section([first, second])
    wanted = {"count": 2, "bitrate_mbps": 4.0, "startup_s": 2.0, "stall_s": 2.5}
    assert {key: found[key] for key in wanted} == wanted
    assert videos_section([]) == {}


def scenario(**keys):
    raw = {"name": "some", "title": "Some", "duration_s": 30}
    raw["topology"] = {"kind": "parallel_paths", "paths": [{"rate_mbps": 6, "delay_ms": 10}]}
    entry = {"user": "ue1", "kind": "video"}
    raw["rate_scale"] = keys.pop("rate_scale", 1)
    return loading.from_data(raw | {"traffic": [entry | keys]}, "test")


@pytest.mark.parametrize("rate_scale", [1, 0.5])
@pytest.mark.parametrize("adapts_by", ["rate", "buffer"])
def test_a_run_says_what_its_viewers_saw(tmp_path, adapts_by, rate_scale):
    made = scenario(bitrates_mbps=[*BITRATES], adapts_by=adapts_by, rate_scale=rate_scale)
    recorder = Recorder(tmp_path, made, "sim")
    done = run(made, registry.create("sim", Options(speed=0.0)), recorder)
    assert not done.error, done.error
    (one,) = done.result["video"]["videos"]
    assert one["user"] == "ue1"
    assert (one["stalls"], one["stall_s"]) == (0, 0)
    assert 1.5 < one["bitrate_mbps"] < 6
    assert done.result["flows"]["by_kind"]["video"]["completed"] > 5
    found = numbers(done.result)
    assert found["video.bitrate_mbps"] == one["bitrate_mbps"]
    assert found["video.stall_s"] == 0


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"bitrates_mbps": [2, 1]}, "bitrates_mbps must grow"),
        ({"bitrates_mbps": []}, "bitrates_mbps"),
        ({"buffer_s": 7}, "less than two chunks"),
        ({"direction": "up"}, "leave out direction"),
        ({"kind": "bulk", "chunk_s": 2}, "chunk_s belongs to kind 'video', not 'bulk'"),
    ],
)
def test_a_video_that_cannot_play_is_refused(keys, said):
    with pytest.raises(RequestError, match=said):
        scenario(**keys)
