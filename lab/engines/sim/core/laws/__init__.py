"""The congestion control laws, one module each. `core.dispatch` lists them and documents their
functions."""
