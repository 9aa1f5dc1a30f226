"""Ben(M) of MPTCP-LA, eq (1), on vectors."""

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
    assert benefit(10, (0, 0)) is None
    assert benefit(10, ()) is None
