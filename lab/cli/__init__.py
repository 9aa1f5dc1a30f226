"""Carry out the commands of `lab.__main__`: parse, call a library, print."""
