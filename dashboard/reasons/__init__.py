"""Say why a change of a run had its effect, from the samples, the events and the scenario.

Every sentence is the result of a general rule: which subflows share a full link, how much of a
cell's air a station used, how a congestion control divides a link, and when the controller decided.
No rule knows a scenario by its name.
"""
