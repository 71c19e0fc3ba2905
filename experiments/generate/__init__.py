"""Generators of committed data files: the vocabulary, and Skirmish's tables."""
