"""Reproductions of five papers, judged claim by claim, and comparisons of the two engines."""
