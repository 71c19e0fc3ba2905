"""Datasets of whole games, as Parquet files: read in order, slot by slot."""

from starleague.data.games.files import STUDENT, GamesError
from starleague.data.games.joining import read
from starleague.data.games.reading import (
  GamesDataset,
  in_order,
  library,
  num_batches,
  split,
  steps,
)

__all__ = [
  "STUDENT", "GamesDataset", "GamesError", "in_order", "library", "num_batches", "read", "split",
  "steps"]
