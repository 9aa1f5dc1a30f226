"""`crosscheck`: run every study in both engines, and write docs/crosscheck.md from what they measured."""

from __future__ import annotations

from pathlib import Path

import click

import lab
from lab import crosscheck, engines
from lab.cli import run as running
from lab.crosscheck import ENGINES, Case, Study
from lab.errors import LabError, MachineLacks
from lab.manifest import ROOT
from lab.recorder import read_document
from lab.runner import EXIT_INTERRUPTED, Outcome

TRIES = 3
PAGE = ROOT / "docs" / "crosscheck.md"
RUNS = ROOT / "data" / "crosscheck"
INTRODUCTION = """# Simulator and emulation beside each other

Made by `./run_lab.sh crosscheck --repeat {repeat}` with version {version} of the lab; {hosts}.
`mininet` is the real stack: kernel MPTCP, Open vSwitch, hostapd and hwsim, decided in POX. `sim` is the embedded simulator.
Values are means over the seeds, with the smallest and the largest. A witness is *independent* where the engines share
nothing that decides the number, and *shared model* where both ask the same model of the air: agreement then proves only
that both carry it out. Nothing was tuned to a number.
"""


def main(repeat: int, runs: Path = RUNS, page: Path = PAGE) -> int:
    """Run what is missing, and write the page; an interruption leaves the page as it was, and what has run is kept."""
    vm = _needs_vm()
    parts, hosts = [], set()
    for study in crosscheck.STUDIES:
        outcomes = {
            (engine, case.name): _run(study, case, engine, repeat, runs, vm) for engine in ENGINES for case in study.cases
        }
        if any(len(each) < repeat for each in outcomes.values()):
            return EXIT_INTERRUPTED
        hosts |= {_host(engine, outcome.folder) for (engine, _), several in outcomes.items() for outcome in several}
        parts.append(crosscheck.page(study, {key: [each.result for each in several] for key, several in outcomes.items()}))
    head = INTRODUCTION.format(repeat=repeat, version=lab.__version__, hosts="; ".join(sorted(hosts)))
    _write(page, "\n\n".join([head.rstrip(), *parts]) + "\n")
    click.echo(f"written: {page}")
    return 0


def _needs_vm() -> bool:
    """Whether the emulation must run in the virtual machine here."""
    from lab.engines.mininet import capabilities

    try:
        capabilities.require_native()
    except MachineLacks:
        return True
    return False


def _run(study: Study, case: Case, engine: str, repeat: int, runs: Path, vm: bool) -> list[Outcome]:
    """The runs of a case, on seeds counted up from 1; overloaded ones are made again, as often as there is patience."""
    emulated = engines.entry(engine).real_time
    request = running.Request(
        study.scenario,
        engine,
        (case.strategy,),
        seed=1,
        repeat=repeat,
        duration_s=study.duration_s,
        settings=case.settings,
        out=runs / engine / study.scenario / case.name,
        vm=emulated and vm,
        wait=True,
    )
    for _ in range(TRIES if emulated else 1):
        click.echo(f"{study.scenario}, {case.name}, {engine}", err=True)
        outcomes = running.run_jobs(request)
        if len(outcomes) < repeat or not any(each.result["overloaded"] for each in outcomes):
            break
    return outcomes


def _host(engine: str, folder: Path) -> str:
    made = read_document(folder, "manifest.json")
    return f"{engine} on Linux {made['host']['kernel']}, {made['host']['cpu']}, commit {made['versions']['commit']}"


def _write(page: Path, text: str) -> None:
    draft = page.with_suffix(".part")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(page)
    except OSError as error:
        raise LabError(f"write {page}: {error.strerror}") from error
