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
from controller.strategies.subflow_selection.forecast import (
    OtherRates,
    SubflowChain,
    growth_probability,
    windows_after_loss,
)

State = tuple[int, int]


def mean_windows(chains: Sequence[SubflowChain]) -> tuple[float, ...]:
    """E[w] of both in segments. There are (W - 1)^2 states, so W must be small."""
    states = list(product(*(range(int(SMALLEST_WINDOW), chain.largest + 1) for chain in chains)))
    place = {state: n for n, state in enumerate(states)}
    matrix = np.zeros((len(states), len(states)))
    for state in states:
        for to, chance in row(state, chains).items():
            matrix[place[state], place[to]] += chance
    assert np.allclose(matrix.sum(axis=1), 1)
    shares = stationary(matrix) / np.array([sum(rates(state, chains)) for state in states])
    shares /= shares.sum()
    return tuple(
        float(sum(share * state[n] for share, state in zip(shares, states, strict=True)))
        for n in range(len(chains))
    )


def rates(state: State, chains: Sequence[SubflowChain]) -> list[float]:
    """Segments per second of each subflow."""
    return [w / chain.mean_rtt_s for w, chain in zip(state, chains, strict=True)]


def row(state: State, chains: Sequence[SubflowChain]) -> dict[State, float]:
    """Probability of each next state."""
    found: dict[State, float] = {}
    sending = rates(state, chains)
    for n, chain in enumerate(chains):
        others = OtherRates(sending[1 - n], sending[1 - n])
        for to, chance in one_row(state[n], chain, others).items():
            after = (to, state[1]) if n == 0 else (state[0], to)
            found[after] = found.get(after, 0.0) + chance * sending[n] / sum(sending)
    return found


def one_row(window: int, chain: SubflowChain, others: OtherRates) -> dict[int, float]:
    """Probability of each next window of one subflow."""
    found = dict(windows_after_loss(window, chain, others))
    up = growth_probability(window, chain, others) if window < chain.largest else 0.0
    found[window + 1] = found.get(window + 1, 0.0) + up
    found[window] = found.get(window, 0.0) + 1 - chain.loss - up
    return {to: chance for to, chance in found.items() if chance}


def stationary(matrix: np.ndarray) -> np.ndarray:
    size = len(matrix)
    equations = np.vstack([matrix.T - np.eye(size), np.ones(size)])
    return np.linalg.lstsq(equations, np.append(np.zeros(size), 1), rcond=None)[0]
