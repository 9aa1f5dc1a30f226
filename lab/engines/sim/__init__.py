"""Simulate the packets of a scenario in virtual time, with the rules and the controller of the emulation."""
