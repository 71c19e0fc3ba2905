"""The display of a run's progress."""
