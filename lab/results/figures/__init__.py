"""Figures of a comparison for a paper: what they show (`plan`, `curves`), and how it is drawn."""
