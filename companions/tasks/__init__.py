"""Environments of the companion systems: thin adapters of maintained packages."""
