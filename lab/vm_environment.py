"""Environment variables by which programs in the virtual machine (VM) learn about it."""

from __future__ import annotations

import os

from lab.errors import RequestError

IN_VM = "MULTIPATH_LAB_VM"  # set inside a VM
SLOW_MACHINE = "MULTIPATH_LAB_SLOW_MACHINE"  # set inside a VM without KVM
COMMIT = "MULTIPATH_LAB_COMMIT"  # the lab's git commit: git takes two seconds in a VM
DILATION = "MULTIPATH_LAB_VM_DILATION"  # by which factor the clocks of a VM run slower, or AUTO
AUTO = "auto"
LARGEST_DILATION = 20.0
LOST_SHARE_FILE = "MULTIPATH_LAB_LOST_SHARE"  # a file with the share of time that a VM loses


def time_dilation() -> float | None:
    """Return by which factor the clocks of this virtual machine run slower than real time.

    The result is None outside a virtual machine, or if the factor is not known.
    """
    text = os.environ.get(DILATION) if IN_VM in os.environ else None
    return float(text) if text else None


def asked_dilation(text: str | None = None) -> float | None:
    """Return the factor that a user asks for, in `text` or else in the environment; None for
    "auto", and 1 for nothing.

    Raise `RequestError` if it is neither "auto" nor a number from 1 to `LARGEST_DILATION`.
    """
    what = DILATION if text is None else "--dilation"
    if text is None:
        text = os.environ.get(DILATION) or "1"
    if text == AUTO:
        return None
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 1 <= found <= LARGEST_DILATION:
        raise RequestError(
            f"{what}='{text}': the VM's clocks cannot run at such a speed. Choose a factor from 1 "
            f"(real time) to {LARGEST_DILATION:g}, such as {what}=2, or {AUTO}"
        )
    return found
