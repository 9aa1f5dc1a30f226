"""Compute two BALIA windows in one joint Markov chain, to test the chain per subflow.

States are pairs (w_1, w_2). A step is one segment, of subflow i with probability q_i proportional
to w_i / mu_i (DTMC selection, eq (11), with the q_i that are missing there); its own round trip is
random, the other's is its mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from controller.strategies.subflow_selection.forecast import (
    SMALLEST_WINDOW,
    Field,
    Walk,
    climb,
    fall,
)

State = tuple[int, int]


def mean_windows(walks: Sequence[Walk]) -> tuple[float, ...]:
    """Return E[w] of both in segments; there are (W - 1)^2 states, so W must be small."""
    states = list(product(*(range(int(SMALLEST_WINDOW), walk.largest + 1) for walk in walks)))
    place = {state: n for n, state in enumerate(states)}
    matrix = np.zeros((len(states), len(states)))
    for state in states:
        for to, chance in row(state, walks).items():
            matrix[place[state], place[to]] += chance
    assert np.allclose(matrix.sum(axis=1), 1)
    shares = stationary(matrix) / np.array([sum(rates(state, walks)) for state in states])
    shares /= shares.sum()
    return tuple(
        float(sum(share * state[n] for share, state in zip(shares, states, strict=True)))
        for n in range(len(walks))
    )


def rates(state: State, walks: Sequence[Walk]) -> list[float]:
    """Return the segments per second of every subflow."""
    return [w / walk.mean_rtt_s for w, walk in zip(state, walks, strict=True)]


def row(state: State, walks: Sequence[Walk]) -> dict[State, float]:
    """Return the probabilities of the next states."""
    found: dict[State, float] = {}
    sending = rates(state, walks)
    for n, walk in enumerate(walks):
        others = Field(sending[1 - n], sending[1 - n])
        for to, chance in one_row(state[n], walk, others).items():
            after = (to, state[1]) if n == 0 else (state[0], to)
            found[after] = found.get(after, 0.0) + chance * sending[n] / sum(sending)
    return found


def one_row(window: int, walk: Walk, others: Field) -> dict[int, float]:
    """Return the probabilities of one subflow's next windows."""
    found = dict(fall(window, walk, others))
    up = climb(window, walk, others) if window < walk.largest else 0.0
    found[window + 1] = found.get(window + 1, 0.0) + up
    found[window] = found.get(window, 0.0) + 1 - walk.loss - up
    return {to: chance for to, chance in found.items() if chance}


def stationary(matrix: np.ndarray) -> np.ndarray:
    """Return the stationary distribution."""
    size = len(matrix)
    equations = np.vstack([matrix.T - np.eye(size), np.ones(size)])
    return np.linalg.lstsq(equations, np.append(np.zeros(size), 1), rcond=None)[0]
