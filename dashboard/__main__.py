"""The program `python -m dashboard`."""

import sys

from dashboard.serve import main

main(sys.argv[1:])
