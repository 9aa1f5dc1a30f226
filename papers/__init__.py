"""The five papers: their experiments, judged claim by claim, and both engines compared."""
