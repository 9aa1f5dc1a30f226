"""What the driver gives to Dask, and what it does with what comes back. No cluster is needed."""

from __future__ import annotations

import importlib.util
import io
import pickle
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from lab.batch import cluster
from lab.batch.job import Job
from lab.batch.single import run_job
from lab.errors import LabError
from lab.run.engine import Options
from lab.scenario import loading
from lab.scenario.loading import Overrides

needs_dask = pytest.mark.skipif(
    importlib.util.find_spec("distributed") is None, reason="needs locks/cluster.txt"
)


def job(out: Path, seed: int = 1) -> Job:
    settings = (f"seed={seed}",)
    return Job(
        loading.load("two_paths", Overrides(duration_s=1, settings=settings)),
        "sim",
        Options(0.0),
        out,
    )


class Client:
    """Remembers the keys of tasks, and has some workers."""

    def __init__(self, workers: int = 1) -> None:
        self.keys: list[str] = []
        self.workers = workers

    def scheduler_info(self, n_workers: int) -> dict[str, dict[int, str]]:
        if not self.workers:
            raise OSError("the connection is lost")
        return {"workers": dict.fromkeys(range(self.workers), "")}

    def submit(self, *_: object, key: str, **__: object) -> None:
        self.keys.append(key)


@needs_dask
def test_the_scheduler_remembers_one_kind_of_task_for_all_seeds(tmp_path):
    from dask.utils import key_split

    client = Client()
    for seed in range(1, 6):
        cluster._given(client, job(tmp_path / str(seed), seed))
    assert len(set(client.keys)) == 5
    assert {key_split(each) for each in client.keys} == {"two_paths"}


def returned(job: Job) -> bytes:
    return cluster.make(
        cluster.present_build(), pickle.dumps(()), pickle.dumps(replace(job, out=Path("one")))
    )


def test_a_returned_run_is_as_private_as_one_of_this_machine(tmp_path):
    here, there = job(tmp_path / "here" / "one"), job(tmp_path / "there" / "one")
    run_job(here, lambda _: None)
    outcome = cluster._written(there, returned(there))
    assert outcome.folder == there.out
    assert [each.name for each in (tmp_path / "there").iterdir()] == ["one"]
    for name in ("here/one", "there/one"):
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o700


def test_a_folder_that_another_command_has_written_meanwhile_is_one_sentence(tmp_path):
    wanted = job(tmp_path / "one")
    packed = returned(wanted)
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "mine").touch()
    with pytest.raises(LabError, match=r"record the run in .*one: .*not empty.* type the same"):
        cluster._written(wanted, packed)


@pytest.mark.parametrize("name", ["../out", "/tmp/out"])
def test_no_file_leaves_the_folder(name, tmp_path):
    code, error, result, _ = pickle.loads(returned(job(tmp_path / "one")))
    into = io.BytesIO()
    with zipfile.ZipFile(into, "w") as archive:
        archive.writestr(name, "x")
    with pytest.raises(LabError, match="returned a file called"):
        cluster._written(
            job(tmp_path / "one"), pickle.dumps((code, error, result, into.getvalue()))
        )
    assert not (tmp_path / "one").exists()


def test_more_tasks_are_given_when_workers_join(monkeypatch):
    now_s = 0.0
    monkeypatch.setattr(cluster.time, "monotonic", lambda: now_s)
    client = Client(workers=2)
    at_once = cluster._AtOnce(client)
    found = [at_once.now()]
    for client.workers in (10, 0, 3):
        found.append(at_once.now())
        now_s += cluster.COUNT_EVERY_S
        found.append(at_once.now())
    assert found == [8, 8, 40, 40, 40, 40, 12]
