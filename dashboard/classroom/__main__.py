"""Serve a class for the command `python -m dashboard.classroom`."""

import sys

from dashboard.classroom.serve import main

main(sys.argv[1:])
