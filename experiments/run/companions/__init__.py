"""Runs and studies of the companion systems."""
