"""Run one job, in this process or inside the virtual machine."""

from __future__ import annotations

import os
from dataclasses import replace

from lab.batch import virtual_machine
from lab.batch.job import Job, OnProgress
from lab.engines import registry
from lab.errors import LabError
from lab.run import captured, runner
from lab.run.outcome import Outcome
from lab.run.reading import RESULTS
from lab.run.recorder import Recorder, keep_results, new_folder
from lab.vm_environment import IN_VM


def run_job(job: Job, on_progress: OnProgress) -> Outcome:
    """Run a job, and call `on_progress` while it runs.

    Raise `LabError` if the run cannot be started. A later failure is reported in the outcome.
    """
    outcome = _outcome(job, on_progress)
    if job.options.pcap and IN_VM not in os.environ:  # where processors are fast
        try:
            captured.write_report(outcome.folder)
        except LabError as problem:
            outcome = replace(outcome, error=outcome.error or str(problem))
    if job.keep == RESULTS and not outcome.exit_code:
        return replace(outcome, result=keep_results(outcome.folder, outcome.result))
    return outcome


def _outcome(job: Job, on_progress: OnProgress) -> Outcome:
    if job.vm:
        return virtual_machine.run_job(job, on_progress)
    scenario = job.scenario
    engine = registry.create(job.engine, job.options)
    engine.ready(scenario)
    folder = new_folder(scenario, job.out)
    recorder = Recorder(folder, scenario, job.engine)
    return runner.run(scenario, engine, recorder, on_progress)
