"""Implement the commands of the command line: their work and output, and some of their options."""
