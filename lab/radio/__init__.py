"""Model radio cells, for both engines: rates, shares, collisions, movement. Pure."""
