"""The VM: what it is started with, when it is given up, and (with a VM) that it really does what it says."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from machine import emulation, needs_emulation

from lab.engines.mininet.machine.ledger import Ledger, own
from lab.engines.mininet.vm import guest
from lab.engines.mininet.vm import launch as vm
from lab.engines.mininet.vm import vm_kernel as kernel
from lab.errors import LabError, MachineLacks, RequestError

__all__ = ["emulation"]


def needs_vm(test):
    """It boots a VM."""
    for mark in needs_emulation:
        test = mark(test)
    return test


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "vm").mkdir()
    return tmp_path / "vm"


@pytest.fixture
def watch(folder):
    asked = []
    watch = vm._Watch(folder, lambda: asked.append("stop"))
    watch.asked = asked
    return watch


def test_a_status_ends_it_even_if_the_machine_is_off(watch, folder):
    assert watch.look(ended=False, interrupts=0) is None
    (folder / "exit_code").write_text("7\n")
    assert watch.look(ended=True, interrupts=1) == 7


def test_one_interrupt_asks_once_and_a_second_pulls_the_plug(watch):
    assert [watch.look(False, count) for count in (1, 1, 2)] == [None, None, 130]
    assert watch.asked == ["stop"]


def test_patience_with_an_interrupted_command_ends(watch, monkeypatch):
    assert watch.look(False, 1) is None
    later = time.monotonic() + vm.GRACE_S + 1
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert watch.look(False, 1) == 130


def test_a_machine_that_ends_by_itself_is_an_error_with_its_last_words(watch, folder):
    (folder / "console.txt").write_text("booting\nPower down\n")
    with pytest.raises(
        LabError, match=r"it ended by itself\. .*console.txt ends with: booting / Power down"
    ):
        watch.look(ended=True, interrupts=0)


def test_a_kernel_that_panics_under_way_is_said_so_with_what_to_type(watch, folder):
    (folder / "started").touch()
    (folder / "guest.txt").write_text("command starts\n")
    (folder / "console.txt").write_text("double fault\nKernel panic\n")
    with pytest.raises(
        LabError,
        match=r"its kernel panicked\. .*console\.txt ends with: double fault.*Try: the same command again",
    ):
        watch.look(ended=True, interrupts=0)


@pytest.mark.parametrize(
    ("console", "boots"), [("Kernel panic - not syncing", vm.BOOTS), ("Booting", 1)]
)
def test_only_a_kernel_that_panics_is_booted_again(tmp_path, monkeypatch, capsys, console, boots):
    tried = []

    (tmp_path / "vm").mkdir()

    def booted(*_):
        tried.append(1)
        (tmp_path / "vm" / "console.txt").write_text(console)
        raise LabError("it ended by itself")

    monkeypatch.setattr(vm, "_booted", booted)
    with pytest.raises(LabError):
        vm._run(Ledger(tmp_path / "ledger"), vm.GuestCommand(["true"], tmp_path))
    assert len(tried) == boots
    assert capsys.readouterr().err.count("once more") == boots - 1


def test_a_kernel_that_comes_up_the_second_time_is_enough(tmp_path, monkeypatch):
    (tmp_path / "vm").mkdir()

    def booted(*_):
        if not (tmp_path / "vm" / "console.txt").exists():
            (tmp_path / "vm" / "console.txt").write_text("Kernel panic")
            raise LabError("it ended by itself")
        return 7

    monkeypatch.setattr(vm, "_booted", booted)
    assert vm._run(Ledger(tmp_path / "ledger"), vm.GuestCommand(["true"], tmp_path)) == 7


def test_a_missing_virtme_is_something_the_machine_lacks(watch, folder):
    (folder / "console.txt").write_text("ModuleNotFoundError: No module named 'virtme'\n")
    with pytest.raises(MachineLacks, match="setup-emulation"):
        watch.look(ended=True, interrupts=0)


def test_a_boot_that_takes_too_long_is_given_up_but_a_long_command_is_not(
    watch, folder, monkeypatch
):
    (folder / "console.txt").touch()
    later = time.monotonic() + vm.BOOT_TIMEOUT_S + 1
    monkeypatch.setattr(time, "monotonic", lambda: later)
    with pytest.raises(LabError, match="had not started after"):
        watch.look(False, 0)
    (folder / "started").touch()
    assert watch.look(False, 0) is None


def test_the_command_reaches_the_guest_word_by_word(tmp_path, monkeypatch):
    monkeypatch.setenv("MULTIPATH_LAB_NOTE", "two words")
    monkeypatch.setenv("SECRET", "x")
    script = (guest.prepare(["echo", "a b", "$HOME", "'"], tmp_path) / "start.sh").read_text()
    assert "SECRET" not in script
    shown = script.replace(
        f"exec bash {guest.HERE / 'guest.sh'} ", 'printf "%s\\n" "$MULTIPATH_LAB_NOTE" '
    )
    said = subprocess.run(
        ["sh", "-c", shown], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert said == [
        "two words",
        str(tmp_path / "vm"),
        str(guest.PROJECT),
        "echo",
        "a b",
        "$HOME",
        "'",
    ]


def test_what_an_earlier_run_left_in_the_folder_is_not_taken_for_this_ones(tmp_path, folder):
    (folder / "exit_code").write_text("0")
    guest.prepare(["true"], tmp_path)
    assert not (folder / "exit_code").exists()


def test_a_blank_in_the_folders_name_is_refused(tmp_path):
    with pytest.raises(RequestError, match="blank"):
        guest.prepare(["true"], tmp_path / "my runs")


@pytest.mark.parametrize("kvm", [True, False])
def test_kvm_is_used_where_it_works(tmp_path, monkeypatch, kvm):
    monkeypatch.setattr(kernel, "kvm_works", lambda image: kvm)
    argv = guest.boot_argv(Path("/c/boot/vmlinuz-1"), tmp_path)
    assert ("--disable-kvm" in argv) is not kvm
    assert (f"--qemu-opt={guest.EMULATED_PROCESSOR}" in argv) is not kvm


def test_no_command_is_a_wrong_request():
    with pytest.raises(RequestError, match="vm -- uname -r"):
        vm.main([])


def machines() -> list[str]:
    found = subprocess.run(
        ["pgrep", "-f", "qemu-system.* -name multipath-lab"],
        capture_output=True,
        text=True,
        check=False,
    )
    return found.stdout.split()


def remains() -> list[str]:
    """Processes of QEMU that ended and that nobody has waited for."""
    return [
        line
        for line in subprocess.run(
            ["ps", "-eo", "stat,comm"], capture_output=True, text=True, check=True
        ).stdout.splitlines()
        if line.startswith("Z") and "qemu" in line
    ]


GUEST = """
echo out; echo err >&2
ovs=$(ovs-vsctl --retry --timeout=60 --bare --columns=name list interface) && modinfo -n mac80211_hwsim >/dev/null && echo switches
echo hello >{shared}/hello
exec 7<>/run/never
until [ -e {shared}/inbox/1.json ]; do read -r -t 0.02 -u 7; done
touch {shared}/seen
trap 'echo interrupted; exit 5' INT
touch {shared}/ready
while :; do read -r -t 0.1 -u 7; done
"""


@needs_vm
def test_a_command_in_the_vm(tmp_path):
    """Both outputs, files both ways within half a second, an interrupt, the exit status, and nothing left."""
    began = time.monotonic()
    times = {}

    def look():
        if (tmp_path / "hello").exists() and "hello" not in times:
            times["hello"] = time.monotonic() - began
            (tmp_path / "inbox").mkdir()
            (tmp_path / "inbox" / "new").touch()
            (tmp_path / "inbox" / "new").rename(tmp_path / "inbox" / "1.json")
            renamed = time.monotonic()
            while not (tmp_path / "seen").exists() and time.monotonic() < renamed + 5:
                time.sleep(0.01)
            times["there and back"] = time.monotonic() - renamed
        if (tmp_path / "ready").exists() and "ready" not in times:
            times["ready"] = time.monotonic() - began
            os.kill(os.getpid(), signal.SIGINT)

    before, zombies = machines(), len(remains())
    assert (
        vm.run_in_vm(vm.GuestCommand(["bash", "-c", GUEST.format(shared=tmp_path)], tmp_path, look))
        == 5
    )
    print(
        {name: round(at, 2) for name, at in times.items()}
        | {"end": round(time.monotonic() - began, 1)}
    )
    said = (tmp_path / "vm/output.txt").read_text().splitlines()
    assert said == ["out", "switches", "interrupted"]
    assert times["there and back"] < 0.5
    assert (tmp_path / "vm/errors.txt").read_text() == "err\n"
    assert machines() == before
    assert len(remains()) <= zombies
    assert not (tmp_path / "vm/temporary").exists()
    assert not own().exists()


@needs_vm
def test_the_vm_dies_with_who_started_it(tmp_path):
    """After kill -9 of the caller QEMU is gone by itself, and what is left is listed."""
    before = machines()
    code = f"from pathlib import Path; from lab.engines.mininet.vm import launch as vm; vm.run_in_vm(vm.GuestCommand(['sleep', '60'], Path('{tmp_path}')))"
    with subprocess.Popen(
        [sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": str(guest.PROJECT)}
    ) as caller:
        while machines() == before:
            assert caller.poll() is None
            time.sleep(0.1)
        caller.kill()
    deadline = time.monotonic() + 3
    while machines() != before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert machines() == before
    assert (tmp_path / "vm/temporary").exists()
    assert Ledger(own()).undo_all() == []
    assert not (tmp_path / "vm/temporary").exists()
