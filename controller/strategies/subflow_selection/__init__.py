"""Select the subflows of a connection by a Markov-chain forecast (DTMC selection).

balia         computes how the congestion control BALIA changes the congestion window
chain         computes the mean windows of the subflows with Markov chains
forecast      computes throughput and receive buffer of a set of paths
forecast_today  computes the same for the TCP of today
path_quality  reads bandwidth, loss and round trip of a path from the observation
selection     searches the best set of paths
selecting     turns an observation into decisions, with all of the above
strategy      chooses the set: by a forecast, or by trials (`controller.strategies.trial`)
"""
