"""The families of networks: a table to read, one file each."""

from types import ModuleType

from lab.topologies import (
    campus,
    collision,
    fat_tree,
    parallel_paths,
    pooling,
    rat_setup,
    shared_bottleneck,
    wifi_lte,
    wireless_set,
)

TOPOLOGIES: dict[str, ModuleType] = {
    "parallel_paths": parallel_paths,
    "shared_bottleneck": shared_bottleneck,
    "wifi_lte": wifi_lte,
    "pooling": pooling,
    "collision": collision,
    "fat_tree": fat_tree,
    "campus": campus,
    "wireless_set": wireless_set,
    "rat_setup": rat_setup,
}
