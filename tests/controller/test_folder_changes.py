from __future__ import annotations

from controller.folder_changes import POLLS, FolderChanges


def test_a_folder_is_listed_after_a_change_and_a_few_times_more():
    times_ns = iter([5, 5, 5, 5, 5, 5, 9, 9])
    changes = FolderChanges(lambda: next(times_ns))
    assert [changes.may_have_changed() for _ in range(8)] == [True] * POLLS + [False] * 2 + [
        True
    ] * 2
