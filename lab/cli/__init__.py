"""Implement the commands of `lab.__main__`: what they print, and their options."""
