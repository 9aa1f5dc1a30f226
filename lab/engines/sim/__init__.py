"""Simulate packets in virtual time. The scenarios, the controller and its strategies are the same
as in the emulation."""
