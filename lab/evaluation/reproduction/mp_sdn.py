"""Reproduce MP-SDN: additional WiFi and LTE subflows of multipath users slow other users down, and
the network limits these subflows."""

from __future__ import annotations

from collections.abc import Iterable

from lab.evaluation.reproduction.base import Claim, Paper, average, joined
from lab.evaluation.reproduction.mp_sdn_runs import (
    ALPHAS,
    CATEGORISED_S,
    CONGESTION_CONTROLS,
    GOODPUT,
    INTERVALS_S,
    NONE,
    REGULATED,
    SHARES,
    cases,
    measure,
    name,
    share_name,
)
from lab.evaluation.reproduction.relations import Constant, Found, Relation, Value, within
from lab.results.tables import markdown_table

FLOOR = Constant(0.1)  # Mb/s of Tier 2 that MP-SDN always allows
WIFI_APS = ("wifi1", "wifi2", "wifi3")
KINDS = {
    "down": "30 users, 200 m",
    "up": "30 users, 200 m, uploads",
    "few": "15 users",
    "wide": "300 m",
}


def _share(
    percent: int, strategy: str = NONE, number: str = "T", cc: str = "reno", kind: str = "down"
) -> Value:
    strategy = strategy if percent else NONE
    where = "" if kind == "down" else f"{kind} "
    title = f"{where}{number}({percent} %, {strategy}, {cc})"
    return Value(share_name(percent, strategy, cc, kind), number, title)


def _of(case: str, number: str) -> Value:
    return Value(case, number, f"{number} ({case})")


def _swap(key: str, value: float, number: str) -> Value:
    return _of(name("swap", key, value), number)


def _losses_of_plain_mptcp() -> Iterable[Relation]:
    for number in ("T", "sp"):
        for cc in CONGESTION_CONTROLS:
            without, most = (_share(percent, number=number, cc=cc) for percent in (0, 80))
            yield Relation(without, ">", most, 1.05)
    for cc in CONGESTION_CONTROLS:
        yield Relation(_share(20, number="mp", cc=cc), "~", _share(80, number="mp", cc=cc))
    for percent in SHARES:
        yield Relation(_share(percent, cc="reno"), "~", _share(percent, cc="olia"))


def _throughput_of_mp_sdn() -> Iterable[Relation]:
    for percent in SHARES[1:]:
        for cc in CONGESTION_CONTROLS:
            yield Relation(_share(percent, REGULATED, cc=cc), "~", _share(0, cc=cc))
    for cc in CONGESTION_CONTROLS:
        yield from within(_share(80, REGULATED, cc=cc), _share(80, cc=cc), 1.1, 1.2)


def _testbed() -> Iterable[Relation]:
    """Yield relations that state: a rate in the testbed, divided by the same rate without multipath
    users, differs from the paper's ratio by at most 0.07. With MP-SDN, UE1 keeps at least 0.9 of
    its rate.

    The paper's ratios are read from Figures 3 and 9.
    """
    base, plain, regulated = "testbed-alone", name("testbed", NONE), name("testbed", REGULATED)
    for number, plain_ratio, regulated_ratio in (("T_wifi1", 0.71, 0.92), ("T_ue4", 0.70, 0.93)):
        for case, ratio in ((plain, plain_ratio), (regulated, regulated_ratio)):
            least, most = round(ratio - 0.07, 2), round(ratio + 0.07, 2)
            yield from within(_of(case, number), _of(base, number), least, most)
    yield Relation(_of(regulated, "T_ue1"), ">=", _of(base, "T_ue1"), 0.9)


def _idle_capacity() -> Iterable[Relation]:
    wifi, lte = (1 - 24 / 42) * 19.1, (1 - 24 / 46) * 32.9  # Mb/s of frames that are left
    for case, mbps in (("idle-wifi", wifi), ("idle-lte", lte)):
        idle = Constant(round(mbps * GOODPUT, 3))
        yield Relation(_of(case, "used"), ">=", idle, 0.8)
    yield Relation(_of("demand", "t2_low"), ">", _of("demand", "t2_before"), 5)
    yield Relation(_of("demand", "t1_after"), "~", _of("demand", "t1_before"))


def _sweep_order() -> Iterable[Relation]:
    for short, long in ((1, 2), (2, 3), (1, 3.5)):
        yield Relation(_swap("interval_s", short, "ac"), ">", _swap("interval_s", long, "ac"))
    for slow in (3, 3.5):
        for fast in (1.5, 2):
            yield Relation(_swap("interval_s", slow, "un"), ">", _swap("interval_s", fast, "un"))
    for number in ("ac", "un"):
        for larger, smaller in ((0.8, 0.5), (0.5, 0.3)):
            yield Relation(_swap("alpha", larger, number), ">", _swap("alpha", smaller, number))


MORE_USERS = "Multipath users lose too, because more of them share the same air"
CROWDED_LTE = (
    "Multipath users far from every WiFi access point can have their primary connection there "
    "where LTE is crowded, and primary connections are not regulated"
)
SAWTOOTH = (
    "The limit of Tier 2 alternates between about 4 and 11 Mb/s, because the cell is full at the "
    "higher value: on average 70 % of the idle capacity is used"
)
FULL_QUEUE = (
    "The queue of a saturated cell is full in every measurement (occupancy 0.99), so short "
    "intervals are as reliable as long ones"
)
WALKERS = (
    "Most users of a WiFi cell are single-path users, which stay on it however far they walk; the "
    "choice of the few primary connections changes little"
)
CLAIMS = (
    Claim(
        "1",
        "S",
        "Plain MPTCP: with more multipath users, the network and single-path users lose and "
        "multipath users do not; Reno and OLIA give the same",
        tuple(_losses_of_plain_mptcp()),
        True,
        MORE_USERS,
    ),
    Claim(
        "2",
        "S",
        "MP-SDN: the network carries, within 5 %, what it carries without multipath users; the "
        "best gain over plain MPTCP is 10 to 20 %",
        tuple(_throughput_of_mp_sdn()),
        True,
        CROWDED_LTE,
    ),
    Claim(
        "3",
        "S",
        "MP-SDN: single-path users get tens of percent more than under plain MPTCP",
        tuple(
            Relation(_share(80, REGULATED, "sp", cc), ">", _share(80, number="sp", cc=cc), 1.2)
            for cc in CONGESTION_CONTROLS
        ),
        True,
    ),
    Claim(
        "4",
        "S",
        "Testbed, compared with no multipath users: WiFi keeps 0.71 and with MP-SDN 0.92, UE4 "
        "0.70 and 0.93, each within 0.07; UE1 keeps at least 0.9 with MP-SDN",
        tuple(_testbed()),
        True,
    ),
    Claim(
        "5",
        "S",
        "MP-SDN: Tier 2 of each saturated WiFi access point is near its floor of 0.1 Mb/s "
        "(0.09 to 0.16)",
        tuple(
            relation
            for ap in WIFI_APS
            for relation in within(_share(40, REGULATED, f"t2_{ap}"), FLOOR, 0.5, 2)
        ),
        True,
    ),
    Claim(
        "6",
        "S",
        "Idle capacity is used: second paths get 80 % of it, Tier 2 rises when Tier 1 demands "
        "less, and two intervals after the demand has risen again Tier 1 has its old rate",
        tuple(_idle_capacity()),
        True,
        SAWTOOTH,
    ),
    Claim(
        "7",
        "S",
        "T2-BW-Ac falls with the execution interval; T1-BW-Un is larger at 3 and 3.5 s than at "
        "1.5 and 2 s; both rise with alpha",
        tuple(_sweep_order()),
        True,
        FULL_QUEUE,
    ),
    Claim(
        "8",
        "S",
        "Walking users: choosing primary connections every 45 s costs clearly more (27 % in the "
        "paper) than every 25 s or less (8 %)",
        (
            Relation(_of("walk-2", "T"), "~", _of("walk-10", "T")),
            Relation(_of("walk-25", "T"), ">", _of("walk-45", "T"), 1.1),
        ),
        True,
        WALKERS,
    ),
    Claim(
        "9",
        "S",
        "Uploads behave as downloads: plain MPTCP loses throughput, MP-SDN does not",
        (
            Relation(_share(0, kind="up"), ">", _share(80, kind="up"), 1.05),
            Relation(_share(80, REGULATED, kind="up"), "~", _share(0, kind="up")),
        ),
        True,
        "Probably as in claim 2; this was not examined",
    ),
    Claim(
        "11a",
        "S",
        "15 users: the same, with a smaller loss and a smaller gain than with 30",
        (
            Relation(_share(0, kind="few"), ">", _share(80, kind="few")),
            Relation(_share(80, REGULATED, kind="few"), ">", _share(80, kind="few")),
        ),
    ),
    Claim(
        "11b",
        "S",
        "300 m: the same, with a larger loss than with 200 m",
        (
            Relation(_share(0, kind="wide"), ">", _share(80, kind="wide"), 1.2),
            Relation(_share(80, REGULATED, kind="wide"), ">", _share(80, kind="wide")),
        ),
    ),
)


def tables(found: Found) -> str:
    """Return Markdown tables over the parameters that were varied."""
    walks = [f"{average(found, name('walk', each), 'T'):.1f}" for each in CATEGORISED_S]
    return joined(
        "## Shares of multipath users (Figures 5, 10, 11, 18)",
        "All access points together; in brackets the mean of a single-path user and of a "
        "multipath user.",
        _shares_table(found),
        "## Execution interval and alpha (Figures 14, 15)",
        "wifi1; Tier 1 demands 10 and 5 Mb/s in turn, 10 s each. In brackets: T1-BW-Un "
        "without negative terms.",
        _sweeps_table(found),
        "## Walking users (Figure 16)",
        markdown_table(
            ("primary connections are chosen every", *(f"{each} s" for each in CATEGORISED_S)),
            [["Mb/s", *walks]],
        ),
    )


def _shares_table(found: Found) -> str:
    rows: dict[tuple[str, str, str], dict[str, str]] = {}
    for case in CASES:
        if case.scenario == "thirty_users":
            kind, percent, strategy, cc = case.name.split("-")
            total, single, multi = (average(found, case.name, each) for each in ("T", "sp", "mp"))
            row = rows.setdefault((kind, cc, strategy), {})
            row[percent] = f"{total:.1f} ({single:.2f}, {multi:.2f})"
    lines = [
        [f"{KINDS[kind]}, {cc}", strategy, *(row.get(str(each), "-") for each in SHARES)]
        for (kind, cc, strategy), row in rows.items()
    ]
    return markdown_table(("", "strategy", *(f"{each} %" for each in SHARES)), lines)


def _sweeps_table(found: Found) -> str:
    rows = []
    for key, values in (("interval_s", INTERVALS_S), ("alpha", ALPHAS)):
        for value in values:
            case = name("swap", key, value)
            lacking, positive, tier2 = (average(found, case, each) for each in ("un", "un+", "ac"))
            rows.append([key, f"{value:g}", f"{lacking:.2f} ({positive:.2f})", f"{tier2:.2f}"])
    return markdown_table(("parameter", "", "T1-BW-Un", "T2-BW-Ac"), rows)


CASES = tuple(cases())
MP_SDN = Paper(
    "mp_sdn",
    "Second paths over WiFi and LTE, regulated by the network",
    CASES,
    measure,
    tables,
    CLAIMS,
    "Rates are goodput in Mb/s, means over the seeds.",
)
