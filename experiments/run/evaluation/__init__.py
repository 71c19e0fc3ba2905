"""Evaluation games: of runs, of leagues, and of the response to conditioning."""
