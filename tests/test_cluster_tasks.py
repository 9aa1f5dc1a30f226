"""What the driver gives to Dask, and what it does with what comes back. No cluster is needed."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from lab.batch import cluster
from lab.batch.jobs import Job
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
    """Remembers the keys of tasks."""

    def __init__(self) -> None:
        self.keys: list[str] = []

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
