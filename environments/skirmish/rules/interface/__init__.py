"""What a player sees of a game, and what it may do."""
