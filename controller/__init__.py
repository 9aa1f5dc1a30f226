"""Decide how traffic is routed and limited: strategies turn an observation into commands.

An observation is frozen data about the network (`controller.observation`); commands are routes,
meters, pacing rates and backup flags (`controller.command`). Only two parts of this package read
clocks, files or sockets: `controller.pox_ext`, which connects the strategies to the POX controller,
and `controller.user_file`, which imports users' Python files.

The strategies come from the papers called MP-SDN, S-MPTCP, MPTCP-LA and DTMC selection;
docs/notebook/reproduction compares our results with theirs.
"""
