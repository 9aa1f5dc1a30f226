"""Make the runs for the page docs/crosscheck_all.md in both engines, and write the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.errors import RequestError
from lab.evaluation import crosscheck_all
from lab.evaluation.crosscheck_all import Case, Compared
from lab.evaluation.crosscheck_runs import hosts
from lab.evaluation.page_file import read_page, write_page
from lab.evaluation.paired_runs import Account, PairedRuns


@dataclass(frozen=True)
class CrossCheckAll:
    """Make the runs of scenarios in both engines, and write the page docs/crosscheck_all.md.

    `runs` makes and reads the runs. `reasons` is the file with the reasons for differences.
    """

    runs: PairedRuns
    reasons: Path = crosscheck_all.REASONS

    def make(self, scenarios: Sequence[str], engine: str) -> bool:
        """Make the missing runs of the named scenarios in one engine; without names, of all.

        Return False if the user interrupted.
        """
        if engine not in self.runs.engines:
            known = ", ".join(self.runs.engines)
            raise RequestError(f"--engine: '{engine}' is not compared here: choose from {known}")
        able = [case for case, refusal in self._admitted(scenarios) if not refusal]
        return self.runs.make([case.experiment for case in able], (engine,))

    def write(self, scenarios: Sequence[str], page: Path) -> bool:
        """Make the missing runs of the named scenarios in both engines, and update the page `page`.

        Without names, all scenarios are run. Return False if the user interrupted. The page is then
        unchanged, and runs that have ended are kept.
        """
        reasons = crosscheck_all.read_reasons(self.reasons)
        admitted = self._admitted(scenarios)
        able = [case for case, refusal in admitted if not refusal]
        if not self.runs.make([case.experiment for case in able]):
            return False
        compared = [
            Compared(case, refusal) if refusal else self._compared(case)
            for case, refusal in admitted
        ]
        write_page(page, crosscheck_all.page(read_page(page), compared, reasons))
        return True

    def _admitted(self, scenarios: Sequence[str]) -> list[tuple[Case, str]]:
        """Return each case of the scenarios, with the reason why the emulation refuses it.

        The reason is an empty text if the emulation can run the case.
        """
        found = []
        for case in crosscheck_all.cases(scenarios):
            refusal = self.runs.refusal(case.experiment)
            if refusal:
                self.runs.display.say(f"{case.scenario}, {case.strategy}: refused: {refusal}")
            found.append((case, refusal))
        return found

    def _compared(self, case: Case) -> Compared:
        experiment = case.experiment
        emulated, simulated = (
            self.runs.account(experiment, engine) for engine in self.runs.engines
        )
        return Compared(
            case,
            emulated=emulated,
            simulated=simulated,
            scale=self.runs.scale(experiment),
            length_s=self.runs.length_s(experiment),
            made_on=self._made_on(emulated, simulated),
        )

    def _made_on(self, *accounts: Account) -> str:
        """Return the machines and git commits of the runs, as text for a table cell."""
        folders = [
            (engine, run.folder)
            for engine, account in zip(self.runs.engines, accounts, strict=True)
            for run in account.valid
        ]
        return "; ".join(hosts(folders)).replace("|", "/") or "-"
