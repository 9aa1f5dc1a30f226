"""The congestion controls, one module each. `core.dispatch` lists them and documents their
functions."""
