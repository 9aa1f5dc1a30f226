"""What the controller wrote about subflows, and their entries in the switches."""

from __future__ import annotations

import re
from typing import Any

from emulation.vm_run import Run

FLOW = re.compile(r"tcp,nw_src=([\d.]+),nw_dst=([\d.]+),tp_src=(\d+),tp_dst=(\d+)")
Ends = tuple[str, str]  # address:port of a subflow's server and of its user


def subflows(run: Run) -> dict[Ends, dict[str, Any]]:
    """Latest line about each subflow."""
    return {
        (line["source"], line["destination"]): line
        for line in run.decisions()
        if line["kind"] == "subflow"
    }


def tables(run: Run, switches: list[str]) -> dict[str, set[Ends]]:
    """Flows towards users that have an entry at each switch."""
    shown = run.execute(
        "machine",
        f"for s in {' '.join(switches)}; do echo == $s; ovs-ofctl dump-flows $s table=1; done",
    )
    found: dict[str, set[Ends]] = {}
    for part in shown.split("== ")[1:]:
        ends = FLOW.findall(part)
        found[part.split()[0]] = {
            (f"{a}:{ap}", f"{b}:{bp}") for a, b, ap, bp in ends if ap == "5001"
        }
    return found
