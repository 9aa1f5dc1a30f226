"""Failures that a kernel panic or a slow machine has caused are told from the others."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from emulation_failures import (
    MACHINE_TOO_SLOW,
    VM_PANICKED,
    note_failures,
    panicked_consoles,
    slow_runs,
)


@pytest.fixture
def consoles(tmp_path):
    for name, text in (("a", "login:"), ("b", "Kernel panic - not syncing: Fatal exception")):
        (tmp_path / name / "vm").mkdir(parents=True)
        (tmp_path / name / "vm" / "console.txt").write_text(text)
    return tmp_path


def session(folder, marks=("emulation",)):
    factory = SimpleNamespace(getbasetemp=lambda: folder)
    item = SimpleNamespace(get_closest_marker=lambda name: name in marks)
    config = SimpleNamespace(_tmp_path_factory=factory)
    return SimpleNamespace(config=config, items=[item], exitstatus=1)


def test_only_panics_are_found(consoles):
    assert panicked_consoles(consoles) == [consoles / "b" / "vm" / "console.txt"]


def test_a_failed_session_with_a_panic_has_a_status_of_its_own(consoles, capsys):
    failed = session(consoles)
    note_failures(failed, 1)
    assert failed.exitstatus == VM_PANICKED
    assert "b/vm/console.txt" in capsys.readouterr().out


def test_without_a_panic_or_a_failure_the_status_stays(consoles):
    passed, other = session(consoles), session(consoles / "a")
    note_failures(passed, 0)
    note_failures(other, 1)
    assert (passed.exitstatus, other.exitstatus) == (1, 1)


def test_consoles_that_tests_without_machines_write_do_not_count(consoles, capsys):
    unit = session(consoles, marks=())
    note_failures(unit, 1)
    assert unit.exitstatus == 1
    assert not capsys.readouterr().out


def finished(folder, *, overloaded=True, engine="mininet", idle: float | None = 0.1):
    folder.mkdir(parents=True)
    overload = {"idle_share_mean": idle}
    result = {"overloaded": overloaded, "engine": engine, "overload": overload}
    (folder / "result.json").write_text(json.dumps(result))


def test_a_failed_session_with_a_busy_machine_has_a_status_of_its_own(tmp_path, capsys):
    finished(tmp_path / "slow")
    failed, passed = session(tmp_path), session(tmp_path)
    note_failures(failed, 1)
    note_failures(passed, 0)
    assert (failed.exitstatus, passed.exitstatus) == (MACHINE_TOO_SLOW, 1)
    assert "slow/result.json" in capsys.readouterr().out


def test_runs_that_the_machine_could_carry_do_not_count(tmp_path):
    finished(tmp_path / "stopped", idle=0.5)
    finished(tmp_path / "unknown", idle=None)
    finished(tmp_path / "calm", overloaded=False)
    finished(tmp_path / "simulated", engine="sim")
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "result.json").write_text("{")
    assert slow_runs(tmp_path) == []


def test_a_panic_is_named_first(consoles):
    finished(consoles / "slow")
    failed = session(consoles)
    note_failures(failed, 1)
    assert failed.exitstatus == VM_PANICKED
