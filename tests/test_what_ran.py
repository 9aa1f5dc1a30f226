"""What ran is what is written down: files of the user that are edited between two runs, and run
folders that are edited after the run."""

from __future__ import annotations

import hashlib
import json
import shutil
import threading
from pathlib import Path

import pytest
from users_files import LAW, STRATEGY, TOPOLOGY, _only_built_in, lab, my, refused

from dashboard import finished, state
from dashboard.app import create_app
from lab import extensions, inputs
from lab.batch import jobs
from lab.batch.job import Job
from lab.batch.jobs import run_all
from lab.batch.single import run_job
from lab.results import compare
from lab.results.store import Store
from lab.run.engine import Options
from lab.run.outcome import Outcome
from lab.run.reading import changed, read_document
from lab.scenario import loading
from lab.scenario.loading import Overrides, experiment
from lab.worksheets.evaluation import RunFiles

__all__ = ["_only_built_in", "my"]

READS = """
from pathlib import Path

RATES = [float(each) for each in Path(__file__).with_name("rates.txt").read_text().split()]


"""
READING = TOPOLOGY.replace("\n\nclass Params", READS + "class Params", 1).replace(
    "params.mbps * rate_scale", "RATES[0] * rate_scale"
)
BUILDING = (
    TOPOLOGY.replace("from pydantic", "from pathlib import Path\n\nfrom pydantic", 1)
    .replace(
        "    nodes =",
        '    mbps = float(Path(__file__).with_suffix(".txt").read_text())\n    nodes =',
        1,
    )
    .replace("params.mbps * rate_scale", "mbps * rate_scale")
)


class Editing:
    """Runs jobs, and edits files after the first one has ended."""

    def __init__(self, *edits: tuple[Path, str]) -> None:
        self.edits = edits

    def run(self, job: Job) -> Outcome:
        return run_job(job, lambda _: None)

    def say(self, text: str) -> None:
        for path, content in self.edits:
            path.write_text(content)


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def run_folder(out: Path, *argv: str | Path) -> Path:
    done = lab("run", *argv, "--duration", "1", "--out", out, "--quiet")
    assert done.exit_code == 0, done.output
    return out


# Edits between the runs of one command


def test_all_runs_of_a_command_use_what_was_read_at_its_start(my, tmp_path):
    extensions.add(my)
    choice = {"cc": "scalable", "strategy": "keep_all", "duration_s": 1.0}
    scenarios = [
        loading.load(str(my / "doorway.yaml"), Overrides(seed=seed, **choice), may_run_code=True)
        for seed in range(1, 7)
    ]
    before = {each.path.name: each.sha256 for each in extensions.registered()}
    made = [Job(each, "sim", Options(0.0), tmp_path / str(each.seed)) for each in scenarios]
    edits = (
        (my / "scalable.py", LAW.replace("0.01 * acked", "1.0")),
        (my / "keep_all.py", STRATEGY.replace("return []", "return 1 / 0")),
        (my / "doorway.py", TOPOLOGY.replace("params.mbps", "0.1 * params.mbps")),
    )
    outcomes = run_all(made, Editing(*edits))
    assert [each.result["status"] for each in outcomes] == ["complete"] * 6
    for outcome in outcomes:
        rows = read_document(outcome.folder, "manifest.json")["extensions"]
        assert {Path(each["path"]).name: each["sha256"] for each in rows} == {
            name: before[name] for name in ("scalable.py", "keep_all.py", "doorway.py")
        }
    for name, text in (("scalable.py", LAW), ("keep_all.py", STRATEGY), ("doorway.py", TOPOLOGY)):
        (my / name).write_text(text)
    unedited = Job(scenarios[-1], "sim", Options(0.0), tmp_path / "6b")
    alone = run_job(unedited, lambda _: None)
    last = outcomes[-1].folder / "samples.jsonl"
    assert last.read_bytes() == (alone.folder / "samples.jsonl").read_bytes()


def test_an_edited_strategy_makes_a_group_of_its_own(my, tmp_path):
    command = ("two_paths", "--strategy", my / "keep_all.py")
    folders = [
        run_folder(tmp_path / "1", *command),
        run_folder(tmp_path / "2", *command, "--seed", "2"),
    ]
    (my / "keep_all.py").write_text(STRATEGY + "\n# edited\n")
    folders.append(run_folder(tmp_path / "3", *command, "--seed", "3"))
    groups = compare.grouped(folders)
    assert [len(group.runs) for group in groups] == [2, 1]
    digests = [hashlib.sha256(STRATEGY.encode()).hexdigest(), sha256(my / "keep_all.py")]
    assert [group.label for group in groups] == [
        f"keep_all file keep_all.py={digest[:8]}" for digest in digests
    ]


def test_an_edited_network_under_two_strategies_is_named_in_a_warning(my, tmp_path):
    folders = [run_folder(tmp_path / "1", my / "doorway.yaml")]
    (my / "doorway.py").write_text(TOPOLOGY + "\n# edited\n")
    folders.append(
        run_folder(
            tmp_path / "2",
            my / "doorway.yaml",
            "--with",
            my / "keep_all.py",
            "--strategy",
            "keep_all",
        )
    )
    warned = list(compare.warnings(compare.grouped(folders)))
    assert "careful: they differ in file doorway.py, too" in warned
    assert not any("keep_all.py" in each for each in warned)  # only one group uses it


def test_runs_of_several_versions_of_the_lab_are_named(tmp_path):
    folders = [
        run_folder(tmp_path / str(seed), "two_paths", "--seed", str(seed)) for seed in (1, 2)
    ]
    manifest = read_document(folders[1], "manifest.json")
    manifest["versions"] |= {"lab": "0.1.7", "commit": "abc"}
    (folders[1] / "manifest.json").write_text(json.dumps(manifest))
    (warning,) = compare.warnings(compare.grouped(folders))
    assert "several versions of the lab made these runs" in warning
    assert "run 2 by 0.1.7 (abc)" in warning


# Files that a user's code reads


@pytest.mark.parametrize(("text", "data"), [(READING, "rates.txt"), (BUILDING, "doorway.txt")])
def test_a_file_that_a_network_reads_is_an_input(my, tmp_path, text, data):
    (my / "doorway.py").write_text(text)
    (my / data).write_text("4")
    folder = run_folder(tmp_path / "1", my / "doorway.yaml")
    assert read_document(folder, "result.json")["inputs"] == {
        "doorway.py": sha256(my / "doorway.py"),
        data: sha256(my / data),
    }
    first = read_document(folder, "manifest.json")["experiment"]
    again = lab(
        "run", my / "doorway.yaml", "--duration", "1", "--out", tmp_path / "b", "--repeat", "2"
    )
    assert again.exit_code == 0, again.output
    (my / data).write_text("2")
    extensions._registered.clear()
    other = experiment(
        loading.load(str(my / "doorway.yaml"), Overrides(duration_s=1), may_run_code=True), "sim"
    )
    assert other != first
    extensions._registered.clear()
    said = lab(
        "run", my / "doorway.yaml", "--duration", "1", "--out", tmp_path / "b", "--repeat", "2"
    )
    assert said.exit_code == 2
    assert "is there already and not empty" in said.output  # another experiment


def test_a_file_that_a_strategy_reads_while_it_decides_is_an_input(my, tmp_path):
    (my / "limit.txt").write_text("7")
    text = STRATEGY.replace(
        "        return []",
        "        from pathlib import Path\n"
        "        Path(__file__).with_name('limit.txt').read_text()\n        return []",
        1,
    )
    (my / "keep_all.py").write_text(text)
    folder = run_folder(tmp_path / "1", "two_paths", "--strategy", my / "keep_all.py")
    found = read_document(folder, "result.json")["inputs"]
    assert found == {
        "keep_all.py": sha256(my / "keep_all.py"),
        "limit.txt": sha256(my / "limit.txt"),
    }


def test_a_run_without_files_of_ones_own_has_no_inputs(tmp_path):
    folder = run_folder(tmp_path / "1", "two_paths")
    assert read_document(folder, "result.json")["inputs"] == {}


def test_inputs_of_the_same_name_are_told_apart_by_their_folders():
    found = {"/a/x/rates.csv": "1", "/a/y/rates.csv": "2", "/b/net.py": "3"}
    assert inputs.by_name(found) == {"net.py": "3", "x/rates.csv": "1", "y/rates.csv": "2"}


# Edits of a run folder after the run


EDITS = {
    "result.json": lambda text: text.replace('"throughput_mbps": ', '"throughput_mbps": 1', 1),
    "samples.jsonl": lambda text: text.replace('"mbps":', '"mbps":1', 1),
    "events.jsonl": lambda text: text + '{"t":0.5,"kind":"warning","text":"no"}\n',
    "scenario.yaml": lambda text: text.replace("delay_ms: ", "delay_ms: 1", 1),
}


@pytest.fixture(scope="module")
def three_runs(tmp_path_factory):
    runs = tmp_path_factory.mktemp("edited") / "runs"
    for seed in (1, 2, 3):
        run_folder(runs / f"run{seed}", "two_paths", "--seed", str(seed))
    return runs


@pytest.fixture(params=EDITS)
def edited(request, three_runs, tmp_path):
    """Three runs, the second edited in one file, whose name is returned too."""
    runs = tmp_path / "runs"
    shutil.copytree(three_runs, runs)
    path = runs / "run2" / request.param
    before = path.read_text()
    path.write_text(EDITS[request.param](before))
    assert path.read_text() != before
    return runs, request.param


def test_an_untouched_run_is_unchanged(three_runs):
    for folder in three_runs.iterdir():
        assert changed(folder, read_document(folder, "result.json")) == ()


def test_compare_names_an_edited_run_and_leaves_it_out(edited):
    runs, name = edited
    done = lab("compare", *(runs / f"run{n}" for n in (1, 2, 3)))
    assert done.exit_code == 0, done.output
    assert f"careful: run run2 is left out: {name} changed after the run" in done.output
    assert "(n = 2" in done.output
    said = refused("compare", runs / "run2")
    assert f"run run2 is left out: {name} changed after the run" in said


def test_the_list_of_runs_marks_an_edited_run(edited):
    runs, name = edited
    store = Store(runs)
    store.refresh()
    docs = {doc["id"]: doc for doc in store.all()}
    assert (docs["run1"]["status"], docs["run2"]["status"]) == ("complete", "changed")
    assert name in docs["run2"]["error"]
    assert docs["run2"]["throughput_mbps"] is None


def test_an_edit_is_noticed_after_the_index_was_made(three_runs, tmp_path):
    runs = tmp_path / "runs"
    shutil.copytree(three_runs, runs)
    store = Store(runs)
    store.refresh()
    path = runs / "run3" / "samples.jsonl"
    path.write_text(EDITS["samples.jsonl"](path.read_text()))
    store.refresh()
    assert store.get("run3")["status"] == "changed"


def test_a_worksheet_marks_no_edited_run(edited):
    runs, name = edited
    RunFiles.read(runs / "run1")
    with pytest.raises(Exception, match=f"run2: {name} changed after the run"):
        RunFiles.read(runs / "run2")


def test_an_edited_run_is_made_again(edited):
    runs, _ = edited
    scenario = loading.load("two_paths", Overrides(seed=2, duration_s=1))
    assert jobs.kept(Job(scenario, "sim", Options(0.0), runs / "run2")) is None
    scenario = loading.load("two_paths", Overrides(seed=3, duration_s=1))
    assert jobs.kept(Job(scenario, "sim", Options(0.0), runs / "run3")) is not None


DIGESTS = ("scenario_sha256", "samples_sha256", "events_sha256", "result_sha256")


@pytest.mark.parametrize(("version", "believed"), [("0.2.0", True), ("0.3.0", False)])
def test_only_a_run_of_an_earlier_version_may_lack_digests(three_runs, tmp_path, version, believed):
    folder = tmp_path / "old"
    shutil.copytree(three_runs / "run1", folder)
    manifest = read_document(folder, "manifest.json")
    manifest["versions"]["lab"] = version
    (folder / "manifest.json").write_text(json.dumps(manifest))
    result = read_document(folder, "result.json")
    for key in DIGESTS:
        del result[key]
    (folder / "result.json").write_text(json.dumps(result))
    assert changed(folder, result) == (() if believed else ("result.json",))


@pytest.mark.parametrize("key", DIGESTS)
def test_a_run_that_lacks_one_of_its_digests_was_edited(three_runs, tmp_path, key):
    folder = tmp_path / "edited"
    shutil.copytree(three_runs / "run1", folder)
    result = read_document(folder, "result.json")
    del result[key]
    (folder / "result.json").write_text(json.dumps(result))
    assert changed(folder, result) == ("result.json",)


def test_the_page_of_an_edited_run_believes_no_number_of_it(edited):
    runs, name = edited
    store = Store(runs)
    store.refresh()
    found = finished.summary(store, runs / "run2")
    assert found["verdict"].startswith(f"{name} changed after the run")
    assert found["means"] == {}
    now = state.of(runs / "run2")
    assert (now.status, now.verdict.kind) == ("changed", "no")
    assert finished.summary(store, runs / "run1")["means"]["throughput_mbps"] > 0


def test_comparison_pages_draw_no_edited_run_and_say_why(edited):
    runs, name = edited
    client = create_app({"RUNS": runs, "TESTING": True}).test_client()
    answer = client.get("/api/compare?runs=run1,run2")
    assert answer.status_code == 409
    assert f"run2 is left out: {name} changed after the run" in answer.json["error"]
    figures = client.get("/api/compare/charts?runs=run1,run2").json["figures"]
    lines = [line for each in figures for line in each["figure"]["data"]]
    drawn = {line["name"].partition(",")[0] for line in lines if any(line["y"])}
    assert len(drawn) == 1
    assert "seed 1" in next(iter(drawn))


def test_what_one_thread_reads_is_no_input_of_another(my, tmp_path):
    (my / "doorway.py").write_text(BUILDING)
    (my / "doorway.txt").write_text("4")
    found = {}

    def load():
        scenario = loading.load(str(my / "doorway.yaml"), may_run_code=True)
        found["there"] = set(map(Path, scenario.inputs))

    with inputs.collected() as here:
        thread = threading.Thread(target=load)
        thread.start()
        thread.join()
    assert my / "doorway.txt" in found["there"]
    assert here == {}
