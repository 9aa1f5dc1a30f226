"""What some tests need of the machine. Where it is missing, a visible line says so."""

from __future__ import annotations

import os
from functools import cache

import pytest

from lab.engines.mininet.install import doctor

needs_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="needs root: run the tests with sudo to include it"
)


@cache
def emulation_missing() -> str:
    """Why the emulation cannot run in the VM; empty if it can."""
    verdicts = doctor.verdicts(doctor.facts())
    in_vm = next(each for each in verdicts if each.mode == doctor.VM_MODE)
    if in_vm.possible:
        return ""
    return (
        f"THE EMULATION IS NOT TESTED, missing: {', '.join(in_vm.missing)}. "
        "Type: ./run_lab.sh setup-emulation"
    )


def expect_emulation() -> None:
    """Skip the test where the emulation cannot run; fail if LAB_EXPECT_EMULATION is 1."""
    missing = emulation_missing()
    if missing and os.environ.get("LAB_EXPECT_EMULATION") == "1":
        pytest.fail(missing)
    if missing:
        pytest.skip(missing)


@pytest.fixture(scope="session")
def emulation() -> None:
    expect_emulation()


needs_emulation = [pytest.mark.emulation, pytest.mark.usefixtures("emulation")]
