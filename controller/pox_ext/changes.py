"""When a folder may hold something new, asked without listing it."""

from __future__ import annotations

import os
from pathlib import Path

LOOKS = 4  # into a folder that has changed


class Changes:
    """Of a folder that exists. To list one that is shared with a VM takes a tenth of a second, to ask when it changed much less."""

    def __init__(self, folder: Path) -> None:
        self._handle = os.open(folder, os.O_RDONLY)
        self._changed_ns, self._looks = 0, 0

    def may_hold_news(self) -> bool:
        """Whether to look into it now.

        What comes in the same tick of the clock as the change before leaves no trace: a few more looks find it.
        """
        changed_ns = os.fstat(self._handle).st_mtime_ns
        self._looks = LOOKS if changed_ns != self._changed_ns else max(0, self._looks - 1)
        self._changed_ns = changed_ns
        return self._looks > 0

    def close(self) -> None:
        os.close(self._handle)
