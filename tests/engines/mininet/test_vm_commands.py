"""Commands in a real VM: output, files, an interrupt; and nothing is left behind."""

import os
import signal
import subprocess
import sys
import time

from machine import emulation, needs_emulation

from lab.engines.mininet import in_vm
from lab.engines.mininet.machine.ledger import Ledger, user_ledger
from lab.isolation import ROOT

__all__ = ["emulation"]


def needs_vm(test):
    for mark in needs_emulation:
        test = mark(test)
    return test


def machines() -> list[str]:
    found = subprocess.run(
        ["pgrep", "-f", "qemu-system.* -name multipath-lab"],
        capture_output=True,
        text=True,
        check=False,
    )
    return found.stdout.split()


def remains() -> list[str]:
    """QEMU's zombies, as lines of ps."""
    return [
        line
        for line in subprocess.run(
            ["ps", "-eo", "stat,comm"], capture_output=True, text=True, check=True
        ).stdout.splitlines()
        if line.startswith("Z") and "qemu" in line
    ]


GUEST = """
echo out; echo err >&2; cat {file}
ovs-vsctl --retry --timeout=60 --bare --columns=name list interface >/dev/null &&
    modinfo -n mac80211_hwsim >/dev/null && echo switches
until tc filter show dev lab-patches ingress | grep -q matchall; do sleep 0.1; done
mountpoint -q /sys/kernel/tracing || mount -t tracefs none /sys/kernel/tracing
cd /sys/kernel/tracing
echo p:patch jump_label_update >kprobe_events
echo 1 >events/kprobes/patch/enable
ping -q -c 2 -i 0.2 127.0.0.1 >/dev/null
ip link add own type ifb && tc qdisc add dev own clsact &&
    tc filter add dev own ingress matchall classid 1:1 && ip link del own &&
    echo "$(nproc) processors, $(grep -c patch: trace) patches of the kernel"
cd /
echo hello >{shared}/hello
exec 7<>/run/never
until [ -e {shared}/inbox/1.json ]; do read -r -t 0.02 -u 7; done
touch {shared}/seen
trap 'echo interrupted; exit 5' INT
touch {shared}/ready
while :; do read -r -t 0.1 -u 7; done
"""


@needs_vm
def test_a_command_in_the_vm(tmp_path, tmp_path_factory):
    """Both outputs, the user's file, files in both directions within half a second, an interrupt,
    the exit status, and nothing is left behind."""
    began = time.monotonic()
    times = {}
    own = tmp_path_factory.mktemp("own") / "law.c"
    own.write_text("a law\n")

    def on_poll():
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
        in_vm.run_in_vm(
            in_vm.GuestCommand(
                ["bash", "-c", GUEST.format(shared=tmp_path, file=own)],
                tmp_path,
                files=((own, own),),
            ),
            on_poll,
        )
        == 5
    )
    print(
        {name: round(at, 2) for name, at in times.items()}
        | {"end": round(time.monotonic() - began, 1)}
    )
    printed = (tmp_path / "vm/output.txt").read_text().splitlines()
    assert printed == [
        "out",
        "a law",
        "switches",
        "2 processors, 0 patches of the kernel",
        "interrupted",
    ]
    assert times["there and back"] < 0.5
    assert (tmp_path / "vm/errors.txt").read_text() == "err\n"
    assert machines() == before
    assert len(remains()) <= zombies
    assert not (tmp_path / "vm/temporary").exists()
    assert not user_ledger().exists()


@needs_vm
def test_the_vm_ends_with_the_process_that_started_it(tmp_path):
    """After kill -9 of the caller QEMU ends by itself, and the ledger lists what is left."""
    before = machines()
    code = (
        "from pathlib import Path; from lab.engines.mininet import in_vm; "
        f"in_vm.run_in_vm(in_vm.GuestCommand(['sleep', '60'], Path('{tmp_path}')))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": str(ROOT)}
    ) as caller:
        # The first VM makes the snapshot. The folder is made after it, by the one to look at.
        while not (tmp_path / "vm/temporary").exists() or machines() == before:
            assert caller.poll() is None
            time.sleep(0.1)
        caller.kill()
    deadline = time.monotonic() + 3
    while machines() != before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert machines() == before
    assert (tmp_path / "vm/temporary").exists()
    assert Ledger(user_ledger()).undo_all() == []
    assert not (tmp_path / "vm/temporary").exists()
