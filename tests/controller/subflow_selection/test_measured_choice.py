"""The forecast for today's TCP and the closed loop, from observations to commands."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controller.command import SetBackup
from controller.observation import Arc, Observation, Subflow
from controller.strategies.subflow_selection.strategy import SubflowSelection

SECOND, MBPS, FRAME_BITS = 1_000_000_000, 1_000_000, 1514 * 8
PATHS = {1: (10, 0.005, 0.0), 2: (10, 0.01, 0.0), 3: (10, 0.2, 0.02)}  # Mb/s, delay [s], loss
ARCS = (
    Arc("server", "10.0.0.1", "s1", 1000 * MBPS),
    *(Arc(f"path{n}", "s1", f"p{n}", mbps * MBPS, delay_s=delay_s, loss=loss)
      for n, (mbps, delay_s, loss) in PATHS.items()),
    *(Arc(f"access{n}", f"p{n}", f"10.{n}.0.1", 1000 * MBPS) for n in PATHS),
)  # fmt: skip


class Network:
    """Subflows that carry `mbps(numbers in use)` in total, and confirm each command."""

    def __init__(self, mbps, buffer_bytes: int, **params: object) -> None:
        self.mbps, self.buffer_bytes, self.t_s = mbps, buffer_bytes, 0
        self.strategy = SubflowSelection(SubflowSelection.Params(**params))
        self.subflows = {
            n: Subflow("c", n, "ue1", "", "10.0.0.1:5001", f"10.{n}.0.1:4000",
                       path=("s1", f"p{n}"), rate_bps=0, sent_packets=0)
            for n in PATHS
        }  # fmt: skip
        self.texts: list[str] = []

    @property
    def used(self) -> set[int]:
        return {n for n, each in self.subflows.items() if not each.backup}

    def run(self, seconds: int) -> Network:
        for _ in range(seconds):
            self.t_s += 1
            used = self.used
            rate_bps = round(self.mbps(used) * MBPS / len(used))
            for n in used:
                sent = self.subflows[n].sent_packets + rate_bps // FRAME_BITS
                self.subflows[n] = replace(self.subflows[n], rate_bps=rate_bps, sent_packets=sent)
            subflows = tuple(self.subflows.values())
            seen = Observation(
                self.t_s * SECOND,
                subflows=subflows,
                arcs=ARCS,
                receive_buffer_bytes=self.buffer_bytes,
            )
            for each in self.strategy.decide(seen):
                self.texts.append(each.reason)
                if isinstance(each.command, SetBackup):
                    n = each.command.subflow[1]
                    self.subflows[n] = replace(self.subflows[n], backup=each.command.backup)
        return self


IMPROVED = {"forecast": "today", "loop": "closed", "interval_s": 1}


def test_the_papers_form_is_the_default():
    params = SubflowSelection.Params()
    assert (params.forecast, params.loop) == ("paper", "open")


TRIED = "trial of subflows 1, 2:"  # the set without the long path


@pytest.mark.parametrize(
    ("buffer_bytes", "said"), [(50_000, "subflows 1, 2 are measured"), (1_500_000, TRIED)]
)
def test_a_small_buffer_makes_the_loop_try_the_set_without_the_long_path(buffer_bytes, said):
    """The loop begins with the set whose forecast is twice that of all paths."""
    network = Network(lambda used: 6 if 3 in used else 15, buffer_bytes, **IMPROVED).run(30)
    assert network.used == {1, 2}
    assert any(said in text for text in network.texts)
    tried_all = any("trial of subflows 1, 2, 3:" in text for text in network.texts)
    assert tried_all == (buffer_bytes == 50_000)


@pytest.mark.parametrize("buffer_bytes", [50_000, 1_500_000])
def test_the_trial_ends_if_the_forecast_was_wrong(buffer_bytes):
    """The set that the forecast prefers carries less than all paths."""
    network = Network(lambda used: 6 if 3 in used else 3, buffer_bytes, **IMPROVED).run(30)
    assert network.used == {1, 2, 3}
    assert any(TRIED in text for text in network.texts) == (buffer_bytes > 50_000)


def test_without_a_promise_of_more_nothing_is_tried():
    network = Network(lambda used: 21 if len(used) == 3 else 1, 4_000_000, **IMPROVED).run(60)
    assert not any("trial" in text for text in network.texts)


@pytest.mark.parametrize(("buffer_bytes", "used"), [(50_000, {1, 2}), (4_000_000, {1, 2, 3})])
def test_the_forecast_for_today_decides_alone_in_the_open_loop(buffer_bytes, used):
    network = Network(lambda _: 20, buffer_bytes, forecast="today").run(3)
    assert network.used == used


def test_the_closed_loop_can_try_the_papers_choice():
    network = Network(lambda used: 10 if 3 in used else 15, 4_000_000, loop="closed", rl_max_kb=12)
    paper = Network(lambda _: 10, 4_000_000, rl_max_kb=12).run(2).used
    assert 3 not in paper
    assert network.run(50).used == paper
