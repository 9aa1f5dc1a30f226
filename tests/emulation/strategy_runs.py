"""What tests of strategies read from a run in the VM."""

from __future__ import annotations

from typing import Any

from emulation.vm_shell import Queued

PAYLOAD = 1420 / 1514


def actions(run: Queued, action: str) -> list[dict[str, Any]]:
    return [
        line for line in run.decisions() if line["kind"] == "decision" and line["action"] == action
    ]
