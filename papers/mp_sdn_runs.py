"""The experiments of MP-SDN, and the numbers measured in each run. Rates are goodput in Mb/s.

Tier 1 is the traffic over the users' primary access points. Tier 2 is the traffic of multipath
users over other access points. MP-SDN limits Tier 2 so that Tier 1 gets what it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from lab.frame import Frame
from lab.results.documents import FinishedRun
from lab.results.statistics import mean
from lab.run.reading import read_frames
from papers.base import Case
from papers.relations import Numbers

NONE, REGULATED = "none", "meter_throttling"
SHARES = (0, 20, 40, 60, 80)  # percent of the users that are multipath
CONGESTION_CONTROLS = ("reno", "olia")
INTERVALS_S = (1, 1.5, 2, 2.5, 3, 3.5)
ALPHAS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
CATEGORISED_S = (2, 5, 10, 25, 45)
GOODPUT = 1448 / 1514  # the share of a frame that is data
SWAP_S = 10  # Tier 1 demands 10 and 5 Mb/s in turn, for so long each (Figures 14 and 15)
DEMAND_PHASES_S = {"before": (5, 15), "low": (20, 30), "after": (34.5, 45)}
Frames = Sequence[Frame]
Measure = Callable[[FinishedRun, Frames], Numbers]


def name(kind: str, *parts: object) -> str:
    """Return the name of an experiment: its kind and its parameters, joined by `-`."""
    return "-".join(map(str, (kind, *parts)))


def share_name(percent: int, strategy: str, cc: str, kind: str = "down") -> str:
    """Return the name of the experiment in which `percent` percent of the users are multipath
    users.

    `kind` is "down" (download), "up" (upload), "few" (15 users) or "wide" (an area of 300 m).
    """
    return name(kind, percent, strategy, cc)


def cases() -> Iterable[Case]:
    yield from _share_cases()
    for interval_s in INTERVALS_S:
        yield _swap_case("interval_s", interval_s)
    for alpha in ALPHAS:
        yield _swap_case("alpha", alpha)
    yield Case("demand", "demand_swap", duration_s=45)
    for interval_s in CATEGORISED_S:
        settings = (
            f"strategy.params.categorisation_interval_s={interval_s}",
            "sample_interval_s=1",
        )
        yield Case(name("walk", interval_s), "moving_users", settings)
    yield Case("testbed-alone", "testbed_wifi_lte", ("topology.multipath=[]",), None, NONE, 40)
    for strategy in (NONE, REGULATED):
        yield Case(name("testbed", strategy), "testbed_wifi_lte", (), None, strategy, 40)
    yield Case("idle-wifi", "idle_wifi", duration_s=40)
    yield Case("idle-lte", "idle_lte", duration_s=40)


def _share_cases() -> Iterable[Case]:
    for cc in CONGESTION_CONTROLS:
        for percent in SHARES:
            for strategy in (NONE, REGULATED) if percent else (NONE,):
                yield _share_case(percent, strategy, cc)
    for percent, strategy in ((0, NONE), (80, NONE), (80, REGULATED)):
        yield _share_case(percent, strategy, "reno", "up", "traffic_direction=up")
        yield _share_case(percent, strategy, "reno", "few", "topology.users=15")
        yield _share_case(percent, strategy, "reno", "wide", "topology.area_m=300")


def _share_case(percent: int, strategy: str, cc: str, kind: str = "down", *settings: str) -> Case:
    settings = (f"topology.multipath_percent={percent}", "sample_interval_s=1", *settings)
    case = share_name(percent, strategy, cc, kind)
    return Case(case, "thirty_users", settings, cc, strategy, 30)


def _swap_case(key: str, value: float) -> Case:
    levels = ((at_s, _demand_mbps(at_s + 1)) for at_s in range(0, 60, SWAP_S))
    events = ", ".join(
        f"{{at_s: {at_s}, target: cell.wifi1.tier1_mbps, value: {mbps:g}}}" for at_s, mbps in levels
    )
    settings = (f"events=[{events}]", f"strategy.params.{key}={value}")
    return Case(name("swap", key, value), "demand_swap", settings, None, None, 60)


def measure(case: Case, run: FinishedRun) -> Numbers:
    """Return the measured numbers of a run by name. Rates are goodput in Mb/s.

    `T` is the total of all access points. `sp` and `mp` are the means of single-path and of
    multipath users. `T_ID` is the rate of the access point or user with this id. `t2_ID` is the
    rate of Tier 2 (secondary subflows) at an access point. `OWN` lists functions that measure more
    numbers in some experiments.
    """
    result = run.result
    users = result["users"].values()
    numbers = {"T": sum(each["throughput_mbps"] for each in result["aps"].values())}
    for short, kind in (("sp", "single_path"), ("mp", "multipath")):
        rates = [each["throughput_mbps"] for each in users if each["kind"] == kind]
        numbers[short] = mean(rates) if rates else 0.0
    numbers |= {f"t2_{ap}": each["tier2_mbps"] for ap, each in result["aps"].items()}
    numbers |= {f"T_{ap}": each["throughput_mbps"] for ap, each in result["aps"].items()}
    numbers |= {f"T_{user}": each["throughput_mbps"] for user, each in result["users"].items()}
    own = next((own for prefix, own in OWN.items() if case.name.startswith(prefix)), None)
    if own is None:
        return numbers
    return {**numbers, **own(run, read_frames(run.folder))}


def swapped(_run: FinishedRun, frames: Frames) -> Numbers:
    """Return mean rates at access point wifi1 in Mb/s. The primary (Tier 1) users of wifi1 ask
    alternately for 10 and 5 Mb/s.

    `un` is this demand minus the rate of Tier 1 (T1-BW-Un in MP-SDN, section VI-C). For `un+`,
    negative differences count as 0. `ac` is the rate of Tier 2, the secondary subflows (T2-BW-Ac).
    """
    cells = [frame.ap["wifi1"] for frame in frames]
    lacking = [
        _demand_mbps(frame.t) * GOODPUT - (cell.tier1_mbps or 0.0)
        for frame, cell in zip(frames, cells, strict=True)
    ]
    return {
        "un": mean(lacking),
        "un+": mean([max(0.0, each) for each in lacking]),
        "ac": mean([cell.tier2_mbps or 0.0 for cell in cells]),
    }


def demanded(_run: FinishedRun, frames: Frames) -> Numbers:
    """Return mean rates at wifi2 in Mb/s, for each phase of the run (MP-SDN, Figure 13). `t1_PHASE`
    is the rate of the primary subflows (Tier 1), and `t2_PHASE` that of the secondary subflows
    (Tier 2).

    The Tier 1 demand is high in the phase `before`, low in `low`, and high again in `after`. The
    last phase begins two control intervals after the demand has risen.
    """
    numbers = {}
    for phase, (start, end) in DEMAND_PHASES_S.items():
        cells = [frame.ap["wifi2"] for frame in frames if start < frame.t <= end]
        numbers[f"t1_{phase}"] = mean([cell.tier1_mbps or 0.0 for cell in cells])
        numbers[f"t2_{phase}"] = mean([cell.tier2_mbps or 0.0 for cell in cells])
    return numbers


def second_half(user: str, ap: str) -> Measure:
    """Return a function that measures one number of a run, called `used`. It is the mean rate of
    `user` over access point `ap` in the second half of the run, in Mb/s."""

    def used(run: FinishedRun, frames: Frames) -> Numbers:
        subflows = [
            subflow["id"]
            for each in run.result["connections"]
            if each["user"] == user
            for subflow in each["subflows"]
            if ap in subflow["path"]
        ]
        half = [frame.sf for frame in frames if frame.t > frames[-1].t / 2]
        rates = [sum(each[id_].mbps for id_ in subflows if id_ in each) for each in half]
        return {"used": mean(rates)}

    return used


def _demand_mbps(end_s: float) -> float:
    """Return what primary (Tier 1) users ask for in the sample that ends at `end_s`: alternately 10
    and 5 Mb/s."""
    return 10.0 if (end_s - 1e-6) // SWAP_S % 2 == 0 else 5.0


OWN = {
    "swap": swapped,
    "demand": demanded,
    "idle-wifi": second_half("ue3", "wifi1"),
    "idle-lte": second_half("ue2", "lte1"),
}
