"""Select the subflows of a connection by a Markov-chain forecast (DTMC selection).

balia       the congestion control BALIA: how it changes the congestion window
forecast    throughput and receive buffer of a set of paths, by Markov chains as in the paper or
            for present-day TCP
search      the search for the best set of paths
selecting   the base class of strategies that select subflows; the quality of paths
strategy    the strategy, which chooses the set by a forecast or by trials
            (`controller.strategies.trial`)
"""
