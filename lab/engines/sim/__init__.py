"""Simulate packets in virtual time, with the rules and the controller of the emulation."""
