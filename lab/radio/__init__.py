"""Models of WiFi and LTE cells for both engines, the simulator and the emulation.

No module here does input or output or waits.
"""
