"""The game of a server: state, commands, computer players, the real game's ids and map files."""
