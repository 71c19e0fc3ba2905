"""The data of offline reinforcement learning: games in Parquet, or a recording of trajectories."""

import contextlib
import itertools
import os
import pathlib
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from starleague.common import manifests
from starleague.common.errors import UserError
from starleague.data import games
from starleague.data.games import ordering
from starleague.data.reverb import datasets, recordings
from starleague.learner.loops import imitation_setup
from starleague.learner.loops.imitation_setup import Phase, Position
from starleague.learner.loops.options import OfflineOptions

NO_ROWS = np.arange(0)
Batches = Iterator[tuple[Position, ordering.OrderedBatch]]


class OfflineData(NamedTuple):
  """A dataset, opened and checked."""

  path: pathlib.Path
  games: games.GamesDataset | None  # None: a recording
  rows: np.ndarray  # of the games: the episodes that are learnt
  unroll_length: int  # T of the chunks
  digest: str  # SHA-256 of the contents in their order


def open_data(path: str | os.PathLike, options: OfflineOptions) -> OfflineData:
  """Opens a folder of games, several of them, separated by commas, or a recording.

  Raises:
    GamesError, RecordingError: it is neither, is damaged, or has another preset.
    UserError: it lacks what the method needs; says what.
  """
  path = pathlib.Path(path)
  if os.path.lexists(path / recordings.MANIFEST):
    return _open_recording(path, options)
  found = imitation_setup.read_games(path, options.imitation)
  if options.objective.improves and options.objective.recorded_ratios:
    raise UserError(f"{path}: 'offline.ratios' = 'recorded' needs log-probabilities of the "
                    "actions, and recorded games have none: use 'cloned', or a recording.")
  rows = np.flatnonzero(imitation_setup.named(options.imitation, found))
  if options.winners:
    rows = rows[imitation_setup.winners_of(options.imitation, found)[rows]]
  if not len(rows):
    raise UserError(
      f"{path}: expected episodes to learn, found none" + (
        f" that were won with an MMR of at least {options.imitation.fine_tune_mmr}: record more "
        "games, or lower imitation.fine_tune_mmr." if options.winners else ": record games."))
  return OfflineData(path, found, rows, options.imitation.unroll_length, found.digest)


def _open_recording(path: pathlib.Path, options: OfflineOptions) -> OfflineData:
  """Opens a recording, whose trajectories come in random order."""
  if options.imitation.names:
    raise UserError(f"{path}: 'imitation.names' chooses players of recorded games, and a recording "
                    f"has none; expected '', found {options.imitation.names!r}")
  found = recordings.describe(path)
  if found.preset != options.imitation.preset:
    raise UserError(f"{path} was recorded with another preset: expected "
                    f"{options.imitation.preset!r}, found {found.preset!r}.")
  for needed, what, has in (
      (options.winners, "the results of its games", "a recording has none"),
      (options.objective.emphatic_steps, "whole games in order",
       "a recording has trajectories in random order")):
    if needed:
      raise UserError(f"{path}: this method needs {what}, and {has}: use games in Parquet "
                      "(experiments.demonstrate), or another offline.method.")
  digest = manifests.manifest_digest(manifests.read(path / recordings.MANIFEST)["files"])
  return OfflineData(path, None, NO_ROWS, found.unroll_length, digest)


@contextlib.contextmanager
def batches(data: OfflineData, options: OfflineOptions, position: Position) -> Iterator[Batches]:
  """Yields endless batches, each with the position after it.

  Games run in order, slot by slot, from the position. Every trajectory of a recording starts with
  the core state zero: the recorded one is that of another network.
  """
  if data.games is not None:
    phase = Phase("offline", data.rows, NO_ROWS, options.learning_rate, 0.0, 0)
    yield imitation_setup.batches(data.games, phase, options.imitation, position)
    return
  size = options.imitation.batch_size
  with datasets.dataset(
      data.path, size, deadline_s=options.imitation.timeout_s) as sampled:
    yield ((Position(batch=number), ordering.OrderedBatch(*packed, first=np.ones(size, bool)))
           for number, packed in zip(itertools.count(position.batch + 1), sampled, strict=False))
