"""Generators of the data files that are committed: the vocabulary, the tables of Skirmish."""
