"""Select the subflows of a connection by a Markov-chain forecast (DTMC selection).

balia         computes how the congestion control BALIA changes the congestion window
forecast      computes throughput and receive buffer of a set of paths, with Markov chains as in
              the paper or for the TCP of today
search        searches the best set of paths
selecting     reads the quality of each path, and turns an observation into decisions
strategy      chooses the set: by a forecast, or by trials (`controller.strategies.trial`)
"""
