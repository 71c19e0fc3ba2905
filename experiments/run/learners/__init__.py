"""Loops of learners."""
