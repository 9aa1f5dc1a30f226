"""The built-in congestion controls that a scenario can name.

`lab.extensions` adds the congestion controls in users' files. `lab.scenario.engine_table` lists the
congestion controls that each engine (emulation or simulator) can run.
"""

from __future__ import annotations

from lab.errors import LabError

BUILT_IN = {
    "reno": "uncoupled: every subflow as an ordinary TCP connection (RFC 5681)",
    "cubic": "uncoupled: window grows with the cube of the time since the last loss (RFC 9438)",
    "bbr": "uncoupled: paced at the measured bottleneck rate (BBR v1, Cardwell et al., 2016)",
    "dctcp": "uncoupled: reduces its window by the share of marked segments (DCTCP, RFC 8257); "
    "needs a queue that marks, or else behaves as reno",
    "lia": "coupled: linked increases (RFC 6356)",
    "olia": "coupled: opportunistic linked increases (Khalili et al., 2012)",
    "balia": "coupled: balanced linked adaptation (Peng et al., 2016)",
    "wvegas": "coupled, by delay: weighted Vegas (Cao et al., 2012)",
}
NOT_BY_WINDOW = {  # the others react to losses: see `check_change`
    "wvegas": "wvegas reacts to delay",
    "bbr": "bbr sends at the rate that it measures",
    "dctcp": "dctcp is the kernel's, whose windows have no limits",
}
NEEDS_ECN = frozenset({"dctcp"})  # connections that begin with these use ECN


def check_change(name: str, by_window: bool) -> None:
    """Raise `LabError` if a run cannot change its congestion control to `name` while it goes on.

    `by_window` is True if the run limits congestion windows to enforce the rates that the SDN
    controller expects of subflows (S-MPTCP, Algorithm 5). Only a congestion control that reacts to
    losses works with such limits.
    """
    if name in NOT_BY_WINDOW and by_window:
        why = NOT_BY_WINDOW[name]
        raise LabError(f"change cc to {name}: {why}, and expected_by 'window' limits windows")
