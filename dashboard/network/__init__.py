"""Drawings of networks: positions of nodes, lines of subflows, and SVG."""
