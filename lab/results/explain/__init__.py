"""Explain in words what each change during a run did, and why.

The explanations are computed from the samples, the events and the scenario of the run.
"""
