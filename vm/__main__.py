"""The entry point of `python -m vm`, which lab/engines/mininet/in_vm.py starts."""

import sys

from lab.isolation import isolate

if __name__ == "__main__":
    isolate()
    from vm.program import main

    sys.exit(main())
