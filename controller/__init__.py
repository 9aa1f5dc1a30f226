"""The brain: strategies that see observations and answer with commands.

Nothing here reads a clock, a file or a socket. `controller.pox_ext` is the exception: it joins the brain to POX.
"""
