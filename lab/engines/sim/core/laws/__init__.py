"""Contain the congestion control laws, one module each. `dispatch` lists them and says which
functions a law has."""
