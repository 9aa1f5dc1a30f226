"""Drawings of networks: positions of nodes, paths of subflows, and SVG."""
