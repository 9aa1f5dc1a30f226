"""A class: seats, progress, quotas, and the journal from which all of it can be rebuilt."""
