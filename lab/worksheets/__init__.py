"""Check, try and mark worksheets: lessons whose steps are checked against a student's own runs."""
