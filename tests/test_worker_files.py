"""A worker of a cluster makes runs for one command after another: none sees another's own files."""

from __future__ import annotations

import pickle
import zipfile
from io import BytesIO
from pathlib import Path

import pytest
from users_files import C_LAW, LAW, STRATEGY, TOPOLOGY, _only_built_in

from controller.strategies import STRATEGIES
from lab import extensions, metrics
from lab.batch import cluster
from lab.batch.job import Job
from lab.extensions import Extension
from lab.run.engine import Options
from lab.scenario import loading
from lab.scenario.loading import Overrides
from lab.topologies.families import TOPOLOGIES

__all__ = ["_only_built_in"]
METRIC = """
from lab.metrics import Metric

METRIC = Metric(of="user", label="half", unit="Mb/s", meaning="Half.", better=1,
                value=lambda frame, user: frame.user[user].mbps / 2)
"""
SLOW = "def on_ack(s, acked, now_ns):\n    s.cwnd = 2.0\n"


@pytest.fixture(autouse=True)
def no_metrics(monkeypatch):
    monkeypatch.setattr(metrics, "_own", {})


def written(folder: Path, **texts: str) -> Path:
    folder.mkdir()
    folder.chmod(0o755)
    for name, text in texts.items():
        (folder / name.replace("__", ".")).write_text(text)
    return folder


def of(folder: Path | None) -> tuple[Extension, ...]:
    """Return the registered files of a command that names `folder` by --with."""
    extensions.only(())
    if folder:
        extensions.add(folder)
    return extensions.registered()


def task(files: tuple[Extension, ...], cc: str = "lia") -> bytes:
    extensions.only(files)
    scenario = loading.load("two_paths", Overrides(cc=cc, duration_s=1))
    return pickle.dumps(Job(scenario, "sim", Options(0.0), Path("one")))


def made(files: tuple[Extension, ...], packed: bytes) -> dict[str, bytes]:
    returned = pickle.loads(cluster.make(cluster.present_build(), pickle.dumps(files), packed))
    with zipfile.ZipFile(BytesIO(returned[-1])) as archive:
        return {name: archive.read(name) for name in ("samples.jsonl", "result.json")}


def test_a_metric_of_another_command_is_in_no_result(tmp_path):
    plain, own = of(None), of(written(tmp_path / "my", half__py=METRIC))
    asked = task(plain)
    alone = made(plain, asked)
    assert b"half" in made(own, task(own))["samples.jsonl"]
    assert made(plain, asked) == alone


def test_a_law_is_that_of_the_command_though_another_has_the_same_name(tmp_path):
    first, second = (
        of(written(tmp_path / name, mine__py=text)) for name, text in (("a", LAW), ("b", SLOW))
    )
    asked = [(each, task(each, "mine")) for each in (first, second)]
    runs = [made(*asked[n])["samples.jsonl"] for n in (0, 1, 0, 1)]
    assert runs[0] != runs[1]
    assert runs[:2] == runs[2:]


def test_files_of_the_same_name_replace_each_other(tmp_path):
    texts = {"keep_all__py": STRATEGY, "doorway__py": TOPOLOGY, "scalable__c": C_LAW}
    first, second = (of(written(tmp_path / name, **texts)) for name in ("a", "b"))
    for files in (first, second, first):
        extensions.only(files)
        assert extensions.registered() == files
        assert TOPOLOGIES["doorway"].__file__ == str(files[0].path)
    extensions.only(())
    assert not extensions.registered()
    assert "keep_all" not in STRATEGIES
    assert "doorway" not in TOPOLOGIES
