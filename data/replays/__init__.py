"""StarCraft II replay files, decoded without the game."""
