"""Environment variables by which programs in the virtual machine (VM) learn about it."""

from __future__ import annotations

IN_VM = "MULTIPATH_LAB_VM"  # set inside a VM
SLOW_MACHINE = "MULTIPATH_LAB_SLOW_MACHINE"  # set inside a VM without KVM
COMMIT = "MULTIPATH_LAB_COMMIT"  # the lab's git commit: git takes two seconds in a VM
DILATION = "MULTIPATH_LAB_VM_DILATION"  # by which factor the clocks of a VM run slower
LOST_SHARE_FILE = "MULTIPATH_LAB_LOST_SHARE"  # a file with the share of time that a VM loses
