"""The page of a run: its figures and curves."""
