"""Simulate packets in virtual time. Scenarios, controller and strategies are the same as in the
emulation."""
