"""Runs with a user's own files: what they keep, and how they fail."""

from __future__ import annotations

from pathlib import Path

from users_files import (
    KNOWN,
    LAW,
    STRATEGY,
    TOPOLOGY,
    _only_built_in,
    lab,
    my,
    refused,
)

from controller import strategies
from lab import extensions
from lab.batch.job import Job
from lab.batch.jobs import run_all
from lab.batch.virtual_machine import argv_inside, files_inside
from lab.run.engine import Options
from lab.run.outcome import Outcome
from lab.run.reading import read_document
from lab.scenario import loading
from lab.scenario.loading import Overrides, experiment
from lab.topologies import families

__all__ = ["_only_built_in", "my"]


def run_of(my: Path, out: Path, *argv: str | Path) -> Path:
    done = lab("run", *argv, "--duration", "1", "--out", out, "--quiet")
    assert done.exit_code == 0, done.output
    return out


def test_a_run_keeps_a_copy_and_the_digest(my, tmp_path):
    out = run_of(
        my,
        tmp_path / "run",
        my / "doorway.yaml",
        *("--strategy", my / "keep_all.py", "--cc", my / "scalable.py"),
    )
    rows = read_document(out, "manifest.json")["extensions"]
    assert {(each["kind"], each["name"]) for each in rows} == {
        ("strategy", "keep_all"),
        ("topology", "doorway"),
        ("cc", "scalable"),
    }
    assert all(len(each["sha256"]) == 64 for each in rows)
    assert (out / "extensions" / "doorway.py").read_text() == TOPOLOGY
    assert not (out / "extensions" / "scalable.c").exists()  # the simulator has not loaded it
    assert read_document(out, "result.json")["cc"] == "scalable"


def test_a_strategy_chosen_by_an_event_is_kept_too(my, tmp_path):
    event = "events=[{at_s: 0.5, target: strategy, value: keep_all}]"
    out = run_of(my, tmp_path / "run", "two_paths", "--with", my, "--set", event)
    (row,) = read_document(out, "manifest.json")["extensions"]
    assert row["name"] == "keep_all"


def test_a_run_cannot_be_repeated_without_the_file(my, tmp_path):
    out = run_of(my, tmp_path / "run", my / "doorway.yaml")
    extensions._registered.clear()
    del families.TOPOLOGIES["doorway"]
    said = refused("run", out, "--out", tmp_path / "once_more")
    assert f"That run used a file of your own: add --with {my / 'doorway.py'}" in said
    (my / "doorway.py").rename(my / "moved.py")
    got = refused("check", tmp_path / "run")
    assert "doorway.py, which is not on this machine: read the copy in" in got
    assert str(my) not in got
    (my / "moved.py").rename(my / "doorway.py")
    run_of(my, tmp_path / "once_more", out, "--with", my / "doorway.py")


def test_nothing_is_loaded_from_a_run_folder(my, tmp_path):
    out = run_of(my, tmp_path / "run", my / "doorway.yaml")
    said = refused("check", "two_paths", "--with", out / "extensions")
    assert "it is the copy in a run folder, and nothing is loaded from there" in said


def test_the_experiment_depends_on_the_text_of_the_files(my):
    extensions.add(my)
    scenario = loading.load("two_paths", Overrides(strategy="keep_all"))
    plain, before = loading.load("two_paths"), experiment(scenario, "sim")
    unchanged = experiment(plain, "sim")
    (my / "keep_all.py").write_text(STRATEGY + "\n")
    extensions.add(my)
    assert experiment(scenario, "sim") != before
    assert experiment(plain, "sim") == unchanged


def test_the_experiment_does_not_depend_on_the_order_of_registration(my):
    digests = set()
    for order in (("keep_all.py", "scalable.py"), ("scalable.py", "keep_all.py")):
        extensions._registered.clear()
        for name in order:
            extensions.add(my / name)
        scenario = loading.load("two_paths", Overrides(strategy="keep_all", cc="scalable"))
        digests.add(experiment(scenario, "sim"))
    assert len(digests) == 1


def test_worker_processes_know_the_files(my):
    extensions.add(my)
    files = extensions.registered()
    extensions._registered.clear()
    del strategies.STRATEGIES["keep_all"]
    extensions.restore(files)
    assert "keep_all" in strategies.STRATEGIES
    assert extensions.registered() == files


class Names:
    """Its result names the kind of topology that the worker process knows."""

    def run(self, job: Job) -> Outcome:
        result = {
            "status": "complete",
            "duration_s": 1,
            "overloaded": False,
            "kind": job.scenario.topology.kind,
        }
        return Outcome(result, Path())

    def say(self, text: str) -> None:
        pass


def test_jobs_with_a_users_network_reach_the_workers(my):
    scenario = loading.load(str(my / "doorway.yaml"), may_run_code=True)
    jobs = [Job(scenario, "sim", Options(0.0))] * 2
    assert [each.result["kind"] for each in run_all(jobs, Names())] == ["doorway"] * 2


def test_the_virtual_machine_gets_the_same_paths(my, tmp_path):
    extensions.add(my)
    scenario = loading.load("two_paths", Overrides(strategy="keep_all", cc="scalable"))
    job = Job(scenario, "mininet", Options(), vm=True)
    paths = {my / name for name in KNOWN}
    written = (my / "keep_all.py").read_bytes()
    (my / "keep_all.py").write_text("edited meanwhile")
    with files_inside() as files:
        assert {place for place, _ in files} == paths
        assert dict(files)[my / "keep_all.py"].read_bytes() == written
    argv = argv_inside(job, tmp_path)
    assert {Path(argv[n + 1]) for n, word in enumerate(argv) if word == "--with"} == paths


# Failures during a run


def test_a_strategy_that_fails_ends_the_run_with_file_and_line(my, tmp_path):
    (my / "keep_all.py").write_text(
        STRATEGY.replace("        return []", "        return [1 / 0]", 1)
    )
    done = lab(
        *(
            "run",
            "two_paths",
            "--strategy",
            my / "keep_all.py",
            "--out",
            tmp_path / "run",
            "--quiet",
        )
    )
    assert done.exit_code == 4
    result = read_document(tmp_path / "run", "result.json")
    assert result["status"] == "failed"
    assert f"{my / 'keep_all.py'}, line 12: ZeroDivisionError" in result["error"]


def test_a_law_that_fails_ends_the_run_with_file_and_line(my, tmp_path):
    (my / "scalable.py").write_text(LAW.replace("acked\n", "unknown\n"))
    done = lab("run", "two_paths", "--cc", my / "scalable.py", "--out", tmp_path / "run", "--quiet")
    assert done.exit_code == 4
    error = read_document(tmp_path / "run", "result.json")["error"]
    assert f"{my / 'scalable.py'}, line 7: NameError" in error
