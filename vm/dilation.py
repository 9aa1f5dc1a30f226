"""Time dilation: the clocks of the VM run slower than real time, so that a slow machine keeps up.

With a factor of 2, a second in the VM takes two seconds of real time. So the machine has twice the
time to emulate it, and programs in the VM see a network at full speed (Gupta et al., "To Infinity
and Beyond: Time-Warped Network Emulation", NSDI 2006).

Without KVM, the clocks of the VM follow the clock that QEMU reads. libfaketime slows this clock. It
does not slow the processor's time-stamp counter, and the guest's kernel compares this counter with
the other clocks only when it boots. So a VM always keeps the factor with which it was booted, even
if it is saved as a snapshot.
"""

from __future__ import annotations

from pathlib import Path

from lab.errors import MachineLacks, RequestError
from lab.vm_environment import DILATION, asked_dilation

LIBRARY = "*/faketime/libfaketimeMT.so.1"  # in a folder of libraries
FOLDERS = (Path("/usr/lib"), Path("/usr/local/lib"))


def factor() -> float:
    """Return how many times slower than real time the VM's clocks have to run: 1 for "auto", which
    is about runs. Raise `RequestError` if the environment has no such factor."""
    return asked_dilation() or 1.0


def prefix(*, kvm: bool) -> list[str]:
    """Return the words to put before QEMU's command line, so that QEMU's clock runs slower.

    The list is empty for a factor of 1. For any other factor, `RequestError` is raised if the VM
    uses KVM, and `MachineLacks` if libfaketime is missing.
    """
    slower = factor()
    if slower == 1:
        return []
    if kvm:
        raise RequestError(
            f"{DILATION}={slower:g}: the clocks of a VM that uses KVM cannot be slowed, and it is "
            f"fast. Unset {DILATION}"
        )
    library = next((path for folder in FOLDERS for path in sorted(folder.glob(LIBRARY))), None)
    if library is None:
        raise MachineLacks(
            f"{DILATION}={slower:g} needs libfaketime. Type: sudo apt-get install libfaketime"
        )
    return ["env", f"LD_PRELOAD={library}", f"FAKETIME=+0 x{1 / slower:.6f}"]
