"""Makes runs and shows their progress and results on the terminal."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from lab.batch.job import Job
from lab.batch.single import run_job
from lab.errors import LabError
from lab.results import labels
from lab.results.fairness import fairness, kinds_of_traffic
from lab.results.tables import cell_text, text_table
from lab.run import captured
from lab.run.outcome import Outcome, Progress
from lab.run.transfers import MEDIUM_MB, SMALL_MB
from lab.scenario import engine_table
from lab.scenario.schema import Scenario

PLAIN_EVERY_S = 10.0
MOST_CAPTURED = 40  # rows


def progress_line(progress: Progress) -> str:
    """Return the progress of a run as one line, such as `running 12.5 / 60 s, 47 s left wifi1 7.10
    + 0.40 Mb/s (...)`.

    The two rates of an access point are those of primary subflows (Tier 1) and of secondary
    subflows (Tier 2).
    """
    if progress.phase != "running":
        return progress.phase
    text = f"running {progress.t:g} / {progress.duration_s:g} s"
    if progress.eta_s is not None:
        text += f", {progress.eta_s:.0f} s left"
    if progress.frame is None:
        return text
    if progress.frame.ap:
        shares = "   ".join(
            f"{ap} {_rate(each.tier1_mbps)} + {_rate(each.tier2_mbps)}"
            for ap, each in progress.frame.ap.items()
        )
        return f"{text}   {shares} Mb/s (Tier 1 + Tier 2)"
    users = progress.frame.user.items()
    return text + "".join(f"   {user} {_rate(each.mbps)} Mb/s" for user, each in users)


class Live:
    """Prints the progress of a run to standard error, in a line that is overwritten at each call.

    If standard error is no terminal, a new line is printed for every 10 s of the run instead.
    """

    def __init__(self, quiet: bool) -> None:
        self.quiet, self._terminal, self._printed_t, self._width = (
            quiet,
            sys.stderr.isatty(),
            -PLAIN_EVERY_S,
            0,
        )

    def __call__(self, progress: Progress) -> None:
        if self.quiet:
            return
        text = progress_line(progress)
        if self._terminal:
            sys.stderr.write("\r" + text.ljust(self._width))
            self._width = len(text)
        elif progress.phase != "running":
            sys.stderr.write(text + "\n")
        elif progress.t - self._printed_t >= PLAIN_EVERY_S:
            sys.stderr.write(text + "\n")
            self._printed_t = progress.t
        sys.stderr.flush()

    def done(self) -> None:
        """Clear the progress line at the end of the run."""
        if self._terminal and self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            self._width = 0


def summary(result: dict[str, Any], folder: Path) -> str:
    """Return the results of a run as text: access points, users, totals, and whether Multipath TCP
    was really used."""
    parts = [_head(result)]
    if scaled := labels.note(result.get("rate_scale")):
        parts.append(scaled)
    if slower := labels.clocks_note(result.get("time_dilation")):
        parts.append(slower)
    if result["overloaded"]:
        reasons = result["overload"].get("reasons", [])
        why = "; ".join(str(reason) for reason in reasons) or str(result["overload"])
        parts.append(
            f"*** OVERLOADED: this machine could not keep up, do not trust the numbers: {why} ***"
        )
        if engine_table.entry(result["engine"]).real_time:
            parts.append(
                "In a VM, --dilation auto slows the clocks until the machine keeps up "
                "(docs/install.md)."
            )
    if result["aps"]:
        parts.append(_ap_table(result["aps"]))
    parts.append(_user_table(result["users"], with_aps=bool(result["aps"])))
    parts.append(_totals(result, kinds_of_traffic(folder)))
    if "flows" in result:
        parts.append(_flow_table(result["flows"]))
    if "video" in result:
        parts.append(_video_table(result["video"]["videos"]))
    if "call" in result:
        parts.append(_call_table(result["call"]["calls"]))
    parts.append(verdict_text(result))
    if found := captured.report(folder):
        parts.append(_captured_table(found))
    parts.append(f"run folder: {folder}")
    return "\n\n".join(parts)


def verdict_text(result: dict[str, Any]) -> str:
    """Return a sentence that says whether multipath users really used Multipath TCP."""
    if not any(user["kind"] == "multipath" for user in result["users"].values()):
        return "Multipath TCP: no multipath user in this scenario"
    return f"{labels.describe(result['mptcp'])}{_why_few_subflows(result)}"


def _why_few_subflows(result: dict[str, Any]) -> str:
    """Return why a run has fewer extra subflows than connections, although none is missing."""
    of_multipath = [
        each
        for each in result.get("connections", [])
        if result["users"].get(each["user"], {}).get("kind") == "multipath"
    ]
    has_short = any(each["completion_s"] is not None for each in of_multipath)
    joins, count = result["mptcp"].get("joins") or 0, len(of_multipath)
    if not (result["mptcp"].get("verified") and has_short and joins < count):
        return ""
    return f". Of {count} connections, short ones ended before their second subflow was there"


def report(scenario: Scenario, result: dict[str, Any], folder: Path) -> str:
    """Return a Markdown report about one run: its scenario, its results, and the effects of changes
    during the run."""
    from lab.results.explain.stretches import told  # only reports need it, and it loads slowly

    about = [
        f"# {scenario.title}",
        scenario.paper,
        f"**Question.** {scenario.question}" if scenario.question else "",
        f"**Expected.** {scenario.expect}" if scenario.expect else "",
    ]
    text = [part for part in about if part]
    text += ["## Measured", f"```\n{summary(result, folder)}\n```"]
    if did := told(folder):
        text += ["## What the changes did", *did.splitlines()]
    return "\n\n".join([*text, ""])


def _head(result: dict[str, Any]) -> str:
    return (
        f"{result['scenario']}  strategy {result['strategy']}  "
        f"cc {result['cc'] or 'not read back'}  engine {result['engine']}  "
        f"seed {result['seed']}  {result['duration_s']:g} s  {result['status']}"
    )


def _ap_table(aps: dict[str, Any]) -> str:
    keys = ("kind", "throughput_mbps", "tier1_mbps", "tier2_mbps", "mac_occupancy_mean")
    rows = [(ap, *(each[key] for key in keys)) for ap, each in aps.items()]
    return text_table(("access point", "kind", "Mb/s", "Tier 1", "Tier 2", "MAC occupancy"), rows)


def _user_table(users: dict[str, Any], with_aps: bool) -> str:
    rows = [
        (
            user,
            each["kind"].replace("_", " "),
            each["throughput_mbps"],
            "  ".join(f"{ap} {_rate(rate)}" for ap, rate in each["by_ap"].items()),
        )
        for user, each in users.items()
    ]
    head = ("user", "kind", "Mb/s", "by access point")
    return text_table(head, rows) if with_aps else text_table(head[:3], [row[:3] for row in rows])


def _totals(result: dict[str, Any], kinds: Mapping[str, Sequence[str]]) -> str:
    """Return the rates of the run, and how they are shared. Networks without access points have no
    tiers."""
    tiers, (jain, about) = result["tiers"], fairness(result, kinds)
    parts = [
        f"total {_rate(result['throughput_mbps'])} Mb/s",
        *([f"Tier {n} {_rate(tiers[n])}" for n in ("1", "2")] if result["aps"] else []),
        f"fairness (Jain) {cell_text(jain)}",
        _settled(result["convergence_s"]),
    ]
    return "\n".join(["   ".join(parts), *([about] if about else [])])


def _flow_table(flows: dict[str, Any]) -> str:
    """Return the completion times of all transfers, and of each kind and size if there are
    several."""
    kinds, sizes = flows["by_kind"], flows["by_size"]
    alike = ", ".join(next(iter(each)) for each in (kinds, sizes) if len(each) == 1)
    groups = {f"all ({alike})" if alike else "all": flows}
    for each in (kinds, sizes):
        groups |= each if len(each) > 1 else {}
    numbers = [key for key in flows if key.startswith(("fct_", "slowdown_"))]
    head = [key.replace("fct_", "").replace("_s", " s").replace("_p", " p") for key in numbers]
    rows = [
        (name, f"{each['completed']} of {each['count']}", *(each[key] for key in numbers))
        for name, each in groups.items()
    ]
    limits = {"small": f"up to {SMALL_MB * 1000:g} kB", "medium": f"up to {MEDIUM_MB:g} MB"}
    meant = [f"{size}: {limits.get(size, f'above {MEDIUM_MB:g} MB')}" for size in sizes]
    meant.append("slowdown: the time taken over the time alone on the fastest path")
    return f"{text_table(('transfers', 'complete', *head), rows)}\n{'; '.join(meant)}"


def _video_table(videos: list[dict[str, Any]]) -> str:
    keys = ("bitrate_mbps", "startup_s", "stalls", "stall_s", "switches")
    rows = [(each["user"], each["connection"], *(each[key] for key in keys)) for each in videos]
    head = ("video of", "connection", "Mb/s", "plays after s", "pauses", "paused s", "switches")
    return text_table(head, rows)


def _captured_table(found: list[captured.Subflow]) -> str:
    """Return what the captures show of each subflow."""
    rows = [
        (
            each.user,
            each.client,
            "joined" if each.joins else "first",
            "never" if each.handshake_ms is None else f"{each.handshake_ms:.0f}",
            each.segments,
            each.retransmitted,
            each.reordered,
            len(each.prios),
            len(each.resets),
        )
        for each in found[:MOST_CAPTURED]
    ]
    head = ("captured at", "subflow", "kind", "open after ms", "segments", "retransmitted")
    table = text_table((*head, "reordered", "MP_PRIO", "resets"), rows)
    left_out = len(found) - len(rows)
    return f"{table}\n{left_out} more in pcap/{captured.REPORT}" if left_out else table


def _call_table(calls: list[dict[str, Any]]) -> str:
    delays = [f"delay_p{p}_ms" for p in (50, 95, 99)]
    rows = [
        (
            *(each["user"], each["connection"], each["direction"]),
            *(_rate(each[key]) for key in ("mos", "mos_worst", *delays, "jitter_ms")),
            *(f"{100 * each[key]:.1f}" for key in ("loss", "late")),
        )
        for each in calls
    ]
    head = ("call of", "connection", "direction", "MOS", "worst 5 s", "delay p50 ms", "p95 ms")
    return text_table((*head, "p99 ms", "jitter ms", "lost %", "late %"), rows)


def _rate(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _settled(value: float | None) -> str:
    if value is None:
        return "rates did not settle within the run"
    return f"rates settled after {value:g} s"


@dataclass(frozen=True)
class Terminal:
    """Makes runs, and shows their progress and messages on standard error.

    `progress` shows the progress of emulations; with `simulations`, also that of simulations.
    `text` shows messages. `report` writes report.md into each run folder.
    """

    progress: bool = True
    simulations: bool = False
    text: bool = True
    report: bool = False

    def run(self, job: Job) -> Outcome:
        shown = self.progress and (self.simulations or engine_table.entry(job.engine).real_time)
        live = Live(quiet=not shown)
        outcome = run_job(job, live)
        live.done()
        if self.report:
            _write_report(job, outcome)
        if outcome.error:
            click.echo(f"error: {outcome.error}", err=True)
        return outcome

    def say(self, text: str) -> None:
        if self.text:
            click.echo(text, err=True)


def _write_report(job: Job, outcome: Outcome) -> None:
    path = outcome.folder / "report.md"
    try:
        path.write_text(report(job.scenario, outcome.result, outcome.folder), "utf-8")
    except OSError as error:
        raise LabError(f"write {path}: {error.strerror}") from error
