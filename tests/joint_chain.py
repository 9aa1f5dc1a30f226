"""One joint Markov chain of two BALIA windows, to test the chains per subflow.

States are pairs (w_1, w_2). A step is one segment, of subflow i with probability q_i proportional
to w_i / mu_i (DTMC selection, eq (11), which lacks the q_i). The RTT of that subflow is random,
that of the other is its mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from controller.strategies.subflow_selection.balia import SMALLEST_WINDOW
from controller.strategies.subflow_selection.forecast import Field, Walk, climb, fall

State = tuple[int, int]


def mean_windows(walks: Sequence[Walk]) -> tuple[float, ...]:
    """E[w] of both in segments. There are (W - 1)^2 states, so W must be small."""
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
    """Segments per second of each subflow."""
    return [w / walk.mean_rtt_s for w, walk in zip(state, walks, strict=True)]


def row(state: State, walks: Sequence[Walk]) -> dict[State, float]:
    """Probability of each next state."""
    found: dict[State, float] = {}
    sending = rates(state, walks)
    for n, walk in enumerate(walks):
        others = Field(sending[1 - n], sending[1 - n])
        for to, chance in one_row(state[n], walk, others).items():
            after = (to, state[1]) if n == 0 else (state[0], to)
            found[after] = found.get(after, 0.0) + chance * sending[n] / sum(sending)
    return found


def one_row(window: int, walk: Walk, others: Field) -> dict[int, float]:
    """Probability of each next window of one subflow."""
    found = dict(fall(window, walk, others))
    up = climb(window, walk, others) if window < walk.largest else 0.0
    found[window + 1] = found.get(window + 1, 0.0) + up
    found[window] = found.get(window, 0.0) + 1 - walk.loss - up
    return {to: chance for to, chance in found.items() if chance}


def stationary(matrix: np.ndarray) -> np.ndarray:
    size = len(matrix)
    equations = np.vstack([matrix.T - np.eye(size), np.ones(size)])
    return np.linalg.lstsq(equations, np.append(np.zeros(size), 1), rcond=None)[0]
