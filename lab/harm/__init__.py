"""A search for networks on which a strategy does harm, and the smallest form of each."""
