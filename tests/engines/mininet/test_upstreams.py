"""The cache of upstream sources: where it is, that it can be copied, and that it is complete
without a network."""

import lzma
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lab.engines.mininet import in_vm
from lab.engines.mininet.install import setup
from lab.engines.mininet.machine import shell, upstreams, vm_kernel
from lab.errors import CommandFailed, MachineLacks
from vm import install_kernel

PROJECT = Path(setup.PROJECT)
NO_NETWORK = """#!/bin/sh
echo "$0 $*" >>"$CALLS"
case " $* " in
*" clone "*|*" fetch "*|*" update "*|*" download "*|*" install "*)
    echo "network is off" >&2
    exit 128;;
esac
exec {program} "$@"
"""


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A complete cache: sources with their commits, a program, a kernel."""
    home = tmp_path / "copied"
    for each in upstreams.UPSTREAMS:
        (home / "upstreams" / each.name).mkdir(parents=True)
        (home / "upstreams" / each.name / ".commit").write_text(each.commit + "\n")
    for package in ("pox/pox", "mininet/mininet", "mininet-wifi/mn_wifi"):
        (home / "upstreams" / package).mkdir()
        (home / "upstreams" / package / "__init__.py").touch()
    (home / "upstreams/pox/pox.py").touch()
    program = home / "upstreams/mac80211_hwsim_mgmt/hwsim_mgmt/hwsim_mgmt"
    program.parent.mkdir()
    program.touch(0o755)
    for path in ("vm/boot/vmlinuz-6.12.1", "vm/lib/modules/6.12.1/modules.dep"):
        (home / path).parent.mkdir(parents=True)
        (home / path).touch()
    (home / "vm/boot/types-6.12.1").touch()
    (home / "vm/kvm.json").write_text(f'{{"works": false, "kernel": "{os.uname().release}"}}')
    monkeypatch.setenv("MULTIPATH_LAB_CACHE", str(home))
    prepare = in_vm.prepare
    snapshot = "make snapshot"  # this kernel cannot boot
    monkeypatch.setattr(in_vm, "prepare", lambda task: "" if task == snapshot else prepare(task))
    return home


@pytest.fixture
def no_network(tmp_path, monkeypatch):
    """Network commands of git and apt fail; the fixture returns how the programs were called."""
    calls = tmp_path / "calls"
    calls.touch()
    (tmp_path / "bin").mkdir()
    for name in ("git", "apt-get", "apt-cache"):
        path = tmp_path / "bin" / name
        path.write_text(NO_NETWORK.format(program=shutil.which(name) or "/bin/false"))
        path.chmod(0o755)
    monkeypatch.setenv("CALLS", str(calls))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    return lambda: calls.read_text().splitlines()


def network_calls(lines):
    return [
        line
        for line in lines
        if any(
            f" {verb}" in line
            for verb in ("clone", "fetch", "ls-remote", "update", "download", "install")
        )
    ]


def test_where_the_cache_is(monkeypatch):
    for name in ("MULTIPATH_LAB_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/ada")
    assert upstreams.cache() == Path("/home/ada/.cache/multipath-lab")
    monkeypatch.setenv("XDG_CACHE_HOME", "/big")
    assert upstreams.cache() == Path("/big/multipath-lab")
    monkeypatch.setenv("MULTIPATH_LAB_CACHE", "/usb/lab")
    assert upstreams.cache() == Path("/usb/lab")


@pytest.mark.whole
def test_a_copied_cache_suffices_without_a_network(cache, no_network, monkeypatch, capsys):
    monkeypatch.setattr(setup, "install_packages", lambda: "already there")
    monkeypatch.setattr(setup, "install_python_packages", lambda: "already there")
    assert setup.main() == 0, capsys.readouterr().err
    assert network_calls(no_network()) == []
    printed = capsys.readouterr().out
    assert printed.count("already there") == 9
    assert upstreams.require() == cache / "upstreams"
    assert setup.main() == 0
    assert "bytecode: already compiled" in capsys.readouterr().out


@pytest.mark.whole
def test_a_missing_upstream_without_a_network_is_one_sentence(
    cache, no_network, monkeypatch, capsys
):
    shutil.rmtree(cache / "upstreams/pox")
    monkeypatch.setattr(setup, "install_packages", lambda: "already there")
    monkeypatch.setattr(setup, "install_python_packages", lambda: "already there")
    assert setup.main() == 3
    errors = capsys.readouterr().err.splitlines()
    assert errors[0].startswith(
        "pox: fetch pox: network is off. With a network, try: ./run_lab.sh setup-emulation; "
        "without one, copy "
    )
    assert "Traceback" not in "".join(errors)
    assert (
        sorted(path.name for path in (cache / "upstreams").iterdir() if "partial" in path.name)
        == []
    )
    with pytest.raises(MachineLacks, match=r"pox not found .* Try: ./run_lab.sh setup-emulation"):
        upstreams.require()


@pytest.mark.whole
def test_a_missing_optional_upstream_stops_nothing(cache, no_network, monkeypatch, capsys):
    shutil.rmtree(cache / "upstreams/wmediumd")
    monkeypatch.setattr(setup, "install_packages", lambda: "already there")
    monkeypatch.setattr(setup, "install_python_packages", lambda: "already there")
    assert setup.main() == 0
    assert "wmediumd: left out, optional: " in capsys.readouterr().err


def test_sources_at_another_commit_are_kept(cache):
    (cache / "upstreams/pox/.commit").write_text("0" * 40)
    with pytest.raises(MachineLacks, match=r"is at 0{40}, not at 20d2918.*mv "):
        upstreams.fetch(upstreams.UPSTREAMS[0])
    assert (cache / "upstreams/pox/pox.py").exists()


def git(folder, *words):
    settings = [
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@b",
        "-c",
        "init.defaultBranch=main",
        "-c",
        "uploadpack.allowAnySHA1InWant=true",
    ]
    return subprocess.run(
        ["git", *settings, "-C", str(folder), *words], check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def origin(tmp_path):
    """A repository of two commits; the older one is pinned."""
    folder = tmp_path / "origin"
    folder.mkdir()
    git(folder, "init", "-q")
    git(folder, "config", "uploadpack.allowAnySHA1InWant", "true")
    for number in (1, 2):
        (folder / "file").write_text(str(number))
        git(folder, "add", "file")
        git(folder, "commit", "-qm", str(number))
    return upstreams.Upstream(
        "thing", folder.as_uri(), git(folder, "rev-parse", "HEAD~1"), "a test"
    )


def test_fetch_takes_only_the_pinned_commit(origin, tmp_path, monkeypatch):
    monkeypatch.setenv("MULTIPATH_LAB_CACHE", str(tmp_path / "cache"))
    assert upstreams.fetch(origin) == "fetched"
    assert (upstreams.folder("thing") / "file").read_text() == "1"
    assert upstreams.commit(upstreams.folder("thing")) == origin.commit
    assert upstreams.fetch(origin) == "already there"
    assert [path.name for path in upstreams.folder().iterdir()] == ["thing"]


def test_git_resolves_the_commit_of_a_clone_on_a_branch(origin, tmp_path):
    git(tmp_path, "clone", "-q", origin.url, "clone")
    assert upstreams.commit(tmp_path / "clone") == git(tmp_path / "clone", "rev-parse", "HEAD")
    assert upstreams.commit(tmp_path) is None


def test_missing_packages_without_root_are_a_line_to_type(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(shell, "run", lambda argv, doing, **_: "installed git\ndeinstall iw\n")
    with pytest.raises(
        MachineLacks, match=r"Try: sudo apt install openvswitch-switch .* iw "
    ) as lacks:
        setup.install_packages()
    assert not str(lacks.value).endswith("git")


def test_a_failing_download_of_the_kernel_says_what_to_type(tmp_path, monkeypatch):
    def run(argv, doing, **_):
        if argv[0] == "apt-cache":
            return "linux-image\n  Depends: linux-image-6.12.1\n"
        raise CommandFailed(doing, argv, 100, "Could not resolve")

    monkeypatch.setenv("MULTIPATH_LAB_CACHE", str(tmp_path))
    monkeypatch.setattr(shell, "run", run)
    with pytest.raises(
        MachineLacks,
        match=r"Could not resolve.*With a network, try: sudo apt update, .*without one, copy",
    ):
        install_kernel.install()


def test_a_kernel_without_its_modules_does_not_count(cache):
    assert vm_kernel.require().name == "vmlinuz-6.12.1"
    (cache / "vm/lib/modules/6.12.1/modules.dep").unlink()
    with pytest.raises(MachineLacks, match="setup-emulation"):
        vm_kernel.require()


@pytest.mark.whole
def test_the_command_is_fast_the_second_time(cache, no_network):
    argv = [
        sys.executable,
        "-c",
        "import sys; from lab.engines.mininet.install import setup; "
        "setup.install_packages = setup.install_python_packages = lambda: ''; "
        "prepare = setup.in_vm.prepare; "
        "setup.in_vm.prepare = lambda task: task == 'make snapshot' or prepare(task); "
        "sys.exit(setup.main())",
    ]
    environment = os.environ | {"PYTHONPATH": str(PROJECT)}
    subprocess.run(argv, env=environment, check=True, capture_output=True)
    subprocess.run(argv, env=environment, check=True, capture_output=True, timeout=3)


def test_modules_the_guest_loads_are_unpacked_once_with_their_dependencies(cache, monkeypatch):
    folder = cache / "vm/lib/modules/6.12.1"
    texts = {
        "net/mac80211_hwsim.ko.xz": "net/mac80211.ko.xz",
        "net/mac80211.ko.xz": "",
        "net/other.ko.xz": "",
    }
    (folder / "net").mkdir()
    for name in texts:
        (folder / name).write_bytes(lzma.compress(name.encode()))
    (folder / "modules.dep").write_text(
        "".join(f"{name}: {needs}\n" for name, needs in texts.items())
    )
    indexed = []
    monkeypatch.setattr(shell, "run", lambda argv, doing: indexed.append(argv))
    assert install_kernel.unpack_modules(vm_kernel.require()) == 2
    assert sorted(path.name for path in (folder / "net").iterdir()) == [
        "mac80211.ko",
        "mac80211_hwsim.ko",
        "other.ko.xz",
    ]
    assert (folder / "net/mac80211.ko").read_text() == "net/mac80211.ko.xz"
    assert indexed == [["depmod", "-b", str(cache / "vm"), "6.12.1"]]
    (folder / "modules.dep").write_text("net/mac80211_hwsim.ko: net/mac80211.ko\n")
    assert install_kernel.unpack_modules(vm_kernel.require()) == 0
