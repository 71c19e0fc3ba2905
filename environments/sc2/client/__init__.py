"""Clients of the game: its installation and processes, the requests that set up a game."""
