"""The tests that a kernel panic of a virtual machine has failed are told from the others."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from vm_panics import VM_PANICKED, note_panics, panicked_consoles


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
    note_panics(failed, 1)
    assert failed.exitstatus == VM_PANICKED
    assert "b/vm/console.txt" in capsys.readouterr().out


def test_without_a_panic_or_a_failure_the_status_stays(consoles):
    passed, other = session(consoles), session(consoles / "a")
    note_panics(passed, 0)
    note_panics(other, 1)
    assert (passed.exitstatus, other.exitstatus) == (1, 1)


def test_consoles_that_tests_without_machines_write_do_not_count(consoles, capsys):
    unit = session(consoles, marks=())
    note_panics(unit, 1)
    assert unit.exitstatus == 1
    assert not capsys.readouterr().out
