"""The built-in congestion controls that a scenario can name.

`lab.extensions` adds the congestion controls in users' files. `lab.scenario.engine_table` lists the
congestion controls that each engine (emulation or simulator) can run.
"""

from __future__ import annotations

from lab.errors import LabError

BUILT_IN = {
    "reno": "uncoupled: every subflow as an ordinary TCP connection (RFC 5681)",
    "cubic": "uncoupled: window grows with the cube of the time since the last loss (RFC 9438)",
    "lia": "coupled: linked increases (RFC 6356)",
    "olia": "coupled: opportunistic linked increases (Khalili et al., 2012)",
    "balia": "coupled: balanced linked adaptation (Peng et al., 2016)",
    "wvegas": "coupled, by delay: weighted Vegas (Cao et al., 2012)",
}
BY_DELAY = frozenset({"wvegas"})  # the others react to losses


def check_change(name: str, by_window: bool) -> None:
    """Raise `LabError` if a run cannot change its congestion control to `name` while it goes on.

    `by_window` is True if the run limits congestion windows to enforce the rates that the SDN
    controller expects of subflows (S-MPTCP, Algorithm 5). A congestion control that reacts to delay
    does not work with such limits.
    """
    if name in BY_DELAY and by_window:
        raise LabError(
            f"change cc to {name}: it reacts to delay, and expected_by 'window' limits windows"
        )
