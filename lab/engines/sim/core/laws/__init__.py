"""Hold the congestion control laws, one file each; `dispatch` has the table of them and the
functions that each has."""
