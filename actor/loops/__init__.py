"""Loops of actors and evaluators: games inside the compiled program, and games in processes."""
