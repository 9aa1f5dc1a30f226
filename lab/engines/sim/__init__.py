"""The embedded packet-level twin of the emulation: virtual time, the same rules, the same brain."""
