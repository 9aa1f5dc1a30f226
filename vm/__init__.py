"""The virtual machine (VM) in which the emulation runs without root: `python -m vm`.

The product starts it as a program and does not import it (lab/engines/mininet/in_vm.py).
"""
