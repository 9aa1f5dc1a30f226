"""A packet simulator in virtual time. It runs the same scenarios, controller and strategies as the
emulation."""
