"""The experiments of MPTCP-LA (loss-aware MPTCP), and the numbers measured in each run.

There are two paths without jitter: WiFi with an RTT of 10 ms, and LTE with an RTT of 75 ms. One of
them loses packets. Users download with BALIA and a receive buffer of 1000 kB. In further
experiments, plain TCP uses one path alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

from lab.results.documents import FinishedRun
from lab.results.statistics import mean
from lab.run.reading import read_frames
from papers.base import FRAME_BITS, Case
from papers.relations import Numbers

PLAIN, AWARE = "none", "loss_aware"
MBPS = (10, 20, 30, 40, 50)
LOSSES = (0.0, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
RTT_MS = {"wifi": 10, "lte": 75}
GAMMA = {"wifi": 1e-4, "lte": 1e-2}  # the loss from which a path is left, section 4.3.1
Pair = tuple[int, int]  # Mb/s of WiFi and of LTE
PAIRS: tuple[Pair, ...] = tuple(product(MBPS, MBPS))
QUICK_PAIRS: tuple[Pair, ...] = tuple(product(MBPS[::2], MBPS[::2]))
DURATION_S = 20
DYNAMIC = "dynamic"
SUBFLOWS = {"wifi": "ue1-1/1", "lte": "ue1-1/2"}
ENTRY = (  # of `topology.paths`, in YAML
    "{{rate_mbps: {rate_mbps}, delay_ms: {delay_ms}, loss: {loss:.5f}, "
    "queue_packets: {queue_packets}}}"
)
PHASES_S = {"before": (10, 30), "lossy": (31, 60), "late": (75, 90)}


def pair_name(side: str, loss: float, pair: Pair, strategy: str) -> str:
    """Return the name of the experiment with two paths.

    `side` ("wifi" or "lte") is the path that loses packets, and `loss` is the fraction that it
    loses. `pair` has the rates of WiFi and LTE in Mb/s.
    """
    lossy = f"{side}-{loss:g}" if loss else "clean"
    return f"{lossy}-{pair[0]}-{pair[1]}-{strategy}"


def alone_name(side: str, loss: float, mbps: int) -> str:
    """Return the name of the experiment with plain TCP over one path.

    `side` is "wifi" or "lte". `loss` is a fraction from 0 to 1, and `mbps` is the rate of the path
    in Mb/s.
    """
    return f"alone-{side}-{loss:g}-{mbps}"


def cases(pairs: Iterable[Pair] = PAIRS) -> Iterable[Case]:
    pairs = tuple(pairs)
    for strategy, pair in product((PLAIN, AWARE), pairs):
        for side, loss in product(RTT_MS, LOSSES):
            if loss or side == "wifi":
                yield _pair_case(side, loss, pair, strategy)
    for side, loss, mbps in product(RTT_MS, LOSSES, sorted({wifi for wifi, _ in pairs})):
        settings = (_setting([_path(side, mbps, loss)]), "sample_interval_s=5")
        name = alone_name(side, loss, mbps)
        yield Case(name, "static_loss", settings, None, PLAIN, DURATION_S)
    for strategy in (PLAIN, AWARE):
        yield Case(f"{DYNAMIC}-{strategy}", "dynamic_loss", (), None, strategy)


def _path(side: str, mbps: int, loss: float) -> dict[str, float]:
    """Return one path as an entry of `topology.paths`. `side` is "wifi" or "lte".

    The queue of the path is one bandwidth-delay product, but at least 50 packets.
    """
    queue = max(50, round(mbps * 1000 * RTT_MS[side] / FRAME_BITS))
    return {
        "rate_mbps": mbps,
        "delay_ms": RTT_MS[side] / 2,
        "loss": loss,
        "queue_packets": queue,
    }


def paths(side: str, loss: float, pair: Pair) -> list[dict[str, float]]:
    """Return both paths as entries of `topology.paths`. `pair` has the rates of WiFi and LTE in
    Mb/s.

    `side` ("wifi" or "lte") is the path that loses packets, and `loss` is a fraction from 0 to 1.
    """
    return [
        _path(each, mbps, loss if each == side else 0.0)
        for each, mbps in zip(RTT_MS, pair, strict=True)
    ]


def _setting(entries: Iterable[dict[str, float]]) -> str:
    return f"topology.paths=[{', '.join(ENTRY.format(**each) for each in entries)}]"


def _pair_case(side: str, loss: float, pair: Pair, strategy: str) -> Case:
    settings = [_setting(paths(side, loss, pair)), "sample_interval_s=5"]
    if strategy == AWARE:
        settings.append(f"strategy.params.gamma_wired={GAMMA[side]}")
    named = None if strategy == AWARE else strategy  # parameters need the scenario's own strategy
    name = pair_name(side, loss, pair, strategy)
    return Case(name, "static_loss", tuple(settings), None, named, DURATION_S)


def measure(case: Case, run: FinishedRun) -> Numbers:
    """Return the measured numbers of a run by name. `T` is the goodput in Mb/s. If the loss changes
    during the run, there are more numbers.

    `wifi_before`, `wifi_lossy`, `wifi_late`, `lte_before`, `lte_lossy` and `lte_late` are the mean
    rates of the two paths in three phases of the run, in Mb/s. `wifi_lossy_most` is the highest
    rate of WiFi while it loses packets. `wifi_back_most` is the highest rate of WiFi in the 5 s
    after it has stopped losing packets.
    """
    numbers = {"T": float(run.result["throughput_mbps"])}
    if not case.name.startswith(DYNAMIC):
        return numbers
    frames = read_frames(run.folder)

    def rates(side: str, after_s: float, until_s: float) -> list[float]:
        return [each.sf[SUBFLOWS[side]].mbps for each in frames if after_s < each.t <= until_s]

    for side, (phase, span) in product(SUBFLOWS, PHASES_S.items()):
        numbers[f"{side}_{phase}"] = mean(rates(side, *span))
    return numbers | {
        "wifi_lossy_most": max(rates("wifi", 31, 60)),
        "wifi_back_most": max(rates("wifi", 60, 65)),
    }
