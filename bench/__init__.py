"""Measure the speed of the lab (`./run_lab.sh bench`)."""
