"""The factor by which the clocks of the VM are slowed."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.errors import MachineLacks, RequestError
from lab.vm_environment import DILATION, IN_VM, time_dilation
from vm import accelerator, dilation, guest, qemu


@pytest.fixture
def library(tmp_path, monkeypatch) -> Path:
    path = tmp_path / "some-linux" / "faketime" / "libfaketimeMT.so.1"
    path.parent.mkdir(parents=True)
    path.touch()
    monkeypatch.setattr(dilation, "FOLDERS", (tmp_path,))
    return path


def test_the_vm_runs_in_real_time_unless_the_environment_says_otherwise(monkeypatch):
    monkeypatch.delenv(DILATION, raising=False)
    assert dilation.factor() == 1
    assert dilation.prefix(kvm=False) == dilation.prefix(kvm=True) == []
    monkeypatch.setenv(DILATION, "1")
    assert dilation.prefix(kvm=True) == []


@pytest.mark.parametrize("text", ["0.5", "21", "two", "nan", "inf", "-2"])
def test_a_factor_that_cannot_be_is_refused(text, monkeypatch):
    monkeypatch.setenv(DILATION, text)
    with pytest.raises(RequestError, match="Choose a factor from 1"):
        dilation.factor()


def test_qemu_runs_with_a_slower_clock_and_has_a_snapshot_of_its_own(library, monkeypatch):
    def argv() -> list[str]:
        files, shared = qemu.Files(Path("snapshot")), Path("shared")
        return qemu.argv(Path("kernel"), files, shared, (0, 1), kvm=False, restore=False)

    real_time = argv()
    monkeypatch.setenv(DILATION, "2.5")
    slower = argv()
    assert slower != real_time
    at = slower.index("env")
    assert slower[at : at + 3] == ["env", f"LD_PRELOAD={library}", "FAKETIME=+0 x0.400000"]
    assert slower[at + 3] == "qemu-system-x86_64"
    assert [each for each in slower if each not in slower[at : at + 3]] == real_time


def test_a_booted_vm_has_the_slower_clock_too(library, monkeypatch, tmp_path):
    monkeypatch.setattr(accelerator, "kvm_works", lambda image: False)
    monkeypatch.setenv(DILATION, "2")
    assert guest.boot_argv(tmp_path / "kernel", tmp_path)[0] == "env"
    monkeypatch.setenv(DILATION, "1")
    assert guest.boot_argv(tmp_path / "kernel", tmp_path)[0] != "env"


def test_what_cannot_slow_the_clock_is_said(monkeypatch, tmp_path):
    monkeypatch.setenv(DILATION, "2")
    monkeypatch.setattr(dilation, "FOLDERS", (tmp_path,))
    with pytest.raises(RequestError, match="uses KVM cannot be slowed"):
        dilation.prefix(kvm=True)
    with pytest.raises(MachineLacks, match="apt-get install libfaketime"):
        dilation.prefix(kvm=False)


def test_a_run_in_the_vm_knows_the_factor(monkeypatch):
    monkeypatch.setenv(DILATION, "2")
    monkeypatch.delenv(IN_VM, raising=False)
    assert time_dilation() is None
    monkeypatch.setenv(IN_VM, "1")
    assert time_dilation() == 2
    monkeypatch.delenv(DILATION)
    assert time_dilation() is None
