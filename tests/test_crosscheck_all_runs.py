"""The command that runs every scenario in both engines."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from command_line import committed, lab  # noqa: F401 - fixtures
from run_edits import write_result
from test_crosscheck_all import cells

from lab.batch import jobs, request
from lab.batch.request import placed
from lab.cli.terminal import Terminal
from lab.engines.mininet.machine import vm_kernel
from lab.errors import RequestError
from lab.run.outcome import EXIT_INTERRUPTED, Outcome
from lab.scenario import engine_table
from lab.vm_environment import DILATION
from papers import crosscheck_all, paired_runs
from papers import crosscheck_command as crosschecking
from papers.crosscheck_all import Case, CrossCheckAll, cases
from papers.paired_runs import PairedRuns, Trial
from papers.run_figures import read_figures

PAIR = ("fake", "slow")  # in place of the emulation and the simulator


@pytest.fixture
def engines(lab, monkeypatch):  # noqa: F811
    """`fake` takes the place of the emulation, `slow` that of the simulator."""
    for name in PAIR:
        entry = replace(engine_table.ENGINES[name], schedulers=("linux",), real_time=name == "fake")
        monkeypatch.setitem(engine_table.ENGINES, name, entry)
    monkeypatch.setattr(paired_runs, "needs_vm", lambda: False)


@pytest.fixture
def command(engines, tmp_path):
    """Compare these scenarios; False if the user interrupted."""

    def write(*scenarios, repeat=1):
        runs = PairedRuns(repeat, tmp_path / "runs", Terminal(), 1.0, PAIR)
        return CrossCheckAll(runs, tmp_path / "none.yaml").write(scenarios, tmp_path / "page.md")

    return write


def test_both_engines_run_each_case_with_the_same_settings(command, tmp_path):
    assert command("testbed_wifi_lte")
    text = (tmp_path / "page.md").read_text()
    assert (
        "| testbed_wifi_lte | none | total | 4.00 | 4.00 | +0 % | within 5 %, open, add 4 | - |"
        in text
    )
    assert "| testbed_wifi_lte | meter_throttling | wifi1 | 2.50 | 2.50 |" in text
    folders = {path.parent for path in (tmp_path / "runs").rglob("result.json")}
    assert {path.relative_to(tmp_path / "runs").as_posix() for path in folders} == {
        f"{engine}/testbed_wifi_lte/{case}-1s/{case.removesuffix('-up')}-1"
        for engine in PAIR
        for case in ("none", "none-up", "meter_throttling")
    }
    for folder in folders:
        text = (folder / "scenario.yaml").read_text()
        assert "scheduler: linux" in text
        assert ("direction: down" not in text) is ("none-up" in folder.parent.name)


def test_an_interrupted_command_continues(command, monkeypatch, tmp_path):
    made, run_one = [], Terminal.run

    def interrupted(self, job):
        outcome = run_one(self, job)
        made.append((job.engine, job.scenario.strategy.name))
        if len(made) == 4:  # the first run of the emulation
            result = outcome.result | {"status": "interrupted"}
            write_result(outcome.folder, result)
            return Outcome(result, outcome.folder, EXIT_INTERRUPTED)
        return outcome

    monkeypatch.setattr(jobs, "side_by_side", jobs._in_turn)
    monkeypatch.setattr(Terminal, "run", interrupted)
    assert not command("testbed_wifi_lte")
    assert not (tmp_path / "page.md").exists()
    assert command("testbed_wifi_lte")
    assert made == [
        *(("slow", "none"), ("slow", "meter_throttling"), ("slow", "none"), ("fake", "none")),
        *(("fake", "none"), ("fake", "meter_throttling"), ("fake", "none")),
    ]
    assert "| 1 of 1 | 1 of 1 |" in (tmp_path / "page.md").read_text()


def test_overloaded_runs_are_repeated_and_then_marked(command, monkeypatch, tmp_path):
    made, run_one = [], Terminal.run

    def overloaded(self, job):
        outcome = run_one(self, job)
        if job.engine == "slow":
            return outcome
        made.append(job.scenario.strategy.name)
        result = outcome.result
        if job.scenario.strategy.name == "none" or len(made) < 3:
            overload = {"overloaded": True, "reasons": ["at 3.1 s the processors | were busy"]}
            result = result | {"overloaded": True, "overload": overload}
            write_result(outcome.folder, result)
        return Outcome(result, outcome.folder)

    monkeypatch.setattr(jobs, "side_by_side", jobs._in_turn)
    monkeypatch.setattr(Terminal, "run", overloaded)
    monkeypatch.setattr(crosscheck_all, "UPLOADS", ())
    assert command("testbed_wifi_lte")
    assert made == ["none", "meter_throttling", "none", "meter_throttling", "none"]
    text = (tmp_path / "page.md").read_text()
    assert "| 0 of 1; overloaded: the processors / were busy | 1 of 1 |" in text
    row = cells(text, "| testbed_wifi_lte | none | total")
    assert row[3:] == ["-", "4.00", "-", "not judged", "no valid run of the emulation"]
    assert "| testbed_wifi_lte | meter_throttling | total | 4.00 | 4.00 |" in text


def test_a_run_that_lacked_a_subflow_is_not_used(command, tmp_path):
    assert command("shared_pipe")
    folder = tmp_path / "runs" / "fake" / "shared_pipe" / "none-1s" / "none-1"
    result = json.loads((folder / "result.json").read_text())
    result["mptcp"] |= {"verified": False, "why": "ue1-1 has 1 of 2 subflows"}
    write_result(folder, result)
    (tmp_path / "page.jsonl").unlink()  # else the figures of the valid run would stay
    assert command("shared_pipe")
    text = (tmp_path / "page.md").read_text()
    assert "| 0 of 1; not Multipath TCP: ue1-1 has 1 of 2 subflows | 1 of 1 |" in text


def test_what_the_emulation_refuses_is_not_run_in_the_simulator(command, monkeypatch, tmp_path):
    entry = replace(engine_table.ENGINES["fake"], cc=("reno",), lacks={"cc": "it has one"})
    monkeypatch.setitem(engine_table.ENGINES, "fake", entry)
    assert command("pooling", "shared_pipe")
    text = (tmp_path / "page.md").read_text()
    assert "refused: cc 'lia' on engine 'fake': it has one. Choose from: reno" in text
    assert "3 cases (1 of them refused by the emulation)" in text
    assert {path.name for path in (tmp_path / "runs" / "slow").iterdir()} == {"pooling"}


def test_runs_of_another_experiment_are_refused_before_anything_starts(command, tmp_path):
    assert command("shared_pipe")
    folder = tmp_path / "runs" / "fake" / "shared_pipe" / "none-1s" / "none-1"
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | {"experiment": "another"}))
    with pytest.raises(
        RequestError, match="none-1 is there already and not empty: it has a run with other"
    ):
        command("shared_pipe")


def test_runs_of_an_older_schema_are_repeated(engines, tmp_path):
    runs = PairedRuns(1, tmp_path, Terminal(), 1.0, PAIR)
    (job,) = placed(runs._request(Case("shared_pipe", "none").experiment(), "slow"))
    assert jobs.kept(job) is None
    runs.make([Case("shared_pipe", "none").experiment()])
    assert jobs.kept(job) is not None
    path = tmp_path / "slow" / "shared_pipe" / "none-1s" / "none-1" / "result.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"schema": 1}))
    assert jobs.kept(job) is None


def test_both_engines_run_at_the_rate_scale_of_the_emulation(engines, monkeypatch, tmp_path):
    monkeypatch.setattr(request.registry, "is_slow", lambda name, vm: name == "fake")
    runs = PairedRuns(1, tmp_path, Terminal(), 1.0, PAIR)
    experiment = Case("shared_pipe", "none").experiment()
    scales = {job.scenario.rate_scale for engine in PAIR for job in runs.jobs(experiment, engine)}
    assert scales == {0.5}
    assert (runs.scale(experiment), runs.length_s(experiment)) == (0.5, 1.0)


def test_a_rate_scale_is_that_of_all_runs_and_the_others_are_kept(engines, monkeypatch, tmp_path):
    monkeypatch.setattr(request.registry, "is_slow", lambda name, vm: name == "fake")
    runs = PairedRuns(1, tmp_path / "runs", Terminal(), 1.0, PAIR)
    page = tmp_path / "page.md"
    assert CrossCheckAll(runs, tmp_path / "none.yaml").write(["rat_setup_2"], page)
    assert cells(page.read_text(), "| rat_setup_2 | none | 1 |")[3] == "0.12"
    scaled = CrossCheckAll(replace(runs, rate_scale=0.7), tmp_path / "none.yaml")
    assert scaled.write(["rat_setup_2"], page)
    row = cells(page.read_text(), "| rat_setup_2 | none | 1 |")
    assert (row[3], row[6:8]) == ("0.7", ["1 of 1", "1 of 1"])
    found = {}
    for path in (tmp_path / "runs").rglob("manifest.json"):
        found.setdefault(path.parents[1].name, []).append(json.loads(path.read_text()))
    assert {name: [each["rate_scale"] for each in several] for name, several in found.items()} == {
        "none-1s": [0.12, 0.12],
        "none-1s-scale0.7": [0.7, 0.7],
    }
    for path in (tmp_path / "runs").rglob("scenario.yaml"):
        is_scaled = "scale0.7" in str(path)
        assert ("volume_mb: 45" in path.read_text()) is is_scaled


def test_further_seeds_join_the_first_one(engines, tmp_path):
    runs = PairedRuns(1, tmp_path / "runs", Terminal(), 1.0, PAIR, rate_scale=1.0)
    for more in ({}, {"seed": 4}, {"repeat": 2}):
        found = CrossCheckAll(replace(runs, **more), tmp_path / "none.yaml")
        assert found.write(["shared_pipe"], tmp_path / "page.md")
    seeds = [run.seed for run in read_figures(tmp_path / "page.jsonl") if run.engine == "fake"]
    assert seeds == [1, 2, 4]


def test_with_auto_the_runs_begin_with_the_factor_that_is_expected(engines, monkeypatch, tmp_path):
    monkeypatch.setattr(paired_runs, "needs_vm", lambda: True)
    monkeypatch.setattr(vm_kernel, "remembered_kvm", lambda: False)
    monkeypatch.setenv(DILATION, "auto")
    asked, run_one = [], Terminal.run

    def in_vm(self, job):
        asked.append((job.scenario.name, job.dilation))
        return run_one(self, replace(job, vm=False))

    monkeypatch.setattr(Terminal, "run", in_vm)
    runs = PairedRuns(1, tmp_path, Terminal(), 1.0, PAIR, rate_scale=1.0)
    runs = replace(runs, expected=crosscheck_all.expected_factor)
    for name in ("fat_tree", "shared_pipe"):
        assert runs.make([Case(name, "none").experiment(1.0)], ("fake",))
    factors = crosscheck_all.FACTORS["fat_tree"], crosscheck_all.USUAL_FACTOR
    assert asked == list(zip(("fat_tree", "shared_pipe"), factors, strict=True))
    monkeypatch.setattr(vm_kernel, "remembered_kvm", lambda: True)
    assert runs.make([Case("pooling", "none").experiment(1.0)], ("fake",))
    assert asked[2] == ("pooling", 1.0)


def test_without_tries_the_page_shows_the_runs_that_exist(engines, tmp_path):
    runs = PairedRuns(1, tmp_path / "runs", Terminal(), 1.0, PAIR)
    assert runs.make([Case("pooling", "none").experiment()])
    found = CrossCheckAll(replace(runs, tries=0, repeat=2), tmp_path / "none.yaml")
    assert found.write(["pooling"], tmp_path / "page.md")
    text = (tmp_path / "page.md").read_text()
    assert cells(text, "| pooling | none | 1 |")[6:8] == ["1 of 1", "1 of 1"]
    assert "| pooling | expected_throughput |" not in text
    assert len(list((tmp_path / "runs").rglob("result.json"))) == 2


def test_the_slow_probe_for_the_virtual_machine_is_made_once(engines, monkeypatch, tmp_path):
    probes = []
    monkeypatch.setattr(paired_runs, "needs_vm", lambda: probes.append(1) or True)
    runs = PairedRuns(1, tmp_path, Terminal(), 1.0, PAIR)
    for case in cases(["pooling", "shared_pipe"]):
        assert all(job.vm for job in runs.jobs(case.experiment(), "fake"))
    assert len(probes) == 1


@pytest.mark.parametrize(
    ("seconds", "text"), [(45, "45 s"), (89, "89 s"), (720, "12 min"), (12_000, "3 h 20 min")]
)
def test_time_left(seconds, text):
    assert jobs.time_left(seconds) == text


def test_names_of_scenarios_and_of_studies(monkeypatch, tmp_path):
    """`all` and a scenario without a study go to the page of all scenarios, a study to its own."""
    asked = []

    def note(kind):
        return lambda self, names, page: asked.append((kind, list(names), page.name)) or True

    monkeypatch.setattr(crosschecking.CrossCheckAll, "write", note("all"))
    monkeypatch.setattr(crosschecking.CrossCheck, "write", note("study"))
    for names in (["all"], ["all", "two_paths"], ["pooling"], ["two_paths"], []):
        assert crosschecking.main(names, 1) == 0
    assert asked == [
        ("all", [], "crosscheck_all.md"),
        ("all", ["two_paths"], "crosscheck_all.md"),
        ("all", ["pooling"], "crosscheck_all.md"),
        ("study", ["two_paths"], "crosscheck.md"),
        ("study", [], "crosscheck.md"),
    ]
    with pytest.raises(RequestError, match="--duration: a study has durations of its own"):
        crosschecking.main(["two_paths"], 1, trial=Trial(5))
    with pytest.raises(RequestError, match="--rate-scale: a study has its own"):
        crosschecking.main(["two_paths"], 1, trial=Trial(rate_scale=1))


def test_an_unknown_scenario_is_refused_by_the_command(lab, committed):  # noqa: F811
    refused = lab("crosscheck", "all", "pool", "--tries", "0", "--duration", "5")
    assert refused.exit_code == 2
    assert "crosscheck: scenario 'pool' is unknown" in refused.stderr
    refused = lab("crosscheck", "two_paths", "--duration", "5")
    assert "a study has durations of its own. Write: crosscheck all" in refused.stderr
