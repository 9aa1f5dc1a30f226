"""The families of networks: a table to read, one file each."""

from lab.topologies import wifi_lte

TOPOLOGIES = {"wifi_lte": wifi_lte}
