"""Speed measurements of the lab (`./run_lab.sh bench`)."""
