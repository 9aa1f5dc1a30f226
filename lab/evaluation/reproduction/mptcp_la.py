"""MPTCP-LA: what a second path brings when one of them loses packets, and what it brings to leave that one. Pure.

Two paths with round trips of 10 ms (WiFi) and 75 ms (LTE), no jitter, downloads under BALIA, a receive buffer of 1000 kB; one path
loses packets. Ben is eq (1) (`lab.evaluation.benefit`): of each pair of bandwidths the mean over seeds, and as in the paper the largest of all seeds for what
a path carries alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from lab.evaluation.benefit import benefit
from lab.evaluation.reproduction.base import (
    FRAME_BITS,
    PAYLOAD,
    Case,
    Claim,
    Constant,
    Every,
    Found,
    Judged,
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

PLAIN, AWARE = "none", "loss_aware"
MBPS = (10, 20, 30, 40, 50)
LOSSES = (0.0, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)  # 0 is no loss at all
RTT_MS = {"wifi": 10, "lte": 75}
GAMMA = {"wifi": 1e-4, "lte": 1e-2}  # section 4.3.1
TITLES = {"wifi": "WiFi", "lte": "LTE"}
PAIRS = tuple(product(MBPS, MBPS))  # of WiFi and LTE
TCP_PAYLOAD = 1448 / 1514  # of a frame of plain TCP
DURATION_S = 20
NOISE = 0.02  # in a median that should not rise
DYNAMIC = "dynamic"


def _path(side: str, mbps: int, loss: float) -> str:
    """As the scenario writes one: a queue of one bandwidth-delay product, 50 packets at least."""
    queue = max(50, round(mbps * 1000 * RTT_MS[side] / FRAME_BITS))
    return f"{{rate_mbps: {mbps}, delay_ms: {RTT_MS[side] / 2}, loss: {loss:.5f}, queue_packets: {queue}}}"


def _both(side: str, loss: float, pair: tuple[int, int], strategy: str) -> Case:
    paths = [
        _path(each, mbps, loss if each == side else 0.0)
        for each, mbps in zip(RTT_MS, pair, strict=True)
    ]
    settings = [f"topology.paths=[{', '.join(paths)}]", "sample_interval_s=5"]
    if strategy == AWARE:
        settings.append(f"strategy.params.gamma_wired={GAMMA[side]}")
    own = None if strategy == AWARE else strategy  # the scenario's own strategy takes parameters
    return Case(
        _name(side, loss, pair, strategy), "static_loss", tuple(settings), None, own, DURATION_S
    )


def _name(side: str, loss: float, pair: tuple[int, int], strategy: str) -> str:
    return (
        f"{side}-{loss:g}-{pair[0]}-{pair[1]}-{strategy}"
        if loss
        else f"clean-{pair[0]}-{pair[1]}-{strategy}"
    )


def _alone(side: str, loss: float, mbps: int) -> Case:
    settings = (f"topology.paths=[{_path(side, mbps, loss)}]", "sample_interval_s=5")
    return Case(f"alone-{side}-{loss:g}-{mbps}", "static_loss", settings, None, PLAIN, DURATION_S)


def _cases() -> Iterable[Case]:
    for strategy, pair in product((PLAIN, AWARE), PAIRS):
        for side, loss in product(RTT_MS, LOSSES):
            if loss or side == "wifi":
                yield _both(side, loss, pair, strategy)
    for side, loss, mbps in product(RTT_MS, LOSSES, MBPS):
        yield _alone(side, loss, mbps)
    for strategy in (PLAIN, AWARE):
        yield Case(f"{DYNAMIC}-{strategy}", "dynamic_loss", (), None, strategy)


def measure(case: Case, result: Mapping[str, Any], folder: Path) -> Numbers:
    """Mb/s in all; of the run whose loss changes also of both paths, before, during and after the loss."""
    numbers = {"T": float(result["throughput_mbps"])}
    if not case.name.startswith(DYNAMIC):
        return numbers
    frames = list(read_lines(folder / "samples.jsonl"))
    names = {"wifi": "ue1-1/1", "lte": "ue1-1/2"}

    def rates(side: str, after_s: float, until_s: float) -> list[float]:
        return [
            each["sf"][names[side]]["mbps"] for each in frames if after_s < each["t"] <= until_s
        ]

    for side in names:
        for when, span in {"before": (10, 30), "lossy": (31, 60), "late": (75, 90)}.items():
            numbers[f"{side}_{when}"] = mean(rates(side, *span))
    return numbers | {
        "wifi_lossy_most": max(rates("wifi", 31, 60)),
        "wifi_back_most": max(rates("wifi", 60, 65)),
    }


# --- the benefit of all pairs together


@dataclass(frozen=True)
class Benefit:
    """Ben of every pair of bandwidths, while one side loses so much."""

    side: str
    loss: float
    strategy: str = PLAIN

    def of(self, found: Found) -> list[float]:
        """One for each pair; a pair that carries nothing over any path alone is left out."""
        values = []
        for pair in PAIRS:
            alone = [
                self._alone(found, side, mbps) for side, mbps in zip(RTT_MS, pair, strict=True)
            ]
            runs = [
                benefit(each["T"], alone)
                for each in found[_name(self.side, self.loss, pair, self.strategy)]
            ]
            if (known := [each for each in runs if each is not None]) != []:
                values.append(mean(known))
        return values

    def _alone(self, found: Found, side: str, mbps: int) -> float:
        """Plain TCP has room for 28 bytes more in a segment, which are taken off."""
        loss = self.loss if side == self.side else 0.0
        return (
            max(each["T"] for each in found[_alone(side, loss, mbps).name]) * PAYLOAD / TCP_PAYLOAD
        )

    def median(self, found: Found) -> float:
        return median(self.of(found))

    @property
    def title(self) -> str:
        return f"Ben({TITLES[self.side]} loses {100 * self.loss:g} %{'' if self.strategy == PLAIN else f', {self.strategy}'})"


@dataclass(frozen=True)
class Falls:
    """The median does not rise from one loss to the next, by NOISE at most."""

    side: str

    def verdict(self, found: Found) -> Verdict:
        medians = [Benefit(self.side, loss).median(found) for loss in LOSSES]
        return (
            "holds"
            if all(after <= before + NOISE for before, after in pairwise(medians))
            else "fails"
        )

    def shown(self, found: Found) -> str:
        medians = (f"{Benefit(self.side, loss).median(found):.2f}" for loss in LOSSES)
        return f"{TITLES[self.side]} loses {', '.join(f'{100 * loss:g}' for loss in LOSSES)} %: {', '.join(medians)}"


@dataclass(frozen=True)
class Bound:
    """A median is above a limit, or is not."""

    benefit: Benefit
    above: bool
    limit: float

    def verdict(self, found: Found) -> Verdict:
        value = self.benefit.median(found)
        return "holds" if (value > self.limit if self.above else value <= self.limit) else "fails"

    def shown(self, found: Found) -> str:
        return f"median {self.benefit.title} {self.benefit.median(found):.2f} {'>' if self.above else '<='} {self.limit:g}"


@dataclass(frozen=True)
class ThresholdsApart:
    """The loss from which a second path brings nothing is at least ten times as large on LTE as on WiFi."""

    def _from(self, found: Found, side: str) -> float | None:
        """The smallest such loss of those that were tried."""
        return next((loss for loss in LOSSES if Benefit(side, loss).median(found) <= 0), None)

    def verdict(self, found: Found) -> Verdict:
        wifi, lte = (self._from(found, side) for side in ("wifi", "lte"))
        if wifi is None or wifi == 0 or (lte is None and 10 * wifi > LOSSES[-1]):
            return "open"
        return "holds" if lte is None or lte >= 9.99 * wifi else "fails"

    def shown(self, found: Found) -> str:
        losses = {title: self._from(found, side) for side, title in TITLES.items()}
        words = (
            f"{title} {'at no loss tried' if loss is None else f'from {100 * loss:g} %'}"
            for title, loss in losses.items()
        )
        return "median Ben <= 0: " + ", ".join(words)


# --- claims


def _t(side: str, loss: float, pair: tuple[int, int], strategy: str) -> Value:
    return Value(
        _name(side, loss, pair, strategy),
        "T",
        f"T({TITLES[side]} {100 * loss:g} %, {pair[0]}+{pair[1]}, {strategy})",
    )


def _aware(
    side: str, losses: Iterable[float], pairs: Iterable[tuple[int, int]], operator: str
) -> tuple[Judged, ...]:
    return tuple(
        Relation(_t(side, loss, pair, AWARE), operator, _t(side, loss, pair, PLAIN))  # type: ignore[arg-type]
        for loss in losses
        for pair in pairs
    )


def _within_a_tenth(pairs: Iterable[tuple[int, int]]) -> Iterable[Judged]:
    for loss, pair in product((1e-3, 1e-2, 1e-1), pairs):
        aware, plain = _t("wifi", loss, pair, AWARE), _t("wifi", loss, pair, PLAIN)
        yield from (Relation(aware, ">=", plain, 0.9), Relation(aware, "<=", plain, 1.1))


def _dynamic(strategy: str, number: str) -> Value:
    return Value(f"{DYNAMIC}-{strategy}", number, f"{number}({strategy})")


LARGE, SMALL = [pair for pair in PAIRS if pair[0] >= 30], [pair for pair in PAIRS if pair[0] == 10]
KEEPS = "A path of 10 ms that loses 0.01 % could still carry 140 Mb/s (Mathis), and what it loses is there again within a round trip, which the receive buffer covers: so it brings nearly all it has, here. It is LTE, with its longer round trip, that loss slows first"
LEAVES = "What is left at its threshold still brings something here (claim 3a)"
BACK = "The window is back within seconds after the last loss"
CLAIMS = (
    Claim("3", "S", "The median benefit falls as a path loses more (by 0.02 it may rise)", (Falls("wifi"), Falls("lte")), True),
    Claim("3a", "S", "Nothing is gained by a WiFi path that loses 0.01 % or more", tuple(Bound(Benefit("wifi", loss), False, 0.0) for loss in LOSSES[2:]), False, KEEPS),
    Claim("3b", "S", "Nothing is gained by an LTE path that loses 1 % or more", tuple(Bound(Benefit("lte", loss), False, 0.0) for loss in LOSSES[4:]), False, KEEPS),
    Claim("3a/b", "S", "LTE may lose ten times as much as WiFi before it brings nothing", (ThresholdsApart(),), True, KEEPS),
    Claim("3, 0 %", "S", "Without loss the second path brings something", (Bound(Benefit("wifi", 0.0), True, 0.0),)),
    Claim("4a", "S", "WiFi of 30 Mb/s or more loses 0.1 % or more: MPTCP-LA carries as much as MPTCP or more", _aware("wifi", (1e-3, 1e-2, 1e-1), LARGE, ">="), True, LEAVES),
    Claim("4a, more", "S", "... and clearly more, from 0.01 % on", _aware("wifi", (1e-4, 1e-3, 1e-2, 1e-1), LARGE, ">"), False, LEAVES),
    Claim("4a, 10", "S", "WiFi of 10 Mb/s: both within a tenth", tuple(_within_a_tenth(SMALL)), True, LEAVES),
    Claim("4b", "S", "LTE loses 1 % or more: MPTCP-LA carries as much as MPTCP or more", _aware("lte", (1e-2, 1e-1), PAIRS, ">="), False, LEAVES),
    Claim("4", "S", "MPTCP-LA is as good as the better path alone (median benefit about 0 or more)",
          tuple(Bound(Benefit(side, loss, AWARE), True, -0.05) for side in RTT_MS for loss in LOSSES if loss >= GAMMA[side])),
    Claim("5", "S", "Loss for half a minute: MPTCP-LA carries more than MPTCP", (Relation(_dynamic(AWARE, "T"), ">", _dynamic(PLAIN, "T")),), True),
    Claim("5, 50", "S", "... and MPTCP on average less than one path's 50 Mb/s", (Relation(_dynamic(PLAIN, "T"), "<=", Constant(50.0)),), False, BACK),
    Claim("6, LA", "S", "MPTCP-LA leaves WiFi within a second, below 1 Mb/s, and within 5 s after the loss has it back above 10 Mb/s",
          (Every(_dynamic(AWARE, "wifi_lossy_most"), "<=", 1.0), Every(_dynamic(AWARE, "wifi_back_most"), ">=", 10.0)), True),
    Claim("6, LTE", "S", "Meanwhile LTE carries more than under MPTCP, where it carries most as well",
          (Relation(_dynamic(AWARE, "lte_lossy"), ">", _dynamic(PLAIN, "lte_lossy")), Relation(_dynamic(PLAIN, "lte_lossy"), ">", _dynamic(PLAIN, "wifi_lossy")))),
    Claim("6, after", "S", "Under MPTCP WiFi hardly comes back after the loss (less than half of before)",
          (Relation(_dynamic(PLAIN, "wifi_late"), "<=", _dynamic(PLAIN, "wifi_before"), 0.5),), False, BACK),
)  # fmt: skip


def page(found: Found) -> str:
    """Claims, then the benefit by loss and the run whose loss changes."""
    return "\n\n".join([
        f"Of the claims that a reproduction is judged on, {score(CLAIMS, found)} agree. T is goodput in Mb/s; a+b are Mb/s of WiFi and of LTE.",
        claims_table(CLAIMS, found),
        "## Benefit of the second path (Figure 3) and of leaving it (Figure 4)",
        "Median, and first and third quartile, of 25 pairs of bandwidths; runs of 20 s, receive buffer 1000 kB, no jitter. What a path carries alone is counted with Multipath TCP's "
        "payload, 1420 of plain TCP's 1448 bytes.",
        _benefits(found),
        "## Loss for half a minute (Figures 5 and 6)",
        "Mb/s, means over the seeds: in all, and of each path from 10 to 30 s, from 31 to 60 s (5 % loss on WiFi) and from 75 to 90 s.",
        _dynamics(found),
    ])  # fmt: skip


def _benefits(found: Found) -> str:
    rows = []
    for side, strategy in product(RTT_MS, (PLAIN, AWARE)):
        cells = []
        for loss in LOSSES:
            values = Benefit(side, loss, strategy).of(found)
            first, middle, third = quantiles(values, n=4)
            cells.append(f"{middle:.2f} ({first:.2f}, {third:.2f})")
        rows.append([f"{TITLES[side]} loses", strategy, *cells])
    return markdown_table(("", "strategy", *(f"{100 * loss:g} %" for loss in LOSSES)), rows)


def _dynamics(found: Found) -> str:
    numbers = ("T", "wifi_before", "lte_before", "wifi_lossy", "lte_lossy", "wifi_late", "lte_late")
    titles = (
        "strategy",
        "in all",
        *(f"{side}, {when}" for when in ("before", "lossy", "after") for side in TITLES.values()),
    )
    rows = [
        [
            strategy,
            *(f"{average(found, f'{DYNAMIC}-{strategy}', number):.1f}" for number in numbers),
        ]
        for strategy in (PLAIN, AWARE)
    ]
    return markdown_table(titles, rows)


MPTCP_LA = Paper(
    "mptcp_la", "A path that loses packets: use it, or leave it", tuple(_cases()), measure, page
)
