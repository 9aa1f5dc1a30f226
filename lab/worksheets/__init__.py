"""Worksheets: lessons in YAML files whose steps are checked against a student's own runs."""
