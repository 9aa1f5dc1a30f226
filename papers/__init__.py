"""Reproductions of five papers, which check claim by claim whether the results agree, and
comparisons of the simulator with the emulation."""
