"""The numbers of result.json that say what people notice: how long transfers take, and how good
videos and calls are. `lab.metrics` declares one metric for each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

FLOWS, VIDEO, CALL = "flows", "video", "call"  # sections, which only runs with such traffic have
SECTIONS = (FLOWS, VIDEO, CALL)


class Row(NamedTuple):
    """The fields of a `lab.metrics.Metric`. `key` is the place of its number in `section`, with
    dots."""

    section: str
    key: str
    label: str
    unit: str
    meaning: str
    better: int = -1


COMPLETION = "Half / 95 % / 99 % of the transfers that were complete took at most this time."
SLOWDOWN = (
    "Half / 99 % of the complete transfers had at most this slowdown: the completion time over "
    "the time that the user's fastest path would have taken alone."
)
OF_A_SIZE = "The same of one class of sizes: up to 100 kB, up to 10 MB, and larger."
ONE_WAY = "Half / 95 % / 99 % of the datagrams that arrived took at most this time."

# In samples; see `lab.run.felt`
WAITED = (
    "Mean completion time of what was complete in the interval: pages, answers, files and flows. "
    "Missing if nothing was."
)
MOS_NOW = (
    "MOS of the user's worst call in its worse direction, from 1 to 4.5, over 5 s. The latest "
    "second is left out, because its datagrams may still be on their way."
)
STALLED = (
    "The fraction of the interval in which the user's videos did not play; of several, the mean."
)


def rows() -> Iterator[Row]:
    yield from _of_transfers()
    yield from _of_videos()
    yield from _of_calls()


def _of_transfers() -> Iterator[Row]:
    for p in (50, 95, 99):
        yield Row(FLOWS, f"fct_p{p}_s", f"completion time, {p} % within", "s", COMPLETION)
    for p in (50, 99):
        yield Row(FLOWS, f"slowdown_p{p}", f"slowdown, {p} % at most", "", SLOWDOWN)
    for size, words in (
        ("small", "up to 100 kB"),
        ("medium", "up to 10 MB"),
        ("large", "above 10 MB"),
    ):
        label = f"slowdown of transfers {words}, 99 % at most"
        yield Row(FLOWS, f"by_size.{size}.slowdown_p99", label, "", OF_A_SIZE)


def _of_videos() -> Iterator[Row]:
    mean, still = "The mean bitrate of a video's chunks.", "How long a video stood still."
    yield Row(VIDEO, "bitrate_mbps", "videos: bitrate", "Mb/s", mean, 1)
    yield Row(VIDEO, "startup_s", "videos: time until they play", "s", "Until a chunk is there.")
    yield Row(VIDEO, "stalls", "videos: pauses", "", "How often a video stood still.")
    yield Row(VIDEO, "stall_s", "videos: time they stood still", "s", still)
    label = "videos: changes of the bitrate"
    yield Row(VIDEO, "switches", label, "", "Between two of its chunks.")


def _of_calls() -> Iterator[Row]:
    sound = (
        "How good calls sound in their worse direction, from 1 to 4.5 (the E-model of ITU-T G.107)."
    )
    yield Row(CALL, "mos", "calls: MOS", "", sound, 1)
    worst = "The lowest of all windows of 5 s and both directions."
    yield Row(CALL, "mos_worst", "calls: MOS of the worst 5 s", "", worst, 1)
    for p in (50, 95, 99):
        yield Row(CALL, f"delay_p{p}_ms", f"calls: delay, {p} % within", "ms", ONE_WAY)
    change = "The mean difference between the delays of two datagrams in a row."
    yield Row(CALL, "jitter_ms", "calls: jitter", "ms", change)
    yield Row(CALL, "loss", "calls: loss", "", "The fraction of datagrams that did not arrive.")
    late = "The fraction of datagrams that arrived too late to be played."
    yield Row(CALL, "late", "calls: too late", "", late)
