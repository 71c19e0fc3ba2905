"""Observations and actions: between the game's protocol and the agent's types."""
