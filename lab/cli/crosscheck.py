"""`crosscheck`: run studies in both engines, and write their sections of docs/crosscheck.md from what they measured.

Where the emulation needs the virtual machine, one VM makes all runs of a study that are missing: this same command, told
to run that engine only, is what runs in it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

import lab
from lab import engines
from lab.cli import batch
from lab.cli import run as running
from lab.errors import LabError, MachineLacks, RequestError
from lab.evaluation import crosscheck
from lab.evaluation.studies import FRAMES, Case, Study
from lab.run.manifest import ROOT
from lab.run.recorder import give_away, read_document, read_samples
from lab.run.runner import EXIT_INTERRUPTED

TRIES = 3
PAGE = ROOT / "docs" / "crosscheck.md"
RUNS = ROOT / "data" / "crosscheck"
INTRODUCTION = """# Simulator and emulation beside each other

`mininet` is the real stack: kernel MPTCP, Open vSwitch, hostapd and hwsim, decided in POX. `sim` is the embedded simulator.
Values are means over the seeds, with the smallest and the largest. A witness is *independent* where the engines share
nothing that decides the number, and *shared model* where both ask the same model of the air: agreement then proves only
that both carry it out. Nothing was tuned to a number. A section is what its command made; another command leaves it as it is.
"""


def main(
    names: Sequence[str], repeat: int, only: str | None = None, runs: Path = RUNS, page: Path = PAGE
) -> int:
    """Run what is missing, and write the sections; an interruption leaves the page as it was, and what has run is kept.

    `only` one engine: make its runs, and no page.
    """
    studies = crosscheck.chosen(names)
    made = {}
    for study in studies:
        if only is not None and only not in study.engines:
            raise RequestError(
                f"--engine: '{only}' is not compared here: choose from {', '.join(study.engines)}"
            )
        folders: dict[tuple[str, str], list[Path]] = {}
        for engine in [only] if only else study.engines:
            if not _make(study, engine, repeat, runs):
                return EXIT_INTERRUPTED
            folders |= {
                (engine, case.name): _folders(study, case, engine, repeat, runs)
                for case in study.cases
            }
        if not only:
            found = {key: [_read(folder) for folder in several] for key, several in folders.items()}
            made[study.scenario] = crosscheck.section(
                study, found, _made_by(study, repeat, folders)
            )
    if not only:
        _write(page, made)
        click.echo(f"written: {page}")
    return 0


def _make(study: Study, engine: str, repeat: int, runs: Path) -> bool:
    """Make the runs of a study that are missing; False after an interruption."""
    requests = [_request(study, case, engine, repeat, runs) for case in study.cases]
    if (
        engines.entry(engine).real_time
        and _needs_vm()
        and any(_missing(request) for request in requests)
    ):
        return _make_in_vm(study, engine, repeat, runs)
    return _make_here(requests, study.cases)


def _make_here(requests: Sequence[running.Request], cases: Sequence[Case]) -> bool:
    """The runs of all cases; then again those that prove nothing, as often as there is patience. A machine may be busy for a while."""
    for _ in range(TRIES if engines.entry(requests[0].engine).real_time else 1):
        outcomes = []
        for request, case in zip(requests, cases, strict=True):
            click.echo(f"{request.scenario}, {case.name}, {request.engine}", err=True)
            outcomes += (several := running.run_jobs(request))
            if len(several) < request.repeat or any(
                each.exit_code == EXIT_INTERRUPTED for each in several
            ):
                return False
        if len(crosscheck.used([each.result for each in outcomes])) == len(outcomes):
            break
    return True


def _make_in_vm(study: Study, engine: str, repeat: int, runs: Path) -> bool:
    """This command inside one VM, which writes into the study's own folder."""
    shared = _place(study, engine, runs)
    shared.mkdir(parents=True, exist_ok=True)
    argv = [sys.executable, "-m", "lab", "crosscheck", study.scenario, "--repeat", str(repeat)]
    vm = _virtual_machine()
    inside = vm.GuestCommand(
        [*argv, "--engine", engine, "--runs", str(runs.absolute())], shared, show=True
    )
    code: int = vm.run_in_vm(inside, wait=True)
    give_away(shared)
    if code not in (0, EXIT_INTERRUPTED):
        raise LabError(
            f"crosscheck {study.scenario} in the virtual machine: it ended with status {code}. See {shared / 'vm'}"
        )
    return code == 0


def _virtual_machine() -> Any:
    from lab.engines.mininet.vm import launch as vm

    return vm


def _needs_vm() -> bool:
    """Whether the emulation must run in the virtual machine here."""
    from lab.engines.mininet.machine import capabilities

    try:
        capabilities.require_native()
    except MachineLacks:
        return True
    return False


def _request(study: Study, case: Case, engine: str, repeat: int, runs: Path) -> running.Request:
    """The runs of a case, on seeds counted up from 1."""
    return running.Request(
        study.scenario,
        engine,
        (case.strategy,),
        seed=1,
        repeat=repeat,
        duration_s=case.duration_s or study.duration_s,
        settings=case.settings,
        out=_place(study, engine, runs) / case.name,
        wait=engines.entry(engine).real_time,
    )


def _place(study: Study, engine: str, runs: Path) -> Path:
    return runs / engine / study.scenario


def _missing(request: running.Request) -> bool:
    return any(batch.kept(job) is None for job in running.placed(request))


def _folders(study: Study, case: Case, engine: str, repeat: int, runs: Path) -> list[Path]:
    """The run folders of a case, overloaded and unfinished runs included."""
    several = [job.out for job in running.placed(_request(study, case, engine, repeat, runs))]
    return [
        folder for folder in several if folder is not None and (folder / "result.json").is_file()
    ]


def _read(folder: Path) -> dict[str, Any]:
    return read_document(folder, "result.json") | {FRAMES: read_samples(folder)}


def _made_by(study: Study, repeat: int, folders: dict[tuple[str, str], list[Path]]) -> str:
    """The command, and where each engine's runs were made: kernel, processor and commit, each once."""
    hosts = sorted(
        {_host(engine, folder) for (engine, _), several in folders.items() for folder in several}
    )
    return f"Made by `./run_lab.sh crosscheck {study.scenario} --repeat {repeat}` with version {lab.__version__} of the lab; {'; '.join(hosts)}."


def _host(engine: str, folder: Path) -> str:
    made = read_document(folder, "manifest.json")
    return f"{engine} on Linux {made['host']['kernel']}, {made['host']['cpu']}, commit {made['versions']['commit']}"


def _write(page: Path, made: dict[str, str]) -> None:
    draft = page.with_suffix(".part")
    try:
        before = page.read_text(encoding="utf-8") if page.exists() else ""
        draft.write_text(crosscheck.composed(INTRODUCTION, before, made), encoding="utf-8")
        draft.replace(page)
    except OSError as error:
        raise LabError(f"write {page}: {error.strerror}") from error
