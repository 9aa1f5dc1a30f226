"""A pair of interfaces, two hosts, and a ledger that is apart from the machine's.

The real numpy is imported first: where it is missing, Mininet-WiFi puts an empty module in its
place.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import numpy  # noqa: F401
import pytest

from lab.engines.mininet.machine import ledger as ledgers
from lab.engines.mininet.machine import lock


@pytest.fixture
def veth() -> Iterator[str]:
    name = f"mlt{os.getpid() % 10000}a"
    subprocess.run(
        ["ip", "link", "add", name, "type", "veth", "peer", "name", name[:-1] + "b"], check=True
    )
    subprocess.run(["ip", "link", "set", name, "up"], check=True)
    yield name
    subprocess.run(["ip", "link", "del", name], check=True)


@pytest.fixture
def two_hosts() -> Iterator[list[int]]:
    """PIDs of two network namespaces that a veth pair connects: 10.9.0.1 and 10.9.0.2."""
    hosts = [
        subprocess.Popen(
            ["unshare", "--net", "sh", "-c", "echo; read _"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for _ in range(2)
    ]
    for host in hosts:
        assert host.stdout is not None
        host.stdout.readline()
    first, second = (str(host.pid) for host in hosts)
    subprocess.run(
        [
            "ip",
            "link",
            "add",
            "mlpa",
            "netns",
            first,
            "type",
            "veth",
            "peer",
            "name",
            "mlpb",
            "netns",
            second,
        ],
        check=True,
    )
    for pid, name, address in ((first, "mlpa", "10.9.0.1/24"), (second, "mlpb", "10.9.0.2/24")):
        for words in (["addr", "add", address, "dev", name], ["link", "set", name, "up"]):
            subprocess.run(["nsenter", f"--net=/proc/{pid}/ns/net", "ip", *words], check=True)
    yield [host.pid for host in hosts]
    for host in hosts:
        host.communicate()


@pytest.fixture
def pins(tmp_path):
    """A folder in a bpf file system; it does not exist yet."""
    folder = tmp_path / "bpf"
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "bpf", "bpf", str(folder)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"needs a bpf file system: {done.stderr.strip()}")
    yield folder / "pacing"
    subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
def ledger(tmp_path, monkeypatch):
    """The lock and the cache are apart from the machine's, too."""
    monkeypatch.setattr(ledgers, "MACHINE", tmp_path / "run" / "ledger.jsonl")
    monkeypatch.setattr(lock, "LOCK", tmp_path / "lock")
    monkeypatch.setenv("MULTIPATH_LAB_CACHE", str(tmp_path / "cache"))
    return ledgers.Ledger(ledgers.MACHINE)
