"""Contain the congestion control laws, one module each. `core.dispatch` lists them and describes
the functions of a law."""
