"""The paper S-MPTCP. A controller chooses paths and rates for all connections together, whereas
plain MPTCP decides for each connection alone.

In the network of Figure 1 ("pooling"), three connections start at 0, 5 and 10 s. In Figure 2, two
paths can collide, that is, share a link.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import pstdev

from lab.frame import Frame
from lab.results.documents import FinishedRun
from lab.results.statistics import Judgement, judged, mean, share_between
from lab.results.tables import markdown_table
from lab.run.reading import read_frames
from lab.summaries import settled_s
from papers.base import PAYLOAD, Case, Claim, Paper, average, joined
from papers.relations import Constant, Every, Found, Numbers, Relation, Value

# Experiments and measured numbers


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
    """Return the name of the experiment on the network of Figure 1 with congestion control `cc` and
    without a strategy."""
    return f"pooling-{cc}"


def delayed(delay_ms: int) -> str:
    """Return the name of the experiment on the network of Figure 1 with S-MPTCP. All paths have the
    one-way delay `delay_ms`."""
    return f"pooling-{delay_ms}" if delay_ms != DELAYS_MS[0] else BY_PACING


def collision(among: str, strategy: str) -> str:
    """Return the name of an experiment of Figure 2, in which two paths can collide (share a link).

    `among` is "within" if the paths belong to one connection, and "between" if they belong to two
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
    """Return the measured numbers of a run by name, in Mb/s and s.

    For Figure 1, `total` is the sum of the connections' mean rates from 20 to 50 s. `sd` is the
    population standard deviation of these mean rates (section 5.1). `settles` is the result of
    `settles_s`. For Figure 2 there is only `total`, measured from 10 s to the end of the run.
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
    """Return how long it takes until the rates of all connections have settled, in s from the start
    of the last connection. Return `MOST_S` if they never settle.

    `lab.summaries.settled_s` defines when rates have settled. Their final means are taken from 35
    to 50 s.
    """
    times = [t for t, _ in connections[0]]
    rates = [[mbps for _, mbps in each] for each in connections]
    settled = settled_s(times, rates, LAST_START_S, JUDGED_S[1])
    return MOST_S if settled is None else settled


def _rate_mbps(frame: Frame, user: str) -> float:
    """Return the rate of a user in a sample. The rate is 0 if the user's connection has not started
    yet."""
    return frame.user[user].mbps if user in frame.user else 0.0


def _mean(rates: Rates, after_s: float, until_s: float) -> float:
    return mean([mbps for t, mbps in rates if after_s < t <= until_s])


PAPER_SCALE = PAYLOAD / (1428 / 1514)  # the paper's kernel puts 1428 bytes of data into a frame
PAPER = {  # Tables 1, 7 and 8: total, SD and convergence
    "balia": (33.962, 3.511, 13.8),
    "olia": (33.950, 3.350, 11.8),
    "lia": (33.967, 2.847, 11.0),
    DELAY_BASED: (33.123, 0.992, 6.2),
    NETWORK: (33.950, 0.018, 2.0),
}
PAPER_DELAYS = {
    15: (33.950, 0.018, 2.0),
    30: (33.940, 0.048, 2.0),
    100: (33.950, 0.030, 3.0),
    200: (33.907, 0.028, 5.0),
    500: (33.795, 0.039, 13.0),
}
PAPER_COLLISIONS = {
    ("within", PLAIN): 13.149,
    ("within", DISJOINT): 18.816,
    ("within", NETWORK): 18.862,
    ("between", PLAIN): 30.926,
    ("between", DISJOINT): 27.345,
    ("between", NETWORK): 37.716,
}
HEADS = ("total, Mb/s", "SD, Mb/s", "settled after, s")


@dataclass(frozen=True)
class Halved:
    """The statement that about half of the rate is lost in some runs, because paths collide. The
    share of such runs is between `least` and `most`, as fractions of all runs of a case
    (experiment).

    A run counts as halved if its total rate is below 75 % of `whole_mbps`, the rate without a
    collision.
    """

    case: str
    whole_mbps: float
    least: float
    most: float

    def cases(self) -> frozenset[str]:
        return frozenset({self.case})

    def _halved(self, found: Found) -> int:
        return sum(each["total"] < 0.75 * self.whole_mbps for each in found[self.case])

    def judgement(self, found: Found) -> Judgement:
        n = len(found[self.case])
        return judged(share_between(self._halved(found), n, self.least, self.most))

    def shown(self, found: Found) -> str:
        share = f"{self._halved(found) / len(found[self.case]):.0%} of the runs of {self.case}"
        return f"{share}, {self.least:.0%} to {self.most:.0%}"


def _of(case: str, number: str) -> Value:
    return Value(case, number, f"{number}({case.removeprefix('pooling-')})")


def _above_wvegas(number: str) -> tuple[Relation, ...]:
    """Return relations that say: `number` is larger with each loss-based congestion control than
    with wVegas."""
    wvegas = _of(pooling(DELAY_BASED), number)
    return tuple(Relation(_of(pooling(cc), number), ">", wvegas) for cc in LOSS_BASED)


CEILING = Constant(36 * PAYLOAD, "the ceiling")
NO_COLLISION = tuple(
    Every(_of(collision(among, NETWORK), "total"), ">=", 0.99 * whole * PAYLOAD)
    for among, whole in WHOLE_MBPS.items()
)
BETWEEN = tuple(
    Relation(
        _of(collision("between", NETWORK), "total"), ">", _of(collision("between", other), "total")
    )
    for other in (PLAIN, DISJOINT)
)
WVEGAS = (
    *_above_wvegas("sd"),
    Relation(_of(pooling(DELAY_BASED), "sd"), ">", _of(BY_PACING, "sd")),
    *_above_wvegas("settles"),
    Relation(_of(pooling(DELAY_BASED), "settles"), ">", _of(BY_PACING, "settles")),
    Relation(_of(BY_PACING, "total"), ">", _of(pooling(DELAY_BASED), "total")),
    *_above_wvegas("total"),
)
LONGER_PATHS = (
    *(
        Relation(_of(delayed(b), "settles"), ">=", _of(delayed(a), "settles"))
        for a, b in pairwise(DELAYS_MS)
    ),
    Relation(_of(delayed(DELAYS_MS[-1]), "settles"), ">", _of(delayed(DELAYS_MS[0]), "settles")),
)
SMALL_SD = Constant(0.2)
LATE_SUBFLOWS = (
    "Only 500 ms fails. The second subflow of a connection joins a round trip of 1 s after the "
    "first. In the first run the controller then leaves the connections 11.25, 12 and 12.75 Mb/s "
    "of frames and does not assign them again; up to 200 ms they get equal rates. The paper does "
    "not say when rates are assigned again"
)
CLAIMS = (
    Claim(
        "T9, T10",
        "S",
        "S-MPTCP avoids every collision: every run carries at least 99 % of the ceiling",
        NO_COLLISION,
        True,
    ),
    Claim(
        "T9, disjoint",
        "S",
        "Within a connection, disjoint paths are as good",
        (
            Relation(
                _of(collision("within", DISJOINT), "total"),
                "~",
                _of(collision("within", NETWORK), "total"),
            ),
        ),
    ),
    Claim(
        "T9, hash",
        "S",
        "If a hash chooses the paths, about half of the runs of Figure 2a carry half the rate",
        (Halved(collision("within", PLAIN), 20 * PAYLOAD, 0.2, 0.8),),
        True,
    ),
    Claim(
        "T10, order",
        "S",
        "Between connections, S-MPTCP carries more than hashing and than disjoint paths",
        BETWEEN,
        True,
    ),
    Claim(
        "T7, total",
        "S",
        "Figure 1: S-MPTCP, BALIA, OLIA and LIA carry at least 99 % of the ceiling",
        tuple(
            Relation(_of(case, "total"), ">=", CEILING, 0.99)
            for case in (BY_PACING, *map(pooling, LOSS_BASED))
        ),
        True,
    ),
    Claim(
        "T7, SD",
        "S",
        "The SD is at most 0.2 Mb/s, and at most a tenth of that of BALIA, OLIA and LIA",
        (
            Relation(_of(BY_PACING, "sd"), "<=", SMALL_SD),
            *(
                Relation(_of(pooling(cc), "sd"), ">=", _of(BY_PACING, "sd"), 10)
                for cc in LOSS_BASED
            ),
        ),
        True,
    ),
    Claim(
        "T7, time",
        "S",
        "S-MPTCP settles within 3 s; BALIA, OLIA and LIA take at least twice as long",
        (
            Relation(_of(BY_PACING, "settles"), "<=", Constant(3.0)),
            *(
                Relation(_of(pooling(cc), "settles"), ">=", _of(BY_PACING, "settles"), 2)
                for cc in LOSS_BASED
            ),
        ),
        True,
    ),
    Claim(
        "T7, wVegas",
        "S",
        "wVegas is between them in SD and time, and its total is smaller",
        WVEGAS,
        True,
    ),
    Claim("T8, time", "S", "S-MPTCP settles later on longer paths", LONGER_PATHS, True),
    Claim(
        "T8",
        "S",
        "On every path the SD stays below 0.2 Mb/s, and the total within 1 %",
        (
            *(Relation(_of(delayed(ms), "sd"), "<=", SMALL_SD) for ms in DELAYS_MS),
            *(
                Relation(_of(delayed(ms), "total"), ">=", _of(BY_PACING, "total"), 0.99)
                for ms in DELAYS_MS[1:]
            ),
        ),
        True,
        LATE_SUBFLOWS,
        "setting",
    ),
)


NOTE = (
    "Rates are goodput in Mb/s. The paper's kernel puts 1428 bytes of data into a frame of 1514 "
    f"bytes, this one 1420: its values are multiplied by {PAPER_SCALE:.3f}. S-MPTCP is "
    "`expected_throughput` over Reno with paced hosts."
)


def tables(found: Found) -> str:
    """Return Markdown tables of the measured values, with the paper's values in brackets."""
    return joined(
        "## Figure 1 (Tables 1 and 7)",
        "Total, standard deviation of the three connections, and the time until they have "
        "settled: means over the seeds, in brackets the paper's values. The paper's own "
        "window-based flow control is `multipath.expected_by=window`.",
        _pooling_table(found),
        "## Length of the paths (Table 8)",
        _delays_table(found),
        "## Collisions (Tables 9 and 10)",
        _collisions_table(found),
    )


def _cells(found: Found, case: str, paper: tuple[float, float, float]) -> list[str]:
    """Return three table cells of a case (an experiment): total rate, standard deviation and
    settling time. Each has the paper's value in brackets."""
    total, sd, settles = (average(found, case, number) for number in ("total", "sd", "settles"))
    paper_total, paper_sd, paper_settles = paper
    never = sum(each["settles"] >= MOST_S for each in found[case])
    return [
        f"{total:.2f} ({paper_total * PAPER_SCALE:.2f})",
        f"{sd:.3f} ({paper_sd * PAPER_SCALE:.3f})",
        f"{settles:.1f} ({paper_settles:.1f})"
        + (f"; {never} of {len(found[case])} never" if never else ""),
    ]


def _pooling_table(found: Found) -> str:
    rows = [[cc, *_cells(found, pooling(cc), PAPER[cc])] for cc in (*LOSS_BASED, DELAY_BASED)]
    rows += [
        ["S-MPTCP", *_cells(found, BY_PACING, PAPER[NETWORK])],
        ["S-MPTCP by window", *_cells(found, BY_WINDOW, PAPER[NETWORK])],
    ]
    return markdown_table(("", *HEADS), rows)


def _delays_table(found: Found) -> str:
    rows = [
        [f"S-MPTCP, {ms} ms", *_cells(found, delayed(ms), PAPER_DELAYS[ms])] for ms in DELAYS_MS
    ]
    return markdown_table(("one way", *HEADS), rows)


def _collisions_table(found: Found) -> str:
    rows = []
    for strategy in (PLAIN, DISJOINT, NETWORK):
        row = [strategy]
        for among in WHOLE_MBPS:
            totals = [each["total"] for each in found[collision(among, strategy)]]
            paper = PAPER_COLLISIONS[among, strategy] * PAPER_SCALE
            spread = f"{min(totals):.1f} to {max(totals):.1f}"
            row.append(f"{mean(totals):.2f} ({spread}; paper {paper:.2f})")
        rows.append(row)
    return markdown_table(("", "Figure 2a, Mb/s", "Figure 2b, Mb/s"), rows)


TITLE = "Paths and rates chosen by the network"
S_MPTCP = Paper("s_mptcp", TITLE, tuple(cases()), measure, tables, CLAIMS, NOTE)
