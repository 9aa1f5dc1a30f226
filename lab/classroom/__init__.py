"""A class of students who work on worksheets: its members, their answers, their runs and its event
log."""
