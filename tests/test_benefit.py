"""Ben(M) of MPTCP-LA, eq (1), on vectors."""

import math

import numpy as np
import pytest

from papers.mptcp_la_benefit import benefit


@pytest.mark.parametrize(
    ("single", "multipath", "expected"),
    [
        ((50, 50), 94, 0.88),
        ((50, 50), 50, 0),
        ((50, 50), 45, -0.10),
        ((40, 10), 48, 0.80),
        ((40, 10), 30, -0.25),
        ((20, 30), 50, 1),
        ((20, 30), 0, -1),
        ((20, 30), 52, 1.1),  # values above 1 are measurement noise and are kept
        ((40, 0), 40, 0),
        ((40, 0), 41, 1),
        ((40, 0), 30, -0.25),
    ],
)
def test_vectors(single, multipath, expected):
    assert benefit(multipath, single) == pytest.approx(expected)


def test_without_a_path_that_carries_anything_it_is_undefined():
    assert math.isnan(benefit(10, (0, 0)))
    assert math.isnan(benefit(10, ()))


def test_many_values_at_once():
    got = benefit(np.array([94, 30, 10]), [[50, 40, 0], [50, 10, 0]])
    assert got.tolist() == pytest.approx([0.88, -0.25, math.nan], nan_ok=True)
