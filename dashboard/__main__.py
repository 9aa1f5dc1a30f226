"""Run `python -m dashboard`."""

from dashboard.serve import main

main(prog_name="dashboard")
