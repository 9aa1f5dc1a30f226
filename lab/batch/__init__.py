"""Plan runs, check them, and run them: one or several, here or in the virtual machine."""
