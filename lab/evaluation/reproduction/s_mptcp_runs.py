"""Define the experiments of S-MPTCP, and measure each run.

The network of Figure 1 ("pooling") has three connections, which start at 0, 5 and 10 s. For each
connection the mean rate from 20 to 50 s is computed. `total` is the sum of these means, and `sd`
their population standard deviation (section 5.1).

`settles` is the time in s from the start of the last connection until all connections have settled.
`lab.run.metrics` says when they have: the final mean is that from 35 to 50 s. If the
connections never settle, `settles` is `MOST_S`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import pstdev

from lab.evaluation.reproduction.base import Case
from lab.evaluation.reproduction.relations import Numbers
from lab.results.documents import FinishedRun
from lab.results.statistics import mean
from lab.run.frame import Frame
from lab.run.metrics import settled_s
from lab.run.reading import read_frames

PLAIN, DISJOINT, NETWORK = "none", "disjoint", "expected_throughput"
LOSS_BASED = ("balia", "olia", "lia")
DELAY_BASED = "wvegas"
DELAYS_MS = (15, 30, 100, 200, 500)  # one way, Table 8
WHOLE_MBPS = {"within": 20, "between": 40}  # of frames, without a collision
LAST_START_S, JUDGED_S = 10.0, (20.0, 50.0)
MOST_S = 40.0
BY_PACING, BY_WINDOW = "pooling-pacing", "pooling-window"
Rates = Sequence[tuple[float, float]]  # (end of a sample [s], Mb/s) of one connection


def pooling(cc: str) -> str:
    """Return the name of the experiment with the network of Figure 1, the congestion control `cc`
    and no strategy."""
    return f"pooling-{cc}"


def delayed(delay_ms: int) -> str:
    """Return the name of the experiment with the network of Figure 1, S-MPTCP, and the one-way
    delay `delay_ms` of each path."""
    return f"pooling-{delay_ms}" if delay_ms != DELAYS_MS[0] else BY_PACING


def collision(among: str, strategy: str) -> str:
    """Return the name of an experiment of Figure 2, in which two paths can collide (share a link).

    `among` is "within" if the paths belong to one connection, "between" if they belong to different
    connections.
    """
    return f"{among}-{strategy}"


def cases() -> Iterable[Case]:
    for cc in (*LOSS_BASED, DELAY_BASED):
        yield Case(pooling(cc), "pooling", (), cc, PLAIN)
    for name, method in ((BY_PACING, "pacing"), (BY_WINDOW, "window")):
        settings = (f"multipath.expected_by={method}",)
        yield Case(name, "pooling", settings, None, NETWORK)
    for delay_ms in DELAYS_MS[1:]:
        settings = (f"topology.path_delay_ms={delay_ms}",)
        yield Case(delayed(delay_ms), "pooling", settings, None, NETWORK)
    for among in WHOLE_MBPS:
        for strategy in (PLAIN, DISJOINT, NETWORK):
            name = collision(among, strategy)
            yield Case(name, f"collision_{among}", (), None, strategy)


def measure(case: Case, run: FinishedRun) -> Numbers:
    """Return the numbers of a run, in Mb/s and s.

    For Figure 1, return `total`, `sd` and `settles`, as the module's docstring defines them. For
    Figure 2, return only `total`: the sum of the connections' mean rates from 10 s to the end of
    the run.
    """
    frames = read_frames(run.folder)
    connections = [
        [(frame.t, _rate_mbps(frame, user)) for frame in frames] for user in sorted(frames[-1].user)
    ]
    if not case.name.startswith("pooling"):
        end = frames[-1].t
        return {"total": sum(_mean(each, LAST_START_S, end) for each in connections)}
    means = [_mean(each, *JUDGED_S) for each in connections]
    return {"total": sum(means), "sd": pstdev(means), "settles": settles_s(connections)}


def settles_s(connections: Sequence[Rates]) -> float:
    """Return the time in s from the start of the last connection until all connections have settled
    (see the module's docstring), or `MOST_S`."""
    times = [t for t, _ in connections[0]]
    rates = [[mbps for _, mbps in each] for each in connections]
    settled = settled_s(times, rates, LAST_START_S, JUDGED_S[1])
    return MOST_S if settled is None else settled


def _rate_mbps(frame: Frame, user: str) -> float:
    """Return the rate of a user in Mb/s in one sample; 0 if the user's connection has not started
    yet."""
    return frame.user[user].mbps if user in frame.user else 0.0


def _mean(rates: Rates, after_s: float, until_s: float) -> float:
    return mean([mbps for t, mbps in rates if after_s < t <= until_s])
