"""A lab for Multipath TCP and software-defined networking, with an emulation and a simulator."""

__version__ = "0.3.0"
