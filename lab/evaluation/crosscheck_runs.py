"""Make the runs of the studies in both engines, and write the sections of docs/crosscheck.md.

If the emulation needs the virtual machine (VM), the VM is started once for all missing runs of a
study. Inside the VM, the command `crosscheck STUDY --engine mininet` makes the runs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import lab
from lab import sudo
from lab.batch import jobs, virtual_machine
from lab.batch.jobs import Display
from lab.batch.request import Request, placed, plan
from lab.engines import registry
from lab.engines.mininet.vm import vm_kernel
from lab.errors import LabError, MachineLacks, RequestError
from lab.evaluation import crosscheck
from lab.evaluation.page_file import read_page, write_page
from lab.evaluation.repeated_runs import TRIES, make_runs
from lab.evaluation.studies import Case, Measured, Study
from lab.run.manifest import ROOT
from lab.run.outcome import EXIT_INTERRUPTED
from lab.run.reading import read_document, read_samples
from lab.scenario import engine_table

RUNS = ROOT / "data" / "crosscheck"
Folders = dict[tuple[str, str], list[Path]]  # (engine, case) -> run folders


@dataclass(frozen=True)
class CrossCheck:
    """Make the runs of studies, and write docs/crosscheck.md from them.

    A study is one scenario, run as several cases (experiments) in both engines (`studies.py`). Each
    case is run with the seeds 1 to `repeat`; `runs`/ENGINE/SCENARIO/CASE has a folder per seed.
    """

    repeat: int
    runs: Path
    display: Display

    def make(self, names: Sequence[str], engine: str) -> bool:
        """Make the runs of the studies `names` in one engine, except those that exist already.
        Return False if the user interrupted."""
        studies = crosscheck.chosen(names)
        for study in studies:
            if engine not in study.engines:
                raise RequestError(
                    f"--engine: '{engine}' is not compared here: "
                    f"choose from {', '.join(study.engines)}"
                )
        return all(self._make(study, engine) for study in studies)

    def write(self, names: Sequence[str], page: Path) -> bool:
        """Make the missing runs of the studies `names` in both engines, and write their sections of
        `page`.

        Return False if the user interrupted. The page is then unchanged; runs that have ended are
        kept.
        """
        sections = {}
        for study in crosscheck.chosen(names):
            if not all(self._make(study, engine) for engine in study.engines):
                return False
            folders = {
                (engine, case.name): self._folders(study, case, engine)
                for engine in study.engines
                for case in study.cases
            }
            found = {key: [read(folder) for folder in each] for key, each in folders.items()}
            made_by = self._made_by(study, folders)
            sections[study.scenario] = crosscheck.section(study, found, made_by)
        write_page(page, crosscheck.composed(read_page(page), sections))
        return True

    def _make(self, study: Study, engine: str) -> bool:
        requests = [self._request(study, case, engine) for case in study.cases]
        real_time = engine_table.entry(engine).real_time
        if real_time and needs_vm() and any(map(_missing, requests)):
            return self._make_in_vm(study, engine)
        planned = [job for request in requests for job in placed(request)]
        return make_runs(planned, TRIES if real_time else 1, self.display)

    def _make_in_vm(self, study: Study, engine: str) -> bool:
        """Make the runs of a study in one engine inside the virtual machine. Return False if the
        user interrupted.

        The command `crosscheck` runs inside the machine. It writes into the folder of the study,
        which is shared with the host.
        """
        shared = self._folder(study, engine)
        shared.mkdir(parents=True, exist_ok=True)
        slow = ["env", f"{vm_kernel.SLOW_MACHINE}=1"] if registry.is_slow(engine, True) else []
        argv = [*slow, sys.executable, "-m", "lab", "crosscheck", study.scenario]
        argv += ["--repeat", str(self.repeat), "--engine", engine]
        argv += ["--runs", str(self.runs.absolute())]
        launch = virtual_machine.launcher()
        code: int = launch.run_in_vm(launch.GuestCommand(argv, shared, show=True), wait=True)
        sudo.give_away(shared)
        if code not in (0, EXIT_INTERRUPTED):
            raise LabError(
                f"crosscheck {study.scenario} in the virtual machine: it ended with status "
                f"{code}. See {shared / 'vm'}"
            )
        return code == 0

    def _request(self, study: Study, case: Case, engine: str) -> Request:
        """Return the request for all runs of a case in one engine: scenario, settings, seeds and
        folder.

        Both engines run with the same rate scale: the one that the first engine of the study uses
        on this machine.
        """
        request = self._unscaled_request(study, case, engine)
        first = study.engines[0]
        if engine == first:
            return request
        reference = self._unscaled_request(study, case, first)
        rate_scale = plan(replace(reference, repeat=1))[0].rate_scale
        return replace(request, settings=(*request.settings, f"rate_scale={rate_scale:g}"))

    def _unscaled_request(self, study: Study, case: Case, engine: str) -> Request:
        real_time = engine_table.entry(engine).real_time
        return Request(
            study.scenario,
            engine,
            (case.strategy,),
            seed=1,
            repeat=self.repeat,
            duration_s=case.duration_s or study.duration_s,
            settings=case.settings,
            out=self._folder(study, engine) / case.name,
            vm=real_time and needs_vm(),
            wait=real_time,
        )

    def _folder(self, study: Study, engine: str) -> Path:
        return self.runs / engine / study.scenario

    def _folders(self, study: Study, case: Case, engine: str) -> list[Path]:
        """Return those run folders of a case that hold a result.json, including incomplete runs and
        runs that overloaded the machine."""
        folders = [job.out for job in placed(self._request(study, case, engine))]
        return [each for each in folders if each is not None and (each / "result.json").is_file()]

    def _made_by(self, study: Study, folders: Folders) -> str:
        """Return a sentence that says how the runs were made. It names the command and the version
        of the lab, and for each engine the kernel, the processor and the git commit."""
        made_on = hosts(
            (engine, folder) for (engine, _), several in folders.items() for folder in several
        )
        return (
            f"Made by `./run_lab.sh crosscheck {study.scenario} --repeat {self.repeat}` "
            f"with version {lab.__version__} of the lab; {'; '.join(made_on)}."
        )


def needs_vm() -> bool:
    """Return True if this machine can run the emulation only inside the virtual machine."""
    from lab.engines.mininet.install import doctor

    try:
        doctor.require_native()
    except MachineLacks:
        return True
    return False


def _missing(request: Request) -> bool:
    return any(jobs.kept(job) is None for job in placed(request))


def read(folder: Path) -> Measured:
    """Return the result and the samples of the run in `folder`."""
    return Measured(read_document(folder, "result.json"), read_samples(folder))


def hosts(folders: Iterable[tuple[str, Path]]) -> list[str]:
    """Return one phrase for each combination of engine, kernel, processor and git commit that made
    some of the runs. `folders` holds pairs (engine, run folder)."""
    found = set()
    for engine, folder in folders:
        manifest = read_document(folder, "manifest.json")
        host, commit = manifest["host"], manifest["versions"]["commit"]
        slower = (
            f", clocks {host['time_dilation']:g} times slower" if "time_dilation" in host else ""
        )
        found.add(f"{engine} on Linux {host['kernel']}, {host['cpu']}{slower}, commit {commit}")
    return sorted(found)
