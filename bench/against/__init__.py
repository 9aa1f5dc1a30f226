"""The lab's simulator beside htsim: `./run_lab.sh bench --against DIR`."""
