"""The VM: with what it is started, and when it is switched off."""

import contextlib
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lab.engines.mininet import in_vm
from lab.engines.mininet.machine import vm_kernel
from lab.engines.mininet.machine.ledger import Ledger
from lab.errors import LabError, MachineLacks, RequestError
from lab.vm_environment import SLOW_MACHINE
from vm import accelerator, guest, launch


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "vm").mkdir()
    return tmp_path / "vm"


@pytest.fixture
def monitor(folder):
    return launch._Monitor(folder)


def test_an_exit_status_counts_even_if_qemu_has_ended(monitor, folder):
    assert monitor.poll(ended=False, interrupts=0) is None
    (folder / "exit_code").write_text("7\n")
    assert monitor.poll(ended=True, interrupts=1) == 7


def test_one_interrupt_stops_the_command_and_a_second_switches_off(monitor, folder):
    assert monitor.poll(False, 0) is None
    assert not (folder / "stop").exists()
    assert [monitor.poll(False, count) for count in (1, 1, 2)] == [None, None, 130]
    assert (folder / "stop").exists()


def test_an_interrupted_command_that_runs_on_is_switched_off(monitor, monkeypatch):
    assert monitor.poll(False, 1) is None
    later = time.monotonic() + launch.GRACE_S + 1
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert monitor.poll(False, 1) == 130


def test_a_machine_that_ends_by_itself_is_an_error_with_the_end_of_its_log(monitor, folder):
    (folder / "console.txt").write_text("booting\nPower down\n")
    with pytest.raises(
        LabError, match=r"it ended by itself\. .*console.txt ends with: booting / Power down"
    ):
        monitor.poll(ended=True, interrupts=0)


def test_a_kernel_that_panics_during_the_command_is_reported_with_what_to_type(monitor, folder):
    (folder / "started").touch()
    (folder / "guest.txt").write_text("command starts\n")
    (folder / "console.txt").write_text("double fault\nKernel panic\n")
    with pytest.raises(
        LabError,
        match=r"its kernel panicked\. .*console\.txt ends with: double fault"
        r".*Try: the same command again",
    ):
        monitor.poll(ended=True, interrupts=0)


@pytest.mark.parametrize(
    ("console", "boots"), [("Kernel panic - not syncing", launch.BOOTS), ("Booting", 1)]
)
def test_only_a_kernel_that_panics_is_booted_again(tmp_path, monkeypatch, capsys, console, boots):
    tried = []

    (tmp_path / "vm").mkdir()

    def booted(*_):
        tried.append(1)
        (tmp_path / "vm" / "console.txt").write_text(console)
        raise LabError("it ended by itself")

    monkeypatch.setattr(launch, "_boot_and_run", booted)
    with pytest.raises(LabError):
        launch._boot_and_repeat(
            Ledger(tmp_path / "ledger"), launch.GuestCommand(["true"], tmp_path)
        )
    assert len(tried) == boots
    shown = capsys.readouterr().err
    assert shown.count("booting it again") == boots - 1
    assert shown.count(console) == boots - 1


def test_a_kernel_that_boots_the_second_time_is_enough(tmp_path, monkeypatch):
    (tmp_path / "vm").mkdir()

    def booted(*_):
        if not (tmp_path / "vm" / "console.txt").exists():
            (tmp_path / "vm" / "console.txt").write_text("Kernel panic")
            raise LabError("it ended by itself")
        return 7

    monkeypatch.setattr(launch, "_boot_and_run", booted)
    command = launch.GuestCommand(["true"], tmp_path)
    assert launch._boot_and_repeat(Ledger(tmp_path / "ledger"), command) == 7


def test_the_consoles_of_failed_boots_are_kept(tmp_path, monkeypatch):
    ends = iter(["panic one", "panic two", None])

    @contextlib.contextmanager
    def booted(_ledger, _image, shared):
        end = next(ends)
        if end is None:
            (shared / "vm" / "exit_code").write_text("0")
        else:
            (shared / "vm" / "console.txt").write_text(f"Kernel panic: {end}")
        with subprocess.Popen(["true"]) as qemu:
            qemu.wait()
            yield qemu

    monkeypatch.setattr(vm_kernel, "require", lambda: tmp_path / "vmlinuz-1")
    monkeypatch.setattr(accelerator, "kvm_works", lambda image: False)
    monkeypatch.setattr(guest, "booted", booted)
    command = launch.GuestCommand(["true"], tmp_path)
    assert launch._boot_and_repeat(Ledger(tmp_path / "ledger"), command) == 0
    kept = [(tmp_path / "vm" / f"console-{n}.txt").read_text() for n in (1, 2)]
    assert kept == ["Kernel panic: panic one", "Kernel panic: panic two"]


def test_a_missing_virtme_is_something_the_machine_lacks(monitor, folder):
    (folder / "console.txt").write_text("ModuleNotFoundError: No module named 'virtme'\n")
    with pytest.raises(MachineLacks, match="setup-emulation"):
        monitor.poll(ended=True, interrupts=0)


def test_a_boot_has_a_timeout_but_a_command_has_none(monitor, folder, monkeypatch):
    (folder / "console.txt").touch()
    later = time.monotonic() + launch.BOOT_TIMEOUT_S + 1
    monkeypatch.setattr(time, "monotonic", lambda: later)
    with pytest.raises(LabError, match="had not started after"):
        monitor.poll(False, 0)
    (folder / "started").touch()
    assert monitor.poll(False, 0) is None


def test_the_command_reaches_the_guest_word_by_word(tmp_path, monkeypatch):
    monkeypatch.setenv("MULTIPATH_LAB_NOTE", "two words")
    monkeypatch.setenv("SECRET", "x")
    script = (guest.prepare(["echo", "a b", "$HOME", "'"], tmp_path) / "start.sh").read_text()
    assert "SECRET" not in script
    shown = script.replace(
        f"exec bash {guest.HERE / 'guest.sh'} ", 'printf "%s\\n" "$MULTIPATH_LAB_NOTE" '
    )
    printed = subprocess.run(
        ["sh", "-c", shown], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert printed == [
        "two words",
        str(tmp_path / "vm"),
        str(guest.PROJECT),
        "echo",
        "a b",
        "$HOME",
        "'",
    ]


def test_files_of_an_earlier_run_are_removed_from_the_folder(tmp_path, folder):
    (folder / "exit_code").write_text("0")
    guest.prepare(["true"], tmp_path)
    assert not (folder / "exit_code").exists()


def test_a_folder_with_a_blank_is_mounted_under_another_name(tmp_path, monkeypatch):
    shared = tmp_path / "my runs"
    monkeypatch.setattr(accelerator, "kvm_works", lambda image: False)
    script = (guest.prepare(["true"], shared) / "start.sh").read_text()
    argv = guest.boot_argv(Path("/c/boot/vmlinuz-1"), shared)
    assert argv[-1] == f"{guest.ALIASES}/{len(guest.hidden_folders())}={shared}"
    assert f"bash {argv[-1].partition('=')[0]}/vm/start.sh" in argv
    assert f"mount --bind {argv[-1].partition('=')[0]} '{shared}'" in script


def test_the_guest_sees_the_real_folder_of_a_linked_venv(tmp_path, monkeypatch):
    clone, copy = tmp_path / "clone", tmp_path / "copy"
    (clone / ".venv").mkdir(parents=True)
    copy.mkdir()
    (copy / ".venv").symlink_to(clone / ".venv")
    monkeypatch.setattr(guest, "HIDDEN", (str(tmp_path.parent),))
    monkeypatch.setattr(guest, "PROJECT", copy)
    monkeypatch.setattr(sys, "prefix", str(copy / ".venv"))
    assert guest.hidden_folders() == [str(copy), str(clone / ".venv")]
    monkeypatch.setattr(guest, "PROJECT", clone)
    monkeypatch.setattr(sys, "prefix", str(clone / ".venv"))
    assert guest.hidden_folders() == [str(clone)]  # folders inside it are hidden with it


def test_files_of_the_user_are_copied_for_the_guest(tmp_path, folder):
    own = tmp_path / "laws" / "scalable.c"
    own.parent.mkdir()
    own.write_text("a law")
    copy = tmp_path / "copy.c"
    copy.write_text("the law as it was registered")
    guest.prepare(["true"], tmp_path, [(own, copy)])
    placed = folder / "files" / own.relative_to("/")
    assert placed.read_text() == "the law as it was registered"


@pytest.mark.parametrize("kvm", [True, False])
def test_kvm_is_used_where_it_works(tmp_path, monkeypatch, kvm):
    monkeypatch.setattr(accelerator, "kvm_works", lambda image: kvm)
    argv = guest.boot_argv(Path("/c/boot/vmlinuz-1"), tmp_path)
    assert ("--disable-kvm" in argv) is not kvm
    assert (f"--qemu-opt={guest.EMULATED_PROCESSOR}" in argv) is not kvm
    assert ("maxcpus=1" in argv) is not kvm


@pytest.mark.parametrize("kvm", [True, False])
def test_a_guest_without_kvm_knows_that_it_is_slow(tmp_path, monkeypatch, kvm):
    monkeypatch.setattr(vm_kernel, "remembered_kvm", lambda: kvm)
    script = (guest.prepare(["true"], tmp_path) / "start.sh").read_text()
    assert (f"export {SLOW_MACHINE}=1" in script) is not kvm


def test_no_command_is_a_wrong_request():
    with pytest.raises(RequestError, match="vm -- uname -r"):
        in_vm.main([])
