"""Make the runs for the page docs/crosscheck_all.md in both engines, and write the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.errors import RequestError
from lab.evaluation import crosscheck_all
from lab.evaluation.crosscheck_cases import Case, cases
from lab.evaluation.crosscheck_runs import hosts
from lab.evaluation.page_file import write_page
from lab.evaluation.paired_runs import PairedRuns
from lab.evaluation.run_figures import RunFigures, read_figures, with_new, write_figures


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

        Without names, all scenarios are run. The figures of all runs are kept in a file beside the
        page, from which the page is written. Return False if the user interrupted. The page is then
        unchanged, and runs that have ended are kept.
        """
        reasons = crosscheck_all.read_reasons(self.reasons)
        admitted = self._admitted(scenarios)
        able = [case for case, refusal in admitted if not refusal]
        if not self.runs.make([case.experiment for case in able]):
            return False
        made = [run for case in able for run in self._figures(case)]
        order = [(case.scenario, case.strategy) for case in cases()]
        file = page.with_suffix(".jsonl")
        figures = with_new(read_figures(file), made, order)
        write_figures(file, figures)
        refusals = {(case.scenario, case.strategy): why for case, why in admitted if why}
        write_page(page, crosscheck_all.page(figures, reasons, refusals))
        return True

    def _admitted(self, scenarios: Sequence[str]) -> list[tuple[Case, str]]:
        """Return each case of the scenarios, with the reason why the emulation refuses it.

        The reason is an empty text if the emulation can run the case.
        """
        found = []
        for case in cases(scenarios):
            refusal = self.runs.refusal(case.experiment)
            if refusal:
                self.runs.display.say(f"{case.scenario}, {case.strategy}: refused: {refusal}")
            found.append((case, refusal))
        return found

    def _figures(self, case: Case) -> Iterator[RunFigures]:
        """Yield the figures of the runs of a case in both engines."""
        length_s = self.runs.length_s(case.experiment)
        for engine in self.runs.engines:
            for run, why in self.runs.finished(case.experiment, engine):
                (made_on,) = hosts([(engine, run.folder)])
                yield crosscheck_all.figures(case, run, why, made_on, length_s)
