"""A run in the virtual machine uses files of the user as they were registered, although the guest
sees the edited ones."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from machine import needs_emulation
from users_files import STRATEGY, _only_built_in

from lab import extensions
from lab.batch.job import Job
from lab.batch.single import run_job
from lab.engines import registry
from lab.run.engine import Options
from lab.run.manifest import ROOT
from lab.scenario import loading
from lab.scenario.loading import Overrides

__all__ = ["_only_built_in"]
pytestmark = needs_emulation


@pytest.fixture
def visible():
    """A folder that the guest sees; it does not see the machine's /tmp."""
    (ROOT / "data").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="edited-", dir=ROOT / "data") as folder:
        yield Path(folder)


def test_files_that_are_edited_before_the_machine_starts_run_as_they_were(visible, tmp_path):
    strategy, law = visible / "keep_all.py", visible / "scalable.c"
    strategy.write_text(STRATEGY)
    shutil.copy(Path(__file__).with_name("scalable.c"), law)
    extensions.add(strategy)
    extensions.add(law)
    digests = {each.path.name: each.sha256 for each in extensions.registered()}
    choice = Overrides("keep_all", "scalable", duration_s=4, slow_machine=True)
    scenario = loading.load("two_paths", choice)
    registry.load_laws("mininet")  # as the command does
    strategy.write_text("this is no Python(")
    law.write_text("this is no C")
    job = Job(scenario, "mininet", Options(wait=True), tmp_path / "run", vm=True)
    outcome = run_job(job, lambda _: None)
    assert (outcome.result["status"], outcome.error) == ("complete", "")
    assert outcome.result["cc"] == "scalable"
    assert outcome.result["inputs"] == digests
