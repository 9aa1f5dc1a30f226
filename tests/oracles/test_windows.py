"""Congestion windows: the chain of the forecast by Monte Carlo, Reno in the simulator by a closed
form."""

from __future__ import annotations

import random

import numpy as np
import pytest

from controller.strategies.subflow_selection.forecast import SubflowChain, mean_windows

from .simulated import one_path

pytestmark = pytest.mark.oracle

CASES = range(200)
STEPS, FORGOTTEN = 300_000, 20_000
LOSSES = 300  # in a run
SEGMENT_BITS = 1420 * 8


def random_walks(losses, largest, steps, forgotten):
    """Mean window over time of one random walk for each loss.

    A step is a segment. A delivered one adds 1 to the window with probability 1/w, a lost one
    halves it; half a segment is rounded up or down with equal probability. An RTT has w steps, so
    the mean over time weights each step with 1/w.
    """
    rng = np.random.default_rng(1)
    w = np.minimum(8.0, largest)
    rounds = np.zeros(len(losses))
    for step in range(steps):
        if step >= forgotten:
            rounds += 1 / w
        lost, grows, up = rng.random((3, len(losses)))
        half = np.maximum(2.0, np.floor(w / 2 + (up < 0.5) * 0.5))
        w = np.where(
            lost < losses, half, np.minimum(largest, w + (grows < 1 / w) * (lost >= losses))
        )
    return (steps - forgotten) / rounds


def test_the_mean_window_of_the_forecast(truth):
    rng = random.Random(7000)
    losses = np.array([10 ** rng.uniform(-2.5, -1.0) for _ in CASES])
    largest = np.array([float(rng.randint(6, 64)) for _ in CASES])
    walked = random_walks(losses, largest, STEPS, FORGOTTEN)
    chain = np.array(
        [
            mean_windows([SubflowChain(int(most), loss, ((0.05, 1.0),), 0.05)])[0]
            for loss, most in zip(losses, largest, strict=True)
        ]
    )
    worst = np.abs(chain / walked - 1)
    failed = int((worst > 0.05).sum())
    text = f"{worst.max():.1%} off"
    truth("mean window of the DTMC chain of one path", len(worst), failed, text, "<= 5 %")
    assert not failed


def test_the_rate_of_reno_under_random_loss(truth):
    """The mean window is sqrt(3 / (2 p)) (Mathis et al. 1997, one ACK per segment, no timeout)."""
    ratios = []
    for seed in CASES:
        rng = random.Random(8000 + seed)
        loss, delay_ms = 10 ** rng.uniform(-3.0, -2.0), rng.randint(10, 80)
        path = {"rate_mbps": 1000, "delay_ms": delay_ms, "loss": round(loss, 6)}
        window = (1.5 / path["loss"]) ** 0.5
        losses_per_s = path["loss"] * window / (2 * delay_ms / 1000)
        mbps = one_path(path, "reno", round(LOSSES / losses_per_s), seed + 1)
        ratios.append(mbps * 1e6 * 2 * delay_ms / 1000 / SEGMENT_BITS / window)
    failed = sum(not 0.85 <= each <= 1.15 for each in ratios)
    text = f"{min(ratios):.2f} to {max(ratios):.2f} of the closed form"
    truth("simulated rate of Reno under random loss", len(ratios), failed, text, "0.85 to 1.15")
    assert not failed
