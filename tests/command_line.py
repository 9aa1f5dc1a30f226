"""The command line with the fake engine, called in this process or started in another one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import fake_engine
import pytest
from click.testing import CliRunner

from lab.cli.commands import cli
from lab.run import manifest
from lab.scenario.engine_table import ENGINES

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def lab():
    """Call the command line with the fake engine in its table: words of a text, then more words."""

    def call(command, *args):
        argv = [*command.split(), *map(str, args)]
        return CliRunner().invoke(cli, argv, catch_exceptions=False)

    before = dict(ENGINES)
    fake_engine.register()
    yield call
    ENGINES.clear()
    ENGINES.update(before)


@pytest.fixture
def committed(monkeypatch):
    """Nothing was changed since the last commit."""
    monkeypatch.setattr(manifest, "commit", lambda: "0123456789ab")


def start(command, *args, **options):
    """Start the command line with the fake engine in another process."""
    paths = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    words = [*command.split(), *map(str, args)]
    argv = [sys.executable, str(ROOT / "tests" / "fake_engine.py"), *words]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(argv, env=os.environ | {"PYTHONPATH": paths}, **pipes, **options)
