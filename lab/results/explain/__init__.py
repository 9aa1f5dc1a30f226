"""Say what each change of a run did, and why, from its samples, events and scenario."""
