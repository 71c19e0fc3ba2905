"""Skirmish behind the StarCraft II API: a program that clients start as if it were the game."""
