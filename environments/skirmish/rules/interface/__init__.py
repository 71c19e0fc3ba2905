"""The players' interface to a game: observations, available functions, actions, commands."""
