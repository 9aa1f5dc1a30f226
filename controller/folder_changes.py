"""Detect from the modification time of a folder whether it may have new files.

In a folder shared with a virtual machine, reading this time is fast, but listing the files takes a
tenth of a second.
"""

from __future__ import annotations

from collections.abc import Callable

POLLS = 4  # listings of a folder after it has changed


class FolderChanges:
    def __init__(self, changed_ns: Callable[[], int]) -> None:
        """`changed_ns()` returns the modification time of the folder in ns."""
        self._read_changed_ns = changed_ns
        self._changed_ns, self._polls_left = 0, 0

    def may_have_changed(self) -> bool:
        """Return whether the folder should be listed now, because it may have new files.

        The result is True for `POLLS` calls after each change of the modification time. One call
        would not be enough: a second file may appear after the listing within the same clock tick,
        and then the time does not change again.
        """
        changed_ns = self._read_changed_ns()
        self._polls_left = POLLS if changed_ns != self._changed_ns else max(0, self._polls_left - 1)
        self._changed_ns = changed_ns
        return self._polls_left > 0
