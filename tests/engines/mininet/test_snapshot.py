"""The VM's snapshot: when it is valid, what is in it, and what follows a failure."""

import contextlib
import json
import os
import subprocess
from pathlib import Path

import pytest

from lab.engines.mininet.machine import lock, upstreams, vm_kernel
from lab.engines.mininet.machine.ledger import Ledger
from lab.errors import LabError
from vm import accelerator, guest, launch, qemu, snapshot, snapshot_image


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MULTIPATH_LAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(snapshot.START, raising=False)
    monkeypatch.setattr(accelerator, "kvm_works", lambda image: False)
    monkeypatch.setattr(lock, "LOCK", tmp_path / "lock")
    return upstreams.cache()


@pytest.fixture
def kernel(tmp_path):
    image = tmp_path / "boot" / "vmlinuz-6.12.1"
    image.parent.mkdir()
    image.write_text("kernel")
    return image


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "ledger")


def made(files, *copied):
    """A snapshot that has only a manifest, which lists these files."""
    files.folder.mkdir(parents=True)
    manifest = {
        "packages": snapshot_image.packages(),
        "sources": snapshot.sources(),
        "files": [[str(path), *snapshot._stamp(path)] for path in copied],
    }
    files.manifest.write_text(json.dumps(manifest))


def test_a_snapshot_is_valid_until_a_file_in_it_changes(cache, tmp_path):
    program = tmp_path / "ip"
    program.write_text("a program")
    files = qemu.Files(tmp_path / "snapshot")
    assert not snapshot.is_valid(files)
    made(files, program)
    assert snapshot.is_valid(files)
    os.utime(program, ns=(1, 1))
    assert not snapshot.is_valid(files)
    program.unlink()
    assert not snapshot.is_valid(files)


def test_a_new_python_package_outdates_the_snapshot(cache, tmp_path, monkeypatch):
    files = qemu.Files(tmp_path / "snapshot")
    made(files)
    installed = [*snapshot_image.packages(), "new-1.0.dist-info"]
    monkeypatch.setattr(snapshot_image, "packages", lambda: installed)
    assert not snapshot.is_valid(files)


def test_the_name_covers_kernel_scripts_and_command_line(cache, kernel, monkeypatch):
    before = snapshot._name(kernel, False)
    assert snapshot._name(kernel, False) == before
    assert snapshot._name(kernel, True) != before
    monkeypatch.setattr(guest, "MEMORY", "3G")
    assert snapshot._name(kernel, False) != before
    monkeypatch.undo()
    monkeypatch.setenv("MULTIPATH_LAB_CACHE", str(cache))
    kernel.write_text("another kernel")
    assert snapshot._name(kernel, False) != before


def test_vms_are_restored_unless_boots_are_requested(cache, kernel, ledger, monkeypatch):
    made(qemu.Files(snapshot.home() / snapshot._name(kernel, False)))
    assert snapshot.ready(ledger, kernel) is not None
    monkeypatch.setenv(snapshot.START, snapshot.BOOT)
    assert snapshot.ready(ledger, kernel) is None


def test_with_kvm_a_run_makes_no_snapshot(cache, kernel, ledger, monkeypatch):
    monkeypatch.setattr(accelerator, "kvm_works", lambda image: True)
    monkeypatch.setattr(snapshot, "_make", lambda *_: pytest.fail("it was made"))
    assert snapshot.ready(ledger, kernel) is None


def test_a_failure_is_reported_once_and_vms_are_booted(cache, kernel, ledger, monkeypatch, capsys):
    tried = []

    def failing(*_):
        tried.append(1)
        raise LabError("no space left")

    monkeypatch.setattr(snapshot, "_make", failing)
    assert snapshot.ready(ledger, kernel) is None
    assert "boots instead of being restored from its snapshot: no space left" in (
        capsys.readouterr().err
    )
    assert snapshot.ready(ledger, kernel) is None
    assert len(tried) == 1
    later = next(snapshot.home().glob("*.failed"))
    os.utime(later, (0, 0))
    assert snapshot.ready(ledger, kernel) is None
    assert len(tried) == 2


def test_a_snapshot_half_made_is_never_used(cache, kernel, ledger, monkeypatch):
    def killed(image, kernel):
        (image.root / "half").touch()
        raise KeyboardInterrupt

    monkeypatch.setattr(snapshot_image, "collect", killed)
    with pytest.raises(KeyboardInterrupt):
        snapshot.make(ledger, kernel)
    assert not list(snapshot.home().glob("*/manifest.json"))
    assert (snapshot.home() / "partial").exists()
    assert ledger.undo_all() == []
    assert not (snapshot.home() / "partial").exists()


def test_a_source_changed_while_the_snapshot_is_made_counts_as_changed(
    cache, kernel, ledger, tmp_path, monkeypatch
):
    source, program = tmp_path / "lab.py", tmp_path / "ip"
    source.write_text("1")
    program.write_text("1")

    def collect(image, kernel):
        image.files.add(program)

    @contextlib.contextmanager
    def started(*_, **__):
        source.write_text("now longer")
        program.write_text("now longer")
        yield None, type("Monitor", (), {"save": lambda self, path: None})(), None

    monkeypatch.setattr(snapshot, "sources", source.read_text)
    monkeypatch.setattr(snapshot_image, "collect", collect)
    monkeypatch.setattr(snapshot_image.Image, "build", lambda self, target: None)
    monkeypatch.setattr(snapshot_image, "write_first_file_system", lambda kernel, target: None)
    monkeypatch.setattr(snapshot, "_started", started)
    monkeypatch.setattr(snapshot, "_wait_until_warm", lambda line: None)
    files = snapshot.make(ledger, kernel)
    assert json.loads(files.manifest.read_text())["sources"] == "1"
    assert not snapshot.is_valid(files)


def test_only_the_latest_snapshots_are_kept(cache):
    for number in range(snapshot.KEPT + 2):
        files = qemu.Files(snapshot.home() / str(number))
        made(files)
        os.utime(files.folder, (number, number))
    snapshot._remove_old()
    assert sorted(each.name for each in snapshot.home().iterdir()) == ["2", "3", "4"]


def test_a_vm_that_is_not_restored_is_booted(cache, kernel, ledger, tmp_path, monkeypatch, capsys):
    files = qemu.Files(snapshot.home() / snapshot._name(kernel, False))
    made(files)

    @contextlib.contextmanager
    def failing(*_):
        raise LabError("QEMU has ended")
        yield

    monkeypatch.setattr(vm_kernel, "require", lambda: kernel)
    monkeypatch.setattr(snapshot, "restored", failing)
    monkeypatch.setattr(launch, "_boot_and_run", lambda *_: 7)
    assert launch._run(ledger, launch.GuestCommand(["true"], tmp_path)) == 7
    assert "boots instead of being restored" in capsys.readouterr().err
    assert not files.folder.exists()


def test_a_command_that_fails_is_not_repeated(cache, kernel, ledger, tmp_path, monkeypatch):
    files = qemu.Files(snapshot.home() / snapshot._name(kernel, False))
    made(files)

    @contextlib.contextmanager
    def ending(_ledger, _kernel, _files, shared):
        (shared / "vm" / "started").touch()
        (shared / "vm" / "guest.txt").write_text("command starts")
        with subprocess.Popen(["true"]) as ended:
            ended.wait()
            yield ended

    monkeypatch.setattr(vm_kernel, "require", lambda: kernel)
    monkeypatch.setattr(snapshot, "restored", ending)
    monkeypatch.setattr(launch, "_boot_and_run", lambda *_: pytest.fail("it was repeated"))
    with pytest.raises(LabError, match="it ended by itself"):
        launch._run(ledger, launch.GuestCommand(["true"], tmp_path))
    assert files.folder.exists()


def test_two_restored_vms_differ_in_clock_and_seeds(cache, tmp_path):
    files = qemu.Files(tmp_path / "snapshot")
    made(files)
    first, second = (json.loads(snapshot._orders(files, tmp_path)) for _ in range(2))
    for name in ("entropy", "system_id", "time"):
        assert first[name] != second[name]
    assert first["changed"] is False
    manifest = json.loads(files.manifest.read_text()) | {"sources": "others"}
    files.manifest.write_text(json.dumps(manifest))
    assert json.loads(snapshot._orders(files, tmp_path))["changed"] is True


@pytest.mark.parametrize("works", [True, False])
def test_setup_keeps_only_a_snapshot_that_can_be_restored(cache, kernel, monkeypatch, works):
    """With KVM too: there only the set-up makes a snapshot."""
    monkeypatch.setattr(accelerator, "kvm_works", lambda image: True)
    files = qemu.Files(snapshot.home() / snapshot._name(kernel, True))

    @contextlib.contextmanager
    def restoring(_ledger, _kernel, _files, shared):
        if not works:
            raise LabError("QEMU has ended")
        (shared / "vm" / "exit_code").write_text("0")
        with subprocess.Popen(["true"]) as ended:
            yield ended

    monkeypatch.setattr(vm_kernel, "require", lambda: kernel)
    monkeypatch.setattr(snapshot, "_make", lambda _ledger, _kernel, files, _kvm: made(files))
    monkeypatch.setattr(snapshot, "restored", restoring)
    with contextlib.nullcontext() if works else pytest.raises(LabError):
        assert launch.make_snapshot()
    assert files.folder.exists() is works
    if works:
        assert not launch.make_snapshot()


def test_links_on_the_path_of_a_file_are_copied(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").write_text("text")
    (tmp_path / "link").symlink_to("real")
    image = snapshot_image.Image(tmp_path / "root")
    image.root.mkdir()
    image.add(tmp_path / "link" / "file")
    image.add(tmp_path / "missing")
    copy = image.root / tmp_path.relative_to("/")
    assert (copy / "real" / "file").read_text() == "text"
    assert os.readlink(copy / "link") == "real"
    assert image.files == {tmp_path / "real" / "file"}


def test_only_a_restored_vm_leaves_the_ram_as_it_is(tmp_path):
    files, shared = qemu.Files(tmp_path), Path("/runs")
    for restore, word in ((False, "share=on"), (True, "share=off")):
        argv = qemu.argv(tmp_path / "k", files, shared, (3, 4), kvm=False, restore=restore)
        assert any(each.endswith(word) for each in argv)
        assert ("-incoming" in argv) is restore
