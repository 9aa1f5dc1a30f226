"""Worksheets: exercises in YAML files, which the lab marks from the results of a student's runs."""
