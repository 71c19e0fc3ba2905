"""A game of Skirmish against a human player in the browser."""
