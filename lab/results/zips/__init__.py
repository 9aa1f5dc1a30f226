"""Runs as a zip archive that others can check: write it, read it safely, repeat its runs."""
