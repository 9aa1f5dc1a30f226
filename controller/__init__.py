"""Decide what the network does: strategies turn an observation into commands.

Nothing here reads a clock, a file or a socket, except `controller.pox_ext`, which connects the
strategies to POX, and `controller.user_file`.
"""
