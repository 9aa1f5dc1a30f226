"""Resources in the ledger are removed, and no others."""

import json
import os
import signal
import subprocess
import time

import pytest

from lab.engines.mininet.machine import ledger as removing
from lab.engines.mininet.machine import shell
from lab.engines.mininet.machine.processes import start_time
from lab.engines.mininet.network import host_setup
from lab.errors import LabError

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes network interfaces")


@pytest.fixture
def sleeper():
    process = subprocess.Popen(["sleep", "60"])
    yield process
    process.kill()
    process.wait()


def test_a_process_is_killed(ledger, sleeper):
    ledger.record("process", pid=sleeper.pid)
    assert ledger.undo_all() == []
    assert sleeper.wait(1) == -signal.SIGKILL
    assert not ledger.path.exists()


def test_a_reused_process_number_is_left_alone(ledger, sleeper):
    ledger.record("process", pid=sleeper.pid, started=start_time(sleeper.pid) - 1)
    assert ledger.undo_all() == []
    assert sleeper.poll() is None


def test_a_zombie_counts_as_ended(sleeper):
    sleeper.kill()
    time.sleep(0.1)
    assert start_time(sleeper.pid) is None  # a zombie


def test_newest_first_and_radios_last(ledger, monkeypatch):
    undone = []
    monkeypatch.setitem(removing.UNDO, "file", lambda path: undone.append(path))
    monkeypatch.setitem(removing.UNDO, "radios", lambda prefix: undone.append(prefix))
    ledger.record("file", path="a")
    ledger.record("radios", prefix="mn7p")
    ledger.record("file", path="b")
    ledger.undo_all()
    assert undone == ["b", "a", "mn7p"]


@pytest.fixture
def radios(tmp_path, monkeypatch):
    """Radios are folders here; removing a radio removes its folder."""
    folder = tmp_path / "ieee80211"
    folder.mkdir()
    monkeypatch.setattr(removing, "RADIOS", folder)
    monkeypatch.setattr(shell, "run", lambda argv, doing: (folder / argv[-1]).rmdir())
    return folder


def test_only_the_radios_of_the_run_are_removed(radios):
    for name in ("mn00007p00s00", "mn00007p01s01", "mn00008p00s00"):
        (radios / name).mkdir()
    assert removing.radios("mn00007p") == "radios mn00007p00s00, mn00007p01s01"
    assert [each.name for each in radios.iterdir()] == ["mn00008p00s00"]
    assert removing.radios("mn00007p") is None


@needs_root
def test_radios_leave_the_namespace_of_a_host_that_is_gone(ledger, tmp_path, monkeypatch):
    host = subprocess.Popen(["unshare", "--net", "sleep", "60"])
    while os.readlink(f"/proc/{host.pid}/ns/net") == os.readlink("/proc/self/ns/net"):
        time.sleep(0.01)
    kept, entered = tmp_path / "ue1.netns", []
    ledger.record("namespace", path=str(kept))
    host_setup.keep_namespace(host.pid, kept)
    inode = kept.stat().st_ino
    host.kill()
    host.wait()
    real = shell.run

    def run(argv, doing):
        if argv[0] != "nsenter":
            return real(argv, doing)
        entered.append(argv[2:])
        assert real([*argv[:2], "readlink", "/proc/self/ns/net"], doing) == f"net:[{inode}]\n"
        return "Wiphy mn00007p00\n\twiphy index: 4\n" if argv[2:] == ["iw", "phy"] else ""

    monkeypatch.setattr(shell, "run", run)
    removed: list[str] = []
    assert ledger.undo_all(removed) == []
    move = ["iw", "phy#4", "set", "netns", str(os.getpid())]
    assert entered == [["iw", "phy"], move]
    assert (removed, kept.exists()) == ([f"mount {kept}"], False)


def test_files_folders_and_pins(ledger, tmp_path):
    (tmp_path / "pins" / "cell").mkdir(parents=True)
    (tmp_path / "pins" / "cell" / "map").touch()
    (tmp_path / "note").touch()
    (tmp_path / "kept").touch()
    ledger.record("pin", path=str(tmp_path / "pins"))
    ledger.record("file", path=str(tmp_path / "note"))
    ledger.record("folder", path=str(tmp_path / "never made"))
    assert ledger.undo_all() == []
    assert {path.name for path in tmp_path.iterdir()} == {"kept"}  # nor the folder of the ledger


def test_a_setting_is_restored(ledger, tmp_path, monkeypatch):
    monkeypatch.setattr(removing, "SYSCTL", tmp_path)
    setting = tmp_path / "net" / "mptcp" / "pm_type"
    setting.parent.mkdir(parents=True)
    setting.write_text("0\n")
    ledger.record("sysctl", name="net.mptcp.pm_type", value="0")
    setting.write_text("1\n")
    assert ledger.undo_all() == []
    assert setting.read_text() == "0"


@needs_root
def test_interfaces_and_qdiscs_of_this_machine(ledger):
    name = f"lab{os.getpid() % 10000}a"
    ledger.record("interface", name=name)
    ledger.record("qdisc", device=name, handle="root")
    shell.run(
        ["ip", "link", "add", name, "type", "veth", "peer", "name", f"{name}b"], "make a link"
    )
    shell.run(["tc", "qdisc", "replace", "dev", name, "root", "pfifo"], "queue")
    removed = []
    assert ledger.undo_all(removed) == []
    assert removed == [f"root qdisc of {name}", f"interface {name}"]
    assert not (removing.NET / name).exists()


@needs_root
def test_a_namespace_ends_with_its_process(ledger):
    host = subprocess.Popen(["unshare", "--net", "sleep", "60"])
    name = f"lab{os.getpid() % 10000}n"
    try:
        while os.readlink(f"/proc/{host.pid}/ns/net") == os.readlink("/proc/self/ns/net"):
            time.sleep(0.01)
        ledger.record("interface", name=name)
        shell.run(
            [
                "ip",
                "link",
                "add",
                name,
                "type",
                "veth",
                "peer",
                "name",
                "inside",
                "netns",
                str(host.pid),
            ],
            "reach into it",
        )
        ledger.record("process", pid=host.pid)
        assert ledger.undo_all() == []
        assert not (removing.NET / name).exists()
    finally:
        host.kill()
        host.wait()


@pytest.mark.whole
def test_what_cannot_be_removed_remains_listed(ledger, monkeypatch, tmp_path):
    def refuse(path):
        raise OSError("busy")

    monkeypatch.setitem(removing.UNDO, "mount", refuse)
    ledger.record("mount", path="/mnt")
    assert ledger.undo_all() == ["remove mount /mnt: busy"]
    assert ledger.entries() == [{"kind": "mount", "path": "/mnt"}]


def test_a_busy_resource_is_retried(ledger, monkeypatch):
    tried = []

    def busy(path):
        tried.append(path)
        if len(tried) < removing.TRIES:
            raise LabError("busy")

    monkeypatch.setitem(removing.UNDO, "mount", busy)
    monkeypatch.setattr(removing, "PAUSE_S", 0)
    ledger.record("mount", path="/mnt")
    assert ledger.undo_all() == []
    assert len(tried) == removing.TRIES
    assert not ledger.path.exists()


def test_a_line_cut_short_by_a_kill_is_skipped(ledger, tmp_path):
    ledger.record("file", path=str(tmp_path / "note"))
    (tmp_path / "note").touch()
    with ledger.path.open("a") as lines:
        lines.write('{"kind": "fi')
    assert ledger.undo_all() == []
    assert not (tmp_path / "note").exists()


def test_a_damaged_ledger_is_refused(ledger):
    ledger.path.parent.mkdir()
    ledger.path.write_text("nonsense\n" + json.dumps({"kind": "file", "path": "x"}) + "\n")
    with pytest.raises(LabError, match=r"line 1 is no JSON"):
        ledger.undo_all()


def test_an_unknown_kind_lists_the_known(ledger):
    with pytest.raises(
        KeyError, match=r"'brigde' cannot be undone: choose from bridges, daemon, file"
    ):
        ledger.record("brigde", name="s1")


def test_a_daemon_is_identified_by_a_word_in_its_arguments(ledger):
    ours, other = (
        subprocess.Popen(["tail", "-f", "/dev/null", f"mn7_{name}"], stderr=-1)
        for name in ("wifi1", "wifi2")
    )
    ledger.record("daemon", program="tail", word="mn7_wifi1")
    ledger.record("daemon", program="hostapd", word="mn7_wifi2")
    report = []
    assert ledger.undo_all(report) == []
    assert report == [f"tail {ours.pid}"]
    assert ours.wait(1) == -signal.SIGKILL
    assert other.poll() is None
    other.kill()
    for each in (ours, other):
        each.communicate()
