"""`verify` makes emulated runs again and compares them by intervals. The emulation is a fake here."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from command_line import lab  # noqa: F401 - a fixture
from fake_engine import FakeEngine
from run_edits import write_result

from lab.cli.terminal import Terminal
from lab.errors import MachineLacks
from lab.results import compare
from lab.results.statistics import MIN_RUNS
from lab.results.zips import emulated
from lab.run.outcome import EXIT_INTERRUPTED
from lab.scenario import engine_table


class Machine:
    """The fake engine as an emulation: each user gets `mbps`, and 0.1 more for each seed."""

    def __init__(self, monkeypatch):
        self.mbps, self.jobs, self.edit, self.code = 4.0, [], dict, 0
        opened, run_one, machine = FakeEngine.open, Terminal.run, self

        def open_(engine, scenario, recorder):
            opened(engine, scenario, recorder)
            rate_mbps = machine.mbps + scenario.seed / 10
            engine.rates = dict.fromkeys(engine.topology.users, rate_mbps)

        def run(terminal, job):
            machine.jobs.append(job)
            outcome = run_one(terminal, replace(job, vm=False))
            result = machine.edit(outcome.result)
            write_result(outcome.folder, result)
            return replace(outcome, result=result, exit_code=machine.code)

        monkeypatch.setattr(FakeEngine, "open", open_)
        monkeypatch.setattr(Terminal, "run", run)
        entry = replace(engine_table.ENGINES["fake"], real_time=True)
        monkeypatch.setitem(engine_table.ENGINES, "fake", entry)


@pytest.fixture
def machine(lab, monkeypatch):  # noqa: F811
    return Machine(monkeypatch)


@pytest.fixture
def archive(lab, machine, tmp_path):  # noqa: F811
    """Make emulated runs and pack them; return a function that verifies the archive."""

    def make(*more, runs=MIN_RUNS):
        words = ("--engine", "fake", "--duration", 1, "--repeat", runs, "--out", tmp_path / "runs")
        got = lab("run pooling", *words, "--quiet", *more)
        assert got.exit_code == 0, got.output
        got = lab("export", tmp_path / "runs", "-o", tmp_path / "a.zip")
        assert got.exit_code == 0, got.output
        machine.jobs.clear()
        return lambda *words: lab("verify", tmp_path / "a.zip", *words)

    return make


def test_emulations_are_made_again_with_their_seeds(archive, machine, tmp_path):
    got = archive()("--out", tmp_path / "kept", "--vm", "--wait")
    assert got.exit_code == 0, got.output
    assert "same: runs/none-1 and 4 more, within 95 % intervals\n" in got.stdout
    assert "5 same, 0 differs, 0 not repeated" in got.stdout
    assert [job.scenario.seed for job in machine.jobs] == [1, 2, 3, 4, 5]
    assert all(job.vm and job.options.wait for job in machine.jobs)
    assert len(list((tmp_path / "kept" / "again" / "runs").glob("none-*/result.json"))) == 5


@pytest.mark.parametrize(("mbps", "code"), [(4.05, 0), (3.9, 0), (5.0, 4), (3.0, 4)])
def test_means_whose_intervals_miss_each_other_differ(archive, machine, mbps, code):
    verify = archive()
    machine.mbps = mbps
    got = verify()
    assert got.exit_code == code, got.output
    assert (" in 5 runs, now " in got.stderr) == (code == 4)
    if code:
        assert "differs: runs/none-1 and 4 more: 4 of 8 numbers differ" in got.stderr
        assert "differs: runs/none-1 and 4 more: throughput_mbps: 12.9 [12.4, 13.4]" in got.stderr
        assert "0 same, 5 differs, 0 not repeated" in got.stdout


def test_each_point_of_a_grid_is_compared_with_itself(archive, machine):
    verify = archive("--vary", "multipath.receive_buffer_kb=400,500")
    got = verify()
    assert got.exit_code == 0, got.output
    assert "10 same" in got.stdout
    assert got.stdout.count("same: runs/multipath.receive_buffer_kb=") == 2


def test_fewer_runs_than_an_interval_needs_are_not_made_again(archive, machine):
    got = archive(runs=4)()
    assert got.exit_code == 3
    assert "need 5 runs that differ only in the seed, and the archive has 4" in got.stderr
    assert "0 same, 0 differs, 4 not repeated" in got.stdout
    assert not machine.jobs


def test_a_machine_that_cannot_emulate_says_what_it_lacks(archive, monkeypatch):
    def ready(_engine, _scenario):
        raise MachineLacks("start the emulation: this machine lacks a kernel")

    verify = archive()
    monkeypatch.setattr(FakeEngine, "ready", ready)
    got = verify()
    assert got.exit_code == 3
    assert "not repeated: runs/none-1 and 4 more: start the emulation: this machine" in got.stderr


def test_new_runs_that_overload_this_machine_are_no_evidence(archive, machine):
    verify = archive(runs=6)
    machine.edit = lambda result: result | {"overloaded": result["seed"] > 4}
    got = verify()
    assert got.exit_code == 3
    assert "only 4 of 6 new runs were complete and did not overload this machine" in got.stderr
    assert len(machine.jobs) == 4 + 2 * 3
    machine.edit = lambda result: result | {"overloaded": result["seed"] > 5}
    assert verify().exit_code == 0


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        ({"cc": "cubic"}, "cc: 'reno', now 'cubic'"),
        ({"mptcp": {"verified": False, "joins": 0}}, "mptcp.verified: true, now false"),
        ({"convergence_s": None}, "convergence_s: 0 [0, 0] in 5 runs, now not measured"),
    ],
)
def test_what_was_read_back_or_measured_must_be_the_same(archive, machine, edit, says):
    machine.edit = lambda result: result | {"convergence_s": 0.0}
    verify = archive()
    machine.edit = lambda result: result | {"convergence_s": 0.0} | edit
    got = verify()
    assert got.exit_code == 4
    assert says in got.stderr


def test_an_interruption_gives_no_verdict(archive, machine):
    verify = archive()
    machine.code = EXIT_INTERRUPTED
    got = verify()
    assert got.exit_code == EXIT_INTERRUPTED
    assert "same" not in got.stdout
    assert len(machine.jobs) == 1


def test_runs_that_say_nothing_about_the_network_do_not_count(archive, tmp_path):
    archive()
    first, other = (compare.read_run(tmp_path / "runs" / f"none-{seed}") for seed in (1, 2))
    assert emulated.useless(first, {emulated.measured(other)}) == ""
    for change, why in (
        ({"status": "interrupted"}, "ended as interrupted"),
        ({"overloaded": True}, "overloaded the machine"),
        ({"samples": other.samples}, "a copy of another run"),
        ({"samples": ""}, "lacks the digest"),
        ({"settings": {**first.settings, compare.FLIPS_KEY: "[]"}}, "changed by hand"),
        ({"schema": 1}, "on the wire"),
    ):
        assert why in emulated.useless(replace(first, **change), {emulated.measured(other)})


def test_a_run_of_two_engines_is_refused(archive, tmp_path, lab):  # noqa: F811
    archive()
    for folder in (tmp_path / "runs").iterdir():
        write_result(folder, json.loads((folder / "result.json").read_text()) | {"engine": "sim"})
    assert lab("export", tmp_path / "runs", "-o", tmp_path / "b.zip").exit_code == 0
    got = lab("verify", tmp_path / "b.zip")
    assert got.exit_code == 3
    assert "manifest.json and result.json name two engines" in got.stderr
