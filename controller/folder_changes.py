"""When a folder may hold something new, asked without listing it."""

from __future__ import annotations

from collections.abc import Callable

POLLS = 4  # into a folder that has changed


class FolderChanges:
    """Of a folder whose time of change [ns] is `changed_ns()`: to ask for it, of an open folder that is shared with a VM,
    takes much less than the tenth of a second that listing it takes.
    """

    def __init__(self, changed_ns: Callable[[], int]) -> None:
        self._ask = changed_ns
        self._changed_ns, self._looks = 0, 0

    def may_have_changed(self) -> bool:
        """Whether to look into it now.

        What comes in the same tick of the clock as the change before leaves no trace: a few more looks find it.
        """
        changed_ns = self._ask()
        self._looks = POLLS if changed_ns != self._changed_ns else max(0, self._looks - 1)
        self._changed_ns = changed_ns
        return self._looks > 0
