"""Conversion between the game's protocol and the agent's observations and actions."""
