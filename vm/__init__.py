"""The virtual machine (VM) in which the emulation runs without root: `python -m vm`.

The lab does not import this package. It starts it as a program (lab/engines/mininet/in_vm.py).
"""
