"""Plan runs, check them, and carry them out on this machine or in the virtual machine."""
