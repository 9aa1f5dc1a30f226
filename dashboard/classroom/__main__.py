"""The program `python -m dashboard.classroom`."""

import sys

from dashboard.classroom.serve import main

main(sys.argv[1:])
