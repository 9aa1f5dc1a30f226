"""Select the subflows of a connection by a Markov-chain forecast (DTMC selection).

balia           the window law of BALIA           forecast    a set of paths -> throughput and
receive buffer chain           the mean windows of subflows      selection   the search for the best
set path_quality    observation -> path qualities     strategy    observation -> decisions
"""
