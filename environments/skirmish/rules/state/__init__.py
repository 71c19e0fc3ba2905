"""The state of a game, and the look-ups and changes that all rules share."""
