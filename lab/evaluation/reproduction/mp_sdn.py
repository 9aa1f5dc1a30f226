"""MP-SDN: what second paths cost, and what regulating them gives back. The claims are those a reproduction is judged on. Pure.

Rates are receivers' goodput in Mb/s. `late` means after the first part of a run, when limits have settled.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from lab.evaluation.reproduction.base import (
    Case,
    Claim,
    Constant,
    Found,
    Numbers,
    Paper,
    Relation,
    Value,
    average,
    claims_table,
    mean,
    score,
)
from lab.results.tables import markdown_table

NONE, REGULATED = "none", "meter_throttling"
SHARES = (0, 20, 40, 60, 80)  # percent of the users that are multipath
LAWS = ("reno", "olia")
INTERVALS_S = (1, 1.5, 2, 2.5, 3, 3.5)
ALPHAS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
CATEGORISED_S = (2, 5, 10, 25, 45)
WIFIS = ("wifi1", "wifi2", "wifi3")
GOODPUT = 1448 / 1514  # of frames, to compare a demand in frames with what arrives
SWAP_S = 10  # between 10 and 5 Mb/s of demand, Figures 14 and 15
SCALE = 0.25  # of the testbed's rates
NUMBERS_SHOWN = ("T", "sp", "mp")


def _name(kind: str, *parts: object) -> str:
    return "-".join(map(str, (kind, *parts)))


def _share(
    percent: int, strategy: str, cc: str = "reno", kind: str = "down", *settings: str
) -> Case:
    asked = (f"topology.multipath_percent={percent}", "sample_interval_s=1", *settings)
    return Case(_name(kind, percent, strategy, cc), "thirty_users", asked, cc, strategy, 30)


def _swapped(key: str, value: float) -> Case:
    levels = ((at_s, 10 if at_s % (2 * SWAP_S) == 0 else 5) for at_s in range(0, 60, SWAP_S))
    events = ", ".join(
        f"{{at_s: {at_s}, target: cell.wifi1.tier1_mbps, value: {mbps}}}" for at_s, mbps in levels
    )
    return Case(
        _name("swap", key, value),
        "demand_swap",
        (f"events=[{events}]", f"strategy.params.{key}={value}"),
        None,
        None,
        60,
    )


def _cases() -> Iterable[Case]:
    for cc in LAWS:
        for percent in SHARES:
            for strategy in (NONE, REGULATED) if percent else (NONE,):
                yield _share(percent, strategy, cc)
    for percent, strategy in ((0, NONE), (80, NONE), (80, REGULATED)):
        yield _share(percent, strategy, "reno", "up", "traffic_direction=up")
        yield _share(percent, strategy, "reno", "few", "topology.users=15")
        yield _share(percent, strategy, "reno", "wide", "topology.area_m=300")
    for interval_s in INTERVALS_S:
        yield _swapped("interval_s", interval_s)
    for alpha in ALPHAS:
        yield _swapped("alpha", alpha)
    yield Case("demand", "demand_swap", duration_s=45)
    for interval_s in CATEGORISED_S:
        settings = (
            f"strategy.params.categorisation_interval_s={interval_s}",
            "sample_interval_s=1",
        )
        yield Case(_name("walk", interval_s), "moving_users", settings)
    yield Case("testbed-alone", "testbed_wifi_lte", ("topology.multipath=[]",), None, NONE, 40)
    for strategy in (NONE, REGULATED):
        yield Case(_name("testbed", strategy), "testbed_wifi_lte", (), None, strategy, 40)
    yield Case("idle-wifi", "idle_wifi", duration_s=40)
    yield Case("idle-lte", "idle_lte", duration_s=40)


# --- numbers of a run


def measure(case: Case, result: Mapping[str, Any], folder: Path) -> Numbers:
    """Totals and means of every run, and what its own experiment asks for."""
    users = result["users"].values()
    numbers = {"T": sum(each["throughput_mbps"] for each in result["aps"].values())}
    for short, kind in (("sp", "single_path"), ("mp", "multipath")):
        rates = [each["throughput_mbps"] for each in users if each["kind"] == kind]
        numbers[short] = mean(rates) if rates else 0.0
    numbers |= {f"t2_{ap}": each["tier2_mbps"] for ap, each in result["aps"].items()}
    numbers |= {f"T_{ap}": each["throughput_mbps"] for ap, each in result["aps"].items()}
    numbers |= {f"T_{user}": each["throughput_mbps"] for user, each in result["users"].items()}
    own = next((own for prefix, own in OWN.items() if case.name.startswith(prefix)), None)
    return {**numbers, **(own(result, _frames(folder)) if own else {})}


def _frames(folder: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for line in (folder / "samples.jsonl").read_text(encoding="utf-8").splitlines()
    ]


def swapped(_result: Mapping[str, Any], frames: list[dict[str, Any]]) -> Numbers:
    """T1-BW-Un and T2-BW-Ac of wifi1 (MP-SDN, section VI-C): means of what Tier 1 lacks of its demand, and of what Tier 2 gets."""
    lacking = [
        _demand_mbps(frame["t"]) * GOODPUT - frame["ap"]["wifi1"]["tier1_mbps"] for frame in frames
    ]
    tier2 = [frame["ap"]["wifi1"]["tier2_mbps"] for frame in frames]
    return {
        "un": mean(lacking),
        "un+": mean([max(0.0, each) for each in lacking]),
        "ac": mean(tier2),
    }


def _demand_mbps(ends_s: float) -> float:
    """Of the sample that ends then."""
    return 10.0 if (ends_s - 1e-6) // SWAP_S % 2 == 0 else 5.0


def demanded(_result: Mapping[str, Any], frames: list[dict[str, Any]]) -> Numbers:
    """Figure 13, at wifi2: both tiers before the demand falls, while it is low, and from two intervals after it has risen again."""
    spans = {"before": (5, 15), "low": (20, 30), "again": (34.5, 45)}
    return {
        f"t{tier}_{name}": mean(
            [each["ap"]["wifi2"][f"tier{tier}_mbps"] for each in frames if start < each["t"] <= end]
        )
        for name, (start, end) in spans.items()
        for tier in (1, 2)
    }


def idle(user: str, ap: str) -> Callable[[Mapping[str, Any], list[dict[str, Any]]], Numbers]:
    """What a user gets by an access point in the second half of a run."""

    def late(result: Mapping[str, Any], frames: list[dict[str, Any]]) -> Numbers:
        mine = [
            subflow["id"]
            for each in result["connections"]
            if each["user"] == user
            for subflow in each["subflows"]
            if ap in subflow["path"]
        ]
        half = [frame for frame in frames if frame["t"] > frames[-1]["t"] / 2]
        return {
            "late": mean(
                [
                    sum(frame["sf"].get(name, {"mbps": 0.0})["mbps"] for name in mine)
                    for frame in half
                ]
            )
        }

    return late


OWN = {
    "swap": swapped,
    "demand": demanded,
    "idle-wifi": idle("ue3", "wifi1"),
    "idle-lte": idle("ue2", "lte1"),
}

# --- claims


def _down(
    percent: int, strategy: str = NONE, number: str = "T", cc: str = "reno", kind: str = "down"
) -> Value:
    strategy = strategy if percent else NONE
    where = "" if kind == "down" else f"{kind} "
    return Value(
        _name(kind, percent, strategy, cc),
        number,
        f"{where}{number}({percent} %, {strategy}, {cc})",
    )


def _of(case: str, number: str) -> Value:
    return Value(case, number, f"{number} ({case})")


def _within(
    value: Value, base: Value | Constant, least: float, most: float
) -> tuple[Relation, ...]:
    """The value is at least and at most so much of the base."""
    return Relation(value, ">=", base, least), Relation(value, "<=", base, most)


def _testbed() -> Iterable[Relation]:
    """Ratios to the case without multipath users, as read from Figures 3 and 9, each with 0.07 to either side."""
    base, plain, regulated = "testbed-alone", _name("testbed", NONE), _name("testbed", REGULATED)
    for number, was, becomes in (("T_wifi1", 0.71, 0.92), ("T_ue4", 0.70, 0.93)):
        for case, ratio in ((plain, was), (regulated, becomes)):
            yield from _within(
                _of(case, number), _of(base, number), round(ratio - 0.07, 2), round(ratio + 0.07, 2)
            )
    yield Relation(_of(regulated, "T_ue1"), ">=", _of(base, "T_ue1"), 0.9)


SAWTOOTH = "The limit is halved when the cell is full, from 2.0 to 1.0 Mb/s, and comes back in two or three intervals: the mean is three quarters of what is idle"
WALKERS = "Most users of a WiFi cell are single-path ones that stay on it however far they walk, and what few primaries there are to choose changes little"
NOISE = "The queue of a saturated cell is seen as full in every look (occupancy 0.99), so a short interval errs no more than a long one"
CLAIMS = (
    Claim("1", "S", "Plain MPTCP: the network and single-path users lose as more users are multipath; multipath users do not; Reno as OLIA",
          (*(Relation(_down(0, number=number, cc=cc), ">", _down(80, number=number, cc=cc), 1.05) for number in ("T", "sp") for cc in LAWS),
           *(Relation(_down(20, number="mp", cc=cc), "~", _down(80, number="mp", cc=cc)) for cc in LAWS),
           *(Relation(_down(percent, cc="reno"), "~", _down(percent, cc="olia")) for percent in SHARES)), True,
          "Multipath users lose too, as there are more of them for the same air"),
    Claim("2", "S", "MP-SDN: the network carries what it carried without multipath users, within 5 %; the best gain over plain is 10 to 20 %",
          (*(Relation(_down(percent, REGULATED, cc=cc), "~", _down(0, cc=cc)) for percent in SHARES[1:] for cc in LAWS),
           *(each for cc in LAWS for each in _within(_down(80, REGULATED, cc=cc), _down(80, cc=cc), 1.1, 1.2))), True,
          "Multipath users far from every WiFi access point may have their primary connection there where LTE is crowded, and nobody regulates it"),
    Claim("3", "S", "MP-SDN: single-path users get tens of percent more than under plain MPTCP",
          tuple(Relation(_down(80, REGULATED, "sp", cc), ">", _down(80, number="sp", cc=cc), 1.2) for cc in LAWS), True),
    Claim("4", "S", "Testbed: of what they had, WiFi keeps 0.71 and with MP-SDN 0.92, UE4 0.70 and 0.93, each within 0.07; UE1 at least 0.9 with MP-SDN",
          tuple(_testbed()), True),
    Claim("5", "S", "MP-SDN: Tier 2 of each saturated WiFi access point is near its floor of 0.1 Mb/s (0.09 to 0.16)",
          tuple(each for ap in WIFIS for each in _within(_down(40, REGULATED, f"t2_{ap}"), Constant(0.1), 0.5, 2)), True),
    Claim("6", "S", "Idle capacity is used: second paths get 80 % of it, Tier 2 rises when Tier 1 asks for less, and two intervals after it asks again all is as before",
          (Relation(_of("idle-wifi", "late"), ">=", Constant(round((1 - 24 / 42) * 19.1 * SCALE * GOODPUT, 3)), 0.8),
           Relation(_of("idle-lte", "late"), ">=", Constant(round((1 - 24 / 46) * 32.9 * SCALE * GOODPUT, 3)), 0.8),
           Relation(_of("demand", "t2_low"), ">", _of("demand", "t2_before"), 5),
           Relation(_of("demand", "t1_again"), "~", _of("demand", "t1_before"))), True, SAWTOOTH),
    Claim("7", "S", "T2-BW-Ac falls with the execution interval, T1-BW-Un is worse at 3 and 3.5 s than at 1.5 and 2 s; both rise with alpha",
          (*(Relation(_of(_name("swap", "interval_s", a), "ac"), ">", _of(_name("swap", "interval_s", b), "ac")) for a, b in ((1, 2), (2, 3), (1, 3.5))),
           *(Relation(_of(_name("swap", "interval_s", a), "un"), ">", _of(_name("swap", "interval_s", b), "un")) for a in (3, 3.5) for b in (1.5, 2)),
           *(Relation(_of(_name("swap", "alpha", a), number), ">", _of(_name("swap", "alpha", b), number)) for number in ("ac", "un") for a, b in ((0.8, 0.5), (0.5, 0.3)))),
          True, NOISE),
    Claim("8", "S", "Walking users: choosing primaries every 45 s costs visibly more (paper 27 %) than every 25 s or less (8 %)",
          (Relation(_of("walk-2", "T"), "~", _of("walk-10", "T")), Relation(_of("walk-25", "T"), ">", _of("walk-45", "T"), 1.1)), True, WALKERS),
    Claim("9", "S", "Uploads as downloads: plain MPTCP loses, MP-SDN does not",
          (Relation(_down(0, kind="up"), ">", _down(80, kind="up"), 1.05), Relation(_down(80, REGULATED, kind="up"), "~", _down(0, kind="up"))), True, "Probably as claim 2; not looked into"),
    Claim("11a", "S", "15 users: the same with a smaller loss and a smaller gain than with 30",
          (Relation(_down(0, kind="few"), ">", _down(80, kind="few")), Relation(_down(80, REGULATED, kind="few"), ">", _down(80, kind="few")))),
    Claim("11b", "S", "300 m: the same with a larger loss than with 200 m",
          (Relation(_down(0, kind="wide"), ">", _down(80, kind="wide"), 1.2), Relation(_down(80, REGULATED, kind="wide"), ">", _down(80, kind="wide")))),
)  # fmt: skip


def page(found: Found) -> str:
    """Claims, then the sweeps behind them."""
    return "\n\n".join([
        f"Of the claims that a reproduction is judged on, {score(CLAIMS, found)} agree. Mb/s of goodput, means over the seeds.",
        claims_table(CLAIMS, found),
        "## Shares of multipath users (Figures 5, 10, 11, 18)",
        "All access points together; in brackets the mean of a single-path and of a multipath user.",
        _shares(found),
        "## Execution interval and alpha (Figures 14, 15)",
        "At wifi1, demand of Tier 1 10 and 5 Mb/s in turn, 10 s each. T1-BW-Un in brackets without negative terms.",
        _sweeps(found),
        "## Walking users (Figure 16)",
        markdown_table(("primaries are chosen every", *(f"{each} s" for each in CATEGORISED_S)),
                 [["Mb/s", *(f"{average(found, _name('walk', each), 'T'):.1f}" for each in CATEGORISED_S)]]),
    ])  # fmt: skip


def _shares(found: Found) -> str:
    rows = []
    for case in CASES:
        if case.scenario == "thirty_users":
            kind, percent, strategy, cc = case.name.split("-")
            total, single, multi = (average(found, case.name, number) for number in NUMBERS_SHOWN)
            rows.append((kind, cc, strategy, percent, f"{total:.1f} ({single:.2f}, {multi:.2f})"))
    table: dict[tuple[str, str, str], dict[str, str]] = {}
    for kind, cc, strategy, percent, text in rows:
        table.setdefault((kind, cc, strategy), {})[percent] = text
    heads = [str(each) for each in SHARES]
    named = {
        "down": "30 users, 200 m",
        "up": "30 users, 200 m, uploads",
        "few": "15 users",
        "wide": "300 m",
    }
    lines = [
        [f"{named[kind]}, {cc}", strategy, *(row.get(each, "-") for each in heads)]
        for (kind, cc, strategy), row in table.items()
    ]
    return markdown_table(("", "strategy", *(f"{each} %" for each in heads)), lines)


def _sweeps(found: Found) -> str:
    rows = []
    for key, values in (("interval_s", INTERVALS_S), ("alpha", ALPHAS)):
        for value in values:
            lacking, positive, tier2 = (
                average(found, _name("swap", key, value), number) for number in ("un", "un+", "ac")
            )
            rows.append([key, f"{value:g}", f"{lacking:.2f} ({positive:.2f})", f"{tier2:.2f}"])
    return markdown_table(("parameter", "", "T1-BW-Un", "T2-BW-Ac"), rows)


CASES = tuple(_cases())
MP_SDN = Paper(
    "mp_sdn", "Second paths over WiFi and LTE, regulated by the network", CASES, measure, page
)
