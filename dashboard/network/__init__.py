"""Draw networks: places of nodes, paths of subflows, and the drawing as SVG."""
