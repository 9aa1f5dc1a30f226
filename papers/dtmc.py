"""The DTMC paper (DTMC: discrete-time Markov chain). It forecasts the throughput of Multipath TCP
with a Markov chain, and chooses a few of many paths.

There are fifteen paths. Path i has a rate of i Mb/s, a one-way delay of 10 i ms and a loss of i - 1
%. Each experiment has the first n paths. The strategy `none` uses all n paths; `subflow_selection`
and `optimum` choose some of them. The receive buffer is 100 kB, and the congestion control is
BALIA.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from lab.results.documents import FinishedRun
from lab.results.tables import markdown_table
from lab.run.reading import read_events
from papers.base import (
    FRAME_BITS,
    PAYLOAD,
    Case,
    Claim,
    Paper,
    average,
    joined,
)
from papers.relations import (
    Constant,
    Found,
    Judged,
    Numbers,
    Operator,
    Relation,
    Value,
    within,
)

PLAIN, CHOSEN, BEST = "none", "subflow_selection", "optimum"
PATHS = 15
COUNTS = tuple(range(1, PATHS + 1))
SEVERAL = COUNTS[1:]  # with two paths or more there is a choice
FROM_FOUR = COUNTS[3:]
CHAIN_PATHS = ((8, 80), (8, 80), (18, 180))  # Mb/s and packets of queue, 120 ms (Figures 2 to 4)
LOSSES = (0.0, 0.05)


def _path(mbps: float, delay_ms: float, loss: float, queue: int) -> str:
    return f"{{rate_mbps: {mbps}, delay_ms: {delay_ms}, loss: {loss:g}, queue_packets: {queue}}}"


def _uneven(n: int) -> str:
    """Return path `n` as a YAML entry of `topology.paths`. The path has a rate of n Mb/s, a one-way
    delay of 10 n ms, and a loss of (n - 1) %.

    The queue of the path is one bandwidth-delay product, but at least 10 packets.
    """
    return _path(n, 10 * n, (n - 1) / 100, max(10, round(n * 20_000 * n / FRAME_BITS)))


def first(n: int, strategy: str) -> str:
    """Return the name of the experiment with the first `n` paths and `strategy`."""
    return f"first-{n}-{strategy}"


def _chain(n: int, loss: float) -> str:
    return f"chain-{n}-{loss:g}"


def _first_case(n: int, strategy: str) -> Case:
    paths = ", ".join(_uneven(k) for k in range(1, n + 1))
    settings = (f"topology.paths=[{paths}]", "sample_interval_s=5")
    return Case(first(n, strategy), "fifteen_paths", settings, None, strategy, 60)


def _chain_case(n: int, loss: float) -> Case:
    paths = ", ".join(_path(mbps, 60, loss, queue) for mbps, queue in CHAIN_PATHS[:n])
    settings = (f"topology.paths=[{paths}]", "sample_interval_s=5")
    return Case(_chain(n, loss), "three_paths", settings)


def _cases() -> Iterable[Case]:
    for n in COUNTS:
        for strategy in (PLAIN, CHOSEN, BEST) if n > 1 else (PLAIN,):
            yield _first_case(n, strategy)
    for n in (2, 3):
        for loss in LOSSES:
            yield _chain_case(n, loss)


def measure(_case: Case, run: FinishedRun) -> Numbers:
    """Return the measured numbers of a run by name.

    `T` is the goodput in Mb/s. `forecast` is the strategy's last forecast of the goodput in Mb/s,
    and `active` is the number of subflows that the strategy chose with this forecast. `rtt` is the
    mean RTT in ms. `out_of_order`, `retransmitted` and `lost` are percentages of all segments.
    """
    (connection,) = run.result["connections"]
    subflows = connection["subflows"]
    segments = sum(each["segments"] for each in subflows)
    forecasts = [
        each
        for each in read_events(run.folder)
        if each["kind"] == "decision" and each.get("action") == "forecast"
    ]
    last = forecasts[-1] if forecasts else {"active": subflows, "forecast_mbps": 0.0}

    def percent(number: str) -> float:
        return 100 * float(sum(each[number] for each in subflows)) / float(segments)

    return {
        "T": run.result["throughput_mbps"],
        "out_of_order": 100 * (connection["out_of_order_fraction"] or 0.0),
        "retransmitted": percent("retransmitted_segments"),
        "lost": percent("lost_segments"),
        "rtt": sum(each["rtt_ms_mean"] * each["segments"] for each in subflows if each["segments"])
        / segments,
        "active": float(len(last["active"])),
        "forecast": last["forecast_mbps"] * PAYLOAD,  # the forecast counts frames
    }


def _of(case: str, number: str = "T") -> Value:
    return Value(case, number, f"{number}({case})")


def _all(n: int, number: str = "T") -> Value:
    return _of(first(n, PLAIN), number)


def _chosen(
    operator: Operator, counts: Iterable[int], times: float = 1.0, other: str = PLAIN
) -> tuple[Judged, ...]:
    """Return one relation for each number of paths in `counts`. The left side is the goodput with
    the chosen paths. The right side is `times` the goodput with the strategy `other`."""
    return tuple(
        Relation(_of(first(n, CHOSEN)), operator, _of(first(n, other)), times) for n in counts
    )


def _less_with_chosen(number: str) -> tuple[Judged, ...]:
    """Return relations that say: `number` is smaller with the chosen paths than with all paths, for
    four to fifteen paths. `number` is a key in the result of `measure`."""
    return tuple(Relation(_all(n, number), ">", _of(first(n, CHOSEN), number)) for n in FROM_FOUR)


FORECAST = tuple(
    relation
    for n in (2, 3)
    for loss in LOSSES
    for relation in within(_of(_chain(n, loss), "forecast"), _of(_chain(n, loss)), 0.9, 1.1)
)
FULL_MESH = (
    *(Relation(_all(b), ">", _all(a)) for a, b in pairwise(COUNTS[:3])),
    *(Relation(_all(n), "<=", _all(3)) for n in FROM_FOUR),
    Relation(_all(3), ">", _all(PATHS)),
)
LOSSY = (
    "With a loss of 5 % less is carried than forecast, because windows of three to five segments "
    "often end in a timeout, which the chain does not model. With the timeouts of Padhye et al. "
    "(SIGCOMM 1998, eq (30); 5 %, 120 ms, RTO 320 ms) a path carries 0.76 of what it carries "
    "without them; here 0.87 and 0.75 of the forecasts are measured"
)
SMALL_BUFFER = (
    "The gain grows as the receive buffer shrinks: with fifteen paths 1.12 at 100 kB, 1.24 at 50 "
    "and 1.39 at 25 (sensitivity page). The 20 % are ours, because the paper gives no figure"
)
SCHEDULERS = (
    "It holds with the papers' kernel, and the relations that were run hold there with each "
    "receive buffer from 25 to 400 kB (sensitivity page). With today's scheduler 45 to 47 % are "
    "out of order with all paths, and 49 % with the chosen ones"
)
CLAIMS = (
    Claim("3", "S", "The forecast is within 10 % of the goodput", FORECAST, False, LOSSY, "paper"),
    Claim(
        "5, full mesh",
        "S",
        "Up to three paths, each path adds throughput; with more, throughput does not grow, and "
        "with fifteen it is lower than with three",
        FULL_MESH,
        True,
    ),
    Claim(
        "5, chosen",
        "S",
        "From four paths on, the chosen paths carry at least as much as all paths",
        _chosen(">=", FROM_FOUR),
        True,
    ),
    Claim(
        "5, more",
        "S",
        "From eight paths on, the chosen paths carry 20 % more than all paths",
        _chosen(">", COUNTS[7:], 1.2),
        False,
        SMALL_BUFFER,
        "setting",
    ),
    Claim(
        "5, optimum",
        "S",
        "The chosen paths carry within 10 % of what the best choice carries",
        _chosen(">=", SEVERAL, 0.9, BEST) + _chosen("<=", SEVERAL, 1.1, BEST),
        True,
    ),
    Claim(
        "6",
        "S",
        "From four paths on, fewer segments arrive out of order with the chosen paths than with "
        "all",
        _less_with_chosen("out_of_order"),
        True,
        SCHEDULERS,
        "setting",
    ),
    Claim(
        "7",
        "S",
        "From four paths on, fewer segments are retransmitted",
        _less_with_chosen("retransmitted"),
        True,
    ),
    Claim("8", "S", "From four paths on, fewer segments are lost", _less_with_chosen("lost")),
    Claim(
        "9, 10",
        "S",
        "Of four paths, three are chosen",
        (Relation(_of(first(4, CHOSEN), "active"), "~", Constant(3.0)),),
        True,
    ),
    Claim("11", "S", "From four paths on, the RTT is shorter", _less_with_chosen("rtt"), True),
)


def tables(found: Found) -> str:
    """Return Markdown tables of the goodput by number of paths, and of the forecasts."""
    return joined(
        "## The first n of fifteen paths (Figures 5 to 11)",
        f"Goodput in Mb/s with all paths (`{PLAIN}`), with those that `{CHOSEN}` chooses (in "
        f"brackets: how many, and the forecast) and with the best choice (`{BEST}`). The other "
        "columns compare all paths with the chosen paths: percent of segments out of order, "
        "retransmitted and lost, and the mean RTT.",
        _counts(found),
        "## Forecast and measured (Figures 2 to 4)",
        "Paths of 120 ms with 8, 8 and 18 Mb/s; goodput in Mb/s.",
        _forecasts(found),
    )


def _counts(found: Found) -> str:
    rows = []
    for n in COUNTS:
        plain, chosen, best = (first(n, each) for each in (PLAIN, CHOSEN, BEST))
        row = [str(n), f"{average(found, plain, 'T'):.2f}"]
        if n > 1:
            active, forecast = (average(found, chosen, each) for each in ("active", "forecast"))
            row.append(f"{average(found, chosen, 'T'):.2f} ({active:g}; {forecast:.2f})")
            row.append(f"{average(found, best, 'T'):.2f}")
            row += [
                f"{average(found, plain, number):.1f}, {average(found, chosen, number):.1f}"
                for number in ("out_of_order", "retransmitted", "lost", "rtt")
            ]
        rows.append([*row, *["-"] * (8 - len(row))])
    shares = ("out of order, %", "retransmitted, %", "lost, %")
    return markdown_table(("n", "all", "chosen", "best", *shares, "RTT, ms"), rows)


def _forecasts(found: Found) -> str:
    rows = []
    for n in (2, 3):
        for loss in LOSSES:
            forecast, measured = (
                average(found, _chain(n, loss), each) for each in ("forecast", "T")
            )
            rows.append([str(n), f"{100 * loss:g} %", f"{forecast:.2f}", f"{measured:.2f}"])
    return markdown_table(("paths", "loss", "forecast", "measured"), rows)


DTMC = Paper(
    "dtmc",
    "Select a few of many paths by a Markov chain",
    tuple(_cases()),
    measure,
    tables,
    CLAIMS,
    "T is goodput in Mb/s; first-n are the first n of fifteen paths.",
)
