"""S-MPTCP: routes and rates that the network decides, against what connections find by themselves. Pure.

Of the three connections of Figure 1, which begin at 0, 5 and 10 s, `total` and `sd` (of the population, section 5.1) are of their
means from 20 to 50 s. `settles` is the time from the last one's begin until every connection stays within 10 % of its mean of 35 to 50 s,
in means of 1 s, for 5 s and nine tenths of what follows; MOST_S if that never happens.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import pstdev
from typing import Any

from lab.evaluation.reproduction.base import (
    PAYLOAD,
    Case,
    Claim,
    Constant,
    Every,
    Found,
    Numbers,
    Paper,
    Relation,
    Value,
    Verdict,
    average,
    claims_table,
    mean,
    score,
)
from lab.results.tables import markdown_table
from lab.run.recorder import read_lines

PLAIN, DISJOINT, NETWORK = "none", "disjoint", "expected_throughput"
LOSS_LAWS = ("balia", "olia", "lia")
DELAYS_MS = (15, 30, 100, 200, 500)  # one way, Table 8
PAPERS_PAYLOAD = 1428 / 1514  # under its kernel
BEGUN_S, JUDGED_S, SETTLED_S = 10.0, (20.0, 50.0), (35.0, 50.0)
WINDOW_S, BAND, STAYS_S, MOSTLY = 1.0, 0.1, 5.0, 0.9
MOST_S = 40.0
WHOLE_MBPS = {"within": 20, "between": 40}  # of frames, without a collision
PAPER = {  # Tables 1, 7 and 8: total, SD and convergence
    "balia": (33.962, 3.511, 13.8), "olia": (33.950, 3.350, 11.8), "lia": (33.967, 2.847, 11.0), "wvegas": (33.123, 0.992, 6.2),
    NETWORK: (33.950, 0.018, 2.0),
}  # fmt: skip
PAPERS_DELAYS = {15: (33.950, 0.018, 2.0), 30: (33.940, 0.048, 2.0), 100: (33.950, 0.030, 3.0), 200: (33.907, 0.028, 5.0), 500: (33.795, 0.039, 13.0)}  # fmt: skip
PAPERS_COLLISIONS = {
    ("within", PLAIN): 13.149, ("within", DISJOINT): 18.816, ("within", NETWORK): 18.862,
    ("between", PLAIN): 30.926, ("between", DISJOINT): 27.345, ("between", NETWORK): 37.716,
}  # fmt: skip


def _cases() -> Iterable[Case]:
    full = ("rate_scale=1",)
    for law in (*LOSS_LAWS, "wvegas"):
        yield Case(_law(law), "pooling", full, law, PLAIN)
    for way in ("pacing", "window"):
        yield Case(
            f"pooling-{way}", "pooling", (*full, f"multipath.expected_by={way}"), None, NETWORK
        )
    for delay_ms in DELAYS_MS[1:]:
        yield Case(
            _delayed(delay_ms),
            "pooling",
            (*full, f"topology.path_delay_ms={delay_ms}"),
            None,
            NETWORK,
        )
    for among in WHOLE_MBPS:
        for strategy in (PLAIN, DISJOINT, NETWORK):
            yield Case(_collision(among, strategy), f"collision_{among}", full, None, strategy)


def _law(law: str) -> str:
    return f"pooling-{law}"


def _delayed(delay_ms: int) -> str:
    return f"pooling-{delay_ms}" if delay_ms != DELAYS_MS[0] else "pooling-pacing"


def _collision(among: str, strategy: str) -> str:
    return f"{among}-{strategy}"


def measure(case: Case, _result: Mapping[str, Any], folder: Path) -> Numbers:
    """Of a collision `total` from 10 s on; of Figure 1 also how far apart the connections are, and when they have settled."""
    frames = list(read_lines(folder / "samples.jsonl"))
    rates = {
        user: [(frame["t"], _carried(frame, user)) for frame in frames]
        for user in sorted(frames[-1]["user"])
    }
    if not case.name.startswith("pooling"):
        return {"total": sum(_mean(each, BEGUN_S, frames[-1]["t"]) for each in rates.values())}
    means = [_mean(each, *JUDGED_S) for each in rates.values()]
    return {"total": sum(means), "sd": pstdev(means), "settles": settles_s(list(rates.values()))}


def _carried(frame: Mapping[str, Any], user: str) -> float:
    """Nothing before its connection begins."""
    return float(frame["user"].get(user, {}).get("mbps") or 0.0)


def _mean(rates: Sequence[tuple[float, float]], after_s: float, until_s: float) -> float:
    return mean([mbps for t, mbps in rates if after_s < t <= until_s])


def settles_s(connections: Sequence[Sequence[tuple[float, float]]]) -> float:
    """When all have settled, from (end of a sample [s], Mb/s) of each."""
    ends = [t for t, _ in connections[0] if BEGUN_S + WINDOW_S <= t <= SETTLED_S[1]]
    targets = [_mean(each, *SETTLED_S) for each in connections]
    inside = [
        all(
            abs(_mean(each, t - WINDOW_S, t) - target) <= BAND * target
            for each, target in zip(connections, targets, strict=True)
        )
        for t in ends
    ]
    for n, t in enumerate(ends):
        stays = [good for good, end in zip(inside[n:], ends[n:], strict=True) if end <= t + STAYS_S]
        if t + STAYS_S <= ends[-1] and all(stays) and sum(inside[n:]) >= MOSTLY * len(inside[n:]):
            return max(0.0, t - WINDOW_S - BEGUN_S)
    return MOST_S


@dataclass(frozen=True)
class Halved:
    """So many of the runs lost half of their rate, from the least to the most."""

    case: str
    whole_mbps: float
    least: float
    most: float

    def _share(self, found: Found) -> float:
        return mean([float(each["total"] < 0.75 * self.whole_mbps) for each in found[self.case]])

    def verdict(self, found: Found) -> Verdict:
        return "holds" if self.least <= self._share(found) <= self.most else "fails"

    def shown(self, found: Found) -> str:
        return f"{self._share(found):.0%} of the runs of {self.case}, {self.least:.0%} to {self.most:.0%}"


def _of(case: str, number: str) -> Value:
    return Value(case, number, f"{number}({case.removeprefix('pooling-')})")


SMPTCP = "pooling-pacing"
CEILING = Constant(36 * PAYLOAD, "the ceiling")
ALMOST = "On longer paths a connection's second subflow is seen a decision after its first; what it then takes leaves connections within a tenth of each other, and there is another turn only where all together gain 5 % by it"
TRAINS = "wVegas halves a window when its queueing delay has doubled (its drain step). Packets go in trains here, which double it before a link is full"
CLAIMS = (
    Claim("T9, T10", "S", "S-MPTCP avoids every collision: every run carries at least 0.99 of the ceiling",
          tuple(Every(_of(_collision(among, NETWORK), "total"), ">=", 0.99 * whole * PAYLOAD) for among, whole in WHOLE_MBPS.items()), True),
    Claim("T9, disjoint", "S", "Within a connection disjoint ways are as good", (Relation(_of(_collision("within", DISJOINT), "total"), "~", _of(_collision("within", NETWORK), "total")),)),
    Claim("T9, hash", "S", "By hash about half of the runs of Figure 2a have half the rate", (Halved(_collision("within", PLAIN), 20 * PAYLOAD, 0.2, 0.8),), True),
    Claim("T10, order", "S", "Between connections S-MPTCP carries more than either",
          tuple(Relation(_of(_collision("between", NETWORK), "total"), ">", _of(_collision("between", other), "total")) for other in (PLAIN, DISJOINT)), True),
    Claim("T7, total", "S", "Figure 1: S-MPTCP carries at least 0.99 of the ceiling, and so do BALIA, OLIA and LIA",
          tuple(Relation(_of(case, "total"), ">=", CEILING, 0.99) for case in (SMPTCP, *map(_law, LOSS_LAWS))), True),
    Claim("T7, SD", "S", "SD of at most 0.2 Mb/s, a tenth of that of BALIA, OLIA and LIA at most",
          (Relation(_of(SMPTCP, "sd"), "<=", Constant(0.2)), *(Relation(_of(_law(law), "sd"), ">=", _of(SMPTCP, "sd"), 10) for law in LOSS_LAWS)), True),
    Claim("T7, time", "S", "It settles within 3 s, and BALIA, OLIA and LIA take twice as long at least",
          (Relation(_of(SMPTCP, "settles"), "<=", Constant(3.0)), *(Relation(_of(_law(law), "settles"), ">=", _of(SMPTCP, "settles"), 2) for law in LOSS_LAWS)), True),
    Claim("T7, wVegas", "S", "wVegas is between them in SD and time, and carries less in all",
          (*(Relation(_of(_law(law), "sd"), ">", _of("pooling-wvegas", "sd")) for law in LOSS_LAWS), Relation(_of("pooling-wvegas", "sd"), ">", _of(SMPTCP, "sd")),
           *(Relation(_of(_law(law), "settles"), ">", _of("pooling-wvegas", "settles")) for law in LOSS_LAWS),
           Relation(_of("pooling-wvegas", "settles"), ">", _of(SMPTCP, "settles")), *(Relation(_of(case, "total"), ">", _of("pooling-wvegas", "total")) for case in (SMPTCP, *map(_law, LOSS_LAWS)))), True, TRAINS),
    Claim("T8, time", "S", "It takes longer to settle on longer paths",
          (*(Relation(_of(_delayed(b), "settles"), ">=", _of(_delayed(a), "settles")) for a, b in pairwise(DELAYS_MS)),
           Relation(_of(_delayed(DELAYS_MS[-1]), "settles"), ">", _of(_delayed(DELAYS_MS[0]), "settles"))), True),
    Claim("T8", "S", "On every path its SD stays below 0.2 Mb/s and its total within 1 %",
          (*(Relation(_of(_delayed(ms), "sd"), "<=", Constant(0.2)) for ms in DELAYS_MS),
           *(Relation(_of(_delayed(ms), "total"), ">=", _of(SMPTCP, "total"), 0.99) for ms in DELAYS_MS[1:])), True, ALMOST),
)  # fmt: skip


def page(found: Found) -> str:
    """Claims, then the tables of the paper beside ours."""
    return "\n\n".join([
        f"Of the claims that a reproduction is judged on, {score(CLAIMS, found)} agree. Mb/s of goodput; the paper's kernel carries 1428 of 1514 bytes of a frame and ours "
        "1420, so its values are worth 0.994 of what they say. S-MPTCP is `expected_throughput` over Reno, its hosts held by pacing.",
        claims_table(CLAIMS, found),
        "## Figure 1 (Tables 1 and 7)",
        "Total, standard deviation of the three connections, and seconds until they have settled, means over the seeds; in brackets the paper's, worth as said. The paper's own "
        "window-based flow control is `multipath.expected_by=window`.",
        _pooling(found),
        "## Length of the paths (Table 8)",
        _delays(found),
        "## Collisions (Tables 9 and 10)",
        _collisions(found),
    ])  # fmt: skip


def _three(found: Found, case: str, papers: tuple[float, float, float] | None) -> list[str]:
    ours = [average(found, case, number) for number in ("total", "sd", "settles")]
    theirs = ("", "", "")
    if papers:
        total, sd, settles = papers
        scale = PAYLOAD / PAPERS_PAYLOAD
        theirs = (f" ({total * scale:.2f})", f" ({sd * scale:.3f})", f" ({settles:.1f})")
    formats = ("{:.2f}{}", "{:.3f}{}", "{:.1f}{}")
    never = sum(each["settles"] >= MOST_S for each in found[case])
    cells = [
        form.format(*each)
        for form, each in zip(formats, zip(ours, theirs, strict=True), strict=True)
    ]
    return [*cells[:2], cells[2] + (f"; {never} of {len(found[case])} never" if never else "")]


HEADS = ("total, Mb/s", "SD, Mb/s", "settled after, s")


def _pooling(found: Found) -> str:
    rows = [[law, *_three(found, _law(law), PAPER[law])] for law in (*LOSS_LAWS, "wvegas")]
    rows += [
        ["S-MPTCP", *_three(found, SMPTCP, PAPER[NETWORK])],
        ["S-MPTCP by window", *_three(found, "pooling-window", PAPER[NETWORK])],
    ]
    return markdown_table(("", *HEADS), rows)


def _delays(found: Found) -> str:
    rows = [
        [f"S-MPTCP, {ms} ms", *_three(found, _delayed(ms), PAPERS_DELAYS[ms])] for ms in DELAYS_MS
    ]
    return markdown_table(("one way", *HEADS), rows)


def _collisions(found: Found) -> str:
    scale = PAYLOAD / PAPERS_PAYLOAD
    rows = []
    for strategy in (PLAIN, DISJOINT, NETWORK):
        totals = {
            among: [each["total"] for each in found[_collision(among, strategy)]]
            for among in WHOLE_MBPS
        }
        rows.append([strategy, *(
            f"{mean(values):.2f} ({min(values):.1f} to {max(values):.1f}; paper {PAPERS_COLLISIONS[among, strategy] * scale:.2f})" for among, values in totals.items()
        )])  # fmt: skip
    return markdown_table(("", "Figure 2a, Mb/s", "Figure 2b, Mb/s"), rows)


S_MPTCP = Paper(
    "s_mptcp", "Routes and rates that the network decides", tuple(_cases()), measure, page
)
