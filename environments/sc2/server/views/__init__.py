"""Messages of the API about a game: observations, feature layers, queries, game data."""
