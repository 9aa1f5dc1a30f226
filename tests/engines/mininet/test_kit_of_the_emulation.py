"""What the emulation takes from a kit: sources, Debian packages, the VM's kernel."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from lab import kit
from lab.engines.mininet.install import packing, setup
from lab.engines.mininet.machine import shell, upstreams, vm_kernel
from lab.errors import MachineLacks

POX = upstreams.UPSTREAMS[0]
HAS_APT = bool(shutil.which("apt-get") and shutil.which("dpkg-deb"))
needs_apt = pytest.mark.skipif(not HAS_APT, reason="this is not Debian or Ubuntu")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder of a kit for this system."""
    made = tmp_path / "a kit"
    made.mkdir()
    (made / kit.ABOUT).write_text(f"python 3.11\nsystem {kit.system()}\n")
    monkeypatch.setattr(kit, "FOLDER", made)
    monkeypatch.setenv("MULTIPATH_LAB_CACHE", str(tmp_path / "cache"))
    return made


def sources(folder, commit):
    (folder / "pox").mkdir(parents=True)
    (folder / "pox.py").write_text("print('pox')\n")
    (folder / "pox" / "link").symlink_to("../pox.py")
    (folder / ".commit").write_text(commit + "\n")


def test_sources_are_copied_from_the_kit_without_a_network(folder, monkeypatch):
    sources(folder / kit.UPSTREAMS / "pox", POX.commit)
    monkeypatch.setattr(shell, "run", None)
    assert upstreams.fetch(POX) == "copied from the kit"
    assert upstreams.present(POX)
    assert (upstreams.folder("pox") / "pox" / "link").read_text() == "print('pox')\n"
    assert upstreams.fetch(POX) == "already there"


def test_other_sources_in_the_kit_are_refused(folder):
    sources(folder / kit.UPSTREAMS / "pox", "1" * 40)
    with pytest.raises(MachineLacks, match=r"is at 1{40}, not at 20d2918.* Unpack the kit again"):
        upstreams.fetch(POX)
    assert [*upstreams.folder().iterdir()] == []


def test_sources_are_packed_without_history_and_without_what_was_built(folder, tmp_path):
    for each in upstreams.UPSTREAMS:
        sources(upstreams.folder(each.name), each.commit)
        (upstreams.folder(each.name) / ".git").mkdir()
    program = upstreams.hwsim_mgmt()
    program.parent.mkdir()
    for name in (program.name, "main.c", "main.o"):
        (program.parent / name).touch()
    packing.pack_upstreams(tmp_path / "packed")
    built = tmp_path / "packed" / program.relative_to(upstreams.folder()).parent
    assert [each.name for each in built.iterdir()] == ["main.c"]
    assert program.exists()
    for each in upstreams.UPSTREAMS:
        assert upstreams.commit(tmp_path / "packed" / each.name) == each.commit
        assert not (tmp_path / "packed" / each.name / ".git").exists()


def test_the_kernel_comes_from_the_kit(folder, tmp_path, monkeypatch):
    (folder / kit.KERNEL).mkdir()
    (folder / kit.KERNEL / "linux-image-6.12.1_1_amd64.deb").write_text("kernel")
    monkeypatch.setattr(shell, "run", None)
    found = vm_kernel.download(tmp_path)
    assert found == tmp_path / "linux-image-6.12.1_1_amd64.deb"
    assert found.read_text() == "kernel"


def debian_package(folder, name, version, needs=""):
    control = folder / name / "DEBIAN" / "control"
    control.parent.mkdir(parents=True)
    text = f"Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: a\n"
    control.write_text(text + (f"Depends: {needs}\n" if needs else "") + "Description: a test\n")
    file = folder / f"{name}_{version.replace(':', '%3a')}_all.deb"
    argv = ["dpkg-deb", "--build", str(control.parents[1]), str(file)]
    subprocess.run(argv, check=True, capture_output=True)
    shutil.rmtree(control.parents[1])


@needs_apt
def test_apt_installs_packages_of_the_kit_with_what_they_need(folder):
    packages = folder / kit.PACKAGES
    packages.mkdir()
    debian_package(packages, "lab-first", "1:2-3", needs="lab-second")
    debian_package(packages, "lab-second", "1")
    packing.write_index(packages)
    assert sorted(each.name for each in packages.iterdir()) == [
        packing.INDEX,
        "lab-first_2-3_all.deb",
        "lab-second_1_all.deb",
    ]
    with setup._apt() as apt:
        said = shell.run([*apt, "install", "--simulate", "lab-first"], "try it")
        uris = shell.run([*apt, "install", "--print-uris", "-qq", "lab-first"], "try it")
    assert "Inst lab-second (1" in said
    assert "Inst lab-first (1:2-3" in said
    assert uris.count("file:") == 2


@needs_apt
def test_packages_for_another_system_are_refused(folder, monkeypatch):
    (folder / kit.PACKAGES).mkdir()
    (folder / kit.ABOUT).write_text("python 3.11\nsystem plan 9\n")
    monkeypatch.setattr(setup, "missing_packages", lambda: ["iw"])
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(MachineLacks, match=r"the kit is for plan 9, and this machine is "):
        setup.install_packages()


def test_python_packages_come_from_the_kit(folder, monkeypatch):
    called = []
    monkeypatch.setattr(setup, "_installed", lambda name, version: False)
    monkeypatch.setattr(shell, "run", lambda argv, doing: called.append(argv))
    setup.install_python_packages()
    (argv,) = called
    assert {"--no-index", "--require-hashes", str(folder / kit.WHEELS)} <= {*argv}
    (folder / kit.ABOUT).unlink()
    setup.install_python_packages()
    assert "--no-index" not in called[1]
