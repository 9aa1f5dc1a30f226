"""Subflow selection by a Markov-chain forecast (DTMC selection over SDN).

balia     the window law                         forecast    a set of paths -> throughput and need of buffer
chain     windows in the mean, by a chain each   selection   the search for the best set
paths     observation -> path qualities          strategy    observation -> decisions
"""
