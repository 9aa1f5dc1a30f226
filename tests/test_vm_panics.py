"""The tests that a kernel panic of a virtual machine has failed are told from the others."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from conftest import pytest_sessionfinish
from vm_panics import VM_PANICKED, panicked_consoles


@pytest.fixture
def consoles(tmp_path):
    for name, text in (("a", "login:"), ("b", "Kernel panic - not syncing: Fatal exception")):
        (tmp_path / name / "vm").mkdir(parents=True)
        (tmp_path / name / "vm" / "console.txt").write_text(text)
    return tmp_path


def session(folder):
    factory = SimpleNamespace(getbasetemp=lambda: folder)
    return SimpleNamespace(config=SimpleNamespace(_tmp_path_factory=factory), exitstatus=1)


def test_only_panics_are_found(consoles):
    assert panicked_consoles(consoles) == [consoles / "b" / "vm" / "console.txt"]


def test_a_failed_session_with_a_panic_has_a_status_of_its_own(consoles, capsys):
    failed = session(consoles)
    pytest_sessionfinish(failed, 1)
    assert failed.exitstatus == VM_PANICKED
    assert "b/vm/console.txt" in capsys.readouterr().out


def test_without_a_panic_or_a_failure_the_status_stays(consoles):
    passed, other = session(consoles), session(consoles / "a")
    pytest_sessionfinish(passed, 0)
    pytest_sessionfinish(other, 1)
    assert (passed.exitstatus, other.exitstatus) == (1, 1)
