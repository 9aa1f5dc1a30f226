from __future__ import annotations

from controller.changes import LOOKS, Changes


def test_a_folder_is_looked_into_when_it_has_changed_and_a_few_times_more():
    times_ns = iter([5, 5, 5, 5, 5, 5, 9, 9])
    changes = Changes(lambda: next(times_ns))
    assert [changes.may_hold_news() for _ in range(8)] == [True] * LOOKS + [False] * 2 + [True] * 2
