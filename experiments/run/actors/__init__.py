"""Loops of actors."""
