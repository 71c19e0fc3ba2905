"""Ablations: their runs, games, measures and report."""
