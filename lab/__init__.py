"""Provide an emulation lab for Multipath TCP and software-defined networking."""

__version__ = "0.3.0"
