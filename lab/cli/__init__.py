"""Implement the commands that `lab.__main__` defines: their options, work and output."""
