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
    """`lab("run two_paths", folder)`: the first argument is split at blanks, the others are one
    word each."""

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
    """As in a checkout without uncommitted changes."""
    monkeypatch.setattr(manifest, "commit", lambda: "0123456789ab")


def start(command, *args, **options):
    paths = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    words = [*command.split(), *map(str, args)]
    argv = [sys.executable, str(ROOT / "tests" / "fake_engine.py"), *words]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(argv, env=os.environ | {"PYTHONPATH": paths}, **pipes, **options)
