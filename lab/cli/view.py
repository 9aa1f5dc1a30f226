"""What a run looks like on a terminal: pure functions from frames and results to text, and the one live line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from lab.results.tables import cell_text, text_table
from lab.run.runner import Progress

PLAIN_EVERY_S = 10.0


def progress_line(progress: Progress) -> str:
    """`running 12.5 / 60 s, 47 s left   wifi1 7.1 + 0.4   lte1 10.9 + 0.0 Mb/s (Tier 1 + Tier 2)`"""
    if progress.phase != "running":
        return progress.phase
    text = f"running {progress.t:g} / {progress.duration_s:g} s"
    if progress.eta_s is not None:
        text += f", {progress.eta_s:.0f} s left"
    aps = progress.frame.get("ap", {})
    if aps:
        shares = "   ".join(
            f"{ap} {_rate(seen.get('tier1_mbps'))} + {_rate(seen.get('tier2_mbps'))}"
            for ap, seen in aps.items()
        )
        return f"{text}   {shares} Mb/s (Tier 1 + Tier 2)"
    users = progress.frame.get("user", {})
    return text + "".join(
        f"   {user} {_rate(seen.get('mbps'))} Mb/s" for user, seen in users.items()
    )


class Live:
    """One line that rewrites itself on a terminal; elsewhere a line every 10 s of the run."""

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
        """Leave the line, so that what follows starts on its own."""
        if self._terminal and self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            self._width = 0


def summary(result: dict[str, Any], folder: Path) -> str:
    """Access points, users, Multipath TCP's verdict, and where everything is."""
    head = (
        f"{result['scenario']}  strategy {result['strategy']}  cc {result['cc'] or 'not read back'}"
    )
    parts = [
        f"{head}  engine {result['engine']}  seed {result['seed']}  {result['duration_s']:g} s  {result['status']}"
    ]
    if result["overloaded"]:
        why = "; ".join(str(reason) for reason in result["overload"].get("reasons", [])) or str(
            result["overload"]
        )
        parts.append(
            f"*** OVERLOADED: this machine could not keep up, do not trust the numbers: {why} ***"
        )
    if result["aps"]:
        rows = [
            (
                ap,
                each["kind"],
                each["throughput_mbps"],
                each["tier1_mbps"],
                each["tier2_mbps"],
                each["mac_occupancy_mean"],
            )
            for ap, each in result["aps"].items()
        ]
        parts.append(
            text_table(("access point", "kind", "Mb/s", "Tier 1", "Tier 2", "MAC occupancy"), rows)
        )
    users = [
        (
            user,
            each["kind"].replace("_", " "),
            each["throughput_mbps"],
            "  ".join(f"{ap} {_rate(rate)}" for ap, rate in each["by_ap"].items()),
        )
        for user, each in result["users"].items()
    ]
    parts.append(text_table(("user", "kind", "Mb/s", "by access point"), users))
    tiers, fairness = result["tiers"], result["fairness"]
    parts.append(
        f"total {_rate(result['throughput_mbps'])} Mb/s   Tier 1 {_rate(tiers['1'])}   Tier 2 {_rate(tiers['2'])}   "
        f"fairness (Jain) {cell_text(fairness['jain'])}   converged {_seconds(result['convergence_s'])}"
    )
    parts.append(verdict(result))
    parts.append(f"run folder: {folder}")
    return "\n\n".join(parts)


def verdict(result: dict[str, Any]) -> str:
    """Was it really Multipath TCP?"""
    mptcp = result["mptcp"]
    if not any(user["kind"] == "multipath" for user in result["users"].values()):
        return "Multipath TCP: no multipath user in this scenario"
    seen = f"{mptcp['joins']} joins, {mptcp['fallbacks']} fallbacks to plain TCP"
    return f"Multipath TCP: {'verified' if mptcp['verified'] else 'NOT verified'}, {seen}"


def report(scenario: Any, result: dict[str, Any], folder: Path) -> str:
    """A page of Markdown about one run."""
    asked = [
        f"# {scenario.title}",
        scenario.paper,
        f"**Question.** {scenario.question}",
        f"**Expected.** {scenario.expect}",
    ]
    text = [part for part in asked if part and not part.endswith("** ")]
    return "\n\n".join([*text, "## Measured", f"```\n{summary(result, folder)}\n```", ""])


def _rate(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _seconds(value: float | None) -> str:
    return "not within the run" if value is None else f"after {value:g} s"
