"""A pair of interfaces to try things on."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest


@pytest.fixture
def veth() -> Iterator[str]:
    """One end of a new veth pair, up."""
    name = f"mlt{os.getpid() % 10000}a"
    subprocess.run(["ip", "link", "add", name, "type", "veth", "peer", "name", name[:-1] + "b"], check=True)
    subprocess.run(["ip", "link", "set", name, "up"], check=True)
    yield name
    subprocess.run(["ip", "link", "del", name], check=True)
